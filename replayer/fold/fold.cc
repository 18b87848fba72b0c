#include "replayer/fold/fold.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "api/table.h"
#include "common/text/nccl_result_text.h"
#include "digest/digest.h"
#include "format/scratch/fold_files.h"
#include "include/compat/nccl.h"
#include "preload/calls/buffers.h"
#include "preload/symbols/real_symbols.h"

namespace deja::replayer {

using api::NcclApi;
using api::Role;

namespace {

// Calls a function with the words of a Call.
template <typename Function>
struct Invoker;

template <typename Result, typename... Args>
struct Invoker<Result(Args...)> {
  static uint64_t Invoke(void* function, const uint64_t* args) {
    return With(function, args, std::index_sequence_for<Args...>{});
  }

 private:
  template <size_t... kIndex>
  static uint64_t With(void* function, [[maybe_unused]] const uint64_t* args,
                       std::index_sequence<kIndex...> /*all*/) {
    auto* typed = reinterpret_cast<Result (*)(Args...)>(function);
    if constexpr (std::is_void_v<Result>) {
      typed(api::FromWord<Args>(args[kIndex])...);
      return 0;
    } else {
      return api::ToWord(typed(api::FromWord<Args>(args[kIndex])...));
    }
  }
};

using Invoke = uint64_t (*)(void* function, const uint64_t* args);
constexpr Invoke kInvokers[] = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  &Invoker<result DEJA_TYPES(__VA_ARGS__)>::Invoke,
#include "api/tables/nccl.def"
#undef DEJA_FN
};

constexpr char kLibrary[] = "/libdeja_loopback.so";

// Beside this library, wherever that is.
std::string LibraryPath() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LibraryPath), &info) == 0) return {};
  const std::string own = info.dli_fname;
  return own.substr(0, own.rfind('/')) + kLibrary;
}

// The same on all ranks, for the n-th communicator with the hash.
ncclUniqueId IdOf(uint64_t hash, uint32_t nranks, uint64_t number) {
  const uint64_t words[] = {hash, nranks, number};
  ncclUniqueId id{};
  std::memcpy(id.internal, words, sizeof words);
  return id;
}

}  // namespace

Result<std::unique_ptr<Fold>> Fold::Open(const std::string& folder) {
  std::unique_ptr<Fold> fold(new Fold());
  DEJA_RETURN_IF_ERROR(fold->Load());
  DEJA_RETURN_IF_ERROR(fold->ReadComms(folder));
  DEJA_ASSIGN_OR_RETURN(const auto results, format::ReadFoldResults(folder));
  for (const format::FoldResult& result : results)
    fold->others_results_.emplace(result.meets, result.nranks, result.seq);
  return fold;
}

Status Fold::ReadComms(const std::string& folder) {
  DEJA_ASSIGN_OR_RETURN(const auto comms, format::ReadFoldComms(folder));
  for (const format::FoldComm& comm : comms) whole_[{comm.hash, comm.nranks}] = comm.meets;
  if (whole_.empty())
    return Fail(ErrorCode::kIo, "computing collectives: " + folder + " lists no communicator");
  return {};
}

Status Fold::Load() {
  const std::string path = LibraryPath();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Fail(ErrorCode::kNotFound, "computing collectives: " + path + " cannot be loaded: " +
                                          (why == nullptr ? "no reason given" : why));
  }
  for (const api::ApiInfo& info : api::NcclTable()) {
    void* function = preload::RealDlsym(library, (std::string("p") + info.name).c_str());
    if (function == nullptr)
      return Fail(ErrorCode::kNotFound, path + " has no " + info.name + ": it is another build's");
    functions_.push_back(function);
  }
  return {};
}

uint64_t Fold::Call(NcclApi api, const uint64_t* args) const {
  const auto at = static_cast<uint32_t>(api) - api::kNcclFamily;
  return kInvokers[at](functions_[at], args);
}

Status Fold::Check(NcclApi api, uint64_t result) const {
  if (result == ncclSuccess) return {};
  const uint64_t none = 0;
  const uint64_t text = Call(NcclApi::ncclGetLastError, &none);
  const char* why = api::FromWord<const char*>(text);
  return Fail(result == ncclRemoteError ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
              why != nullptr && *why != '\0'
                  ? std::string(why)
                  : std::string(api::NcclInfo(api).name) + " failed with " +
                        NcclResultName(static_cast<int64_t>(result)));
}

bool Fold::IsWhole(const ServedComm& comm) const {
  return whole_.count({comm.hash(), comm.nranks()}) != 0;
}

bool Fold::OthersHaveResult(const ServedComm& comm, uint64_t seq) const {
  const auto whole = whole_.find({comm.hash(), comm.nranks()});
  return whole != whole_.end() && others_results_.count({whole->second, comm.nranks(), seq}) != 0;
}

Status Fold::Meet(std::span<ServedComm* const> comms) {
  std::vector<ncclComm_t> handles(comms.size());
  DEJA_RETURN_IF_ERROR(Check(NcclApi::ncclGroupStart, Call(NcclApi::ncclGroupStart, nullptr)));
  for (size_t i = 0; i < comms.size(); ++i) {
    const ServedComm& comm = *comms[i];
    const uint64_t hash = whole_.at({comm.hash(), comm.nranks()});
    uint64_t number = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      number = made_[{{hash, comm.nranks()}, comm.rank()}]++;
    }
    const ncclUniqueId id = IdOf(hash, comm.nranks(), number);
    const uint64_t args[] = {api::ToWord(&handles[i]), comm.nranks(), api::ToWord(id), comm.rank()};
    // What is wrong with a call the group's end says.
    Call(NcclApi::ncclCommInitRank, args);
  }
  DEJA_RETURN_IF_ERROR(Check(NcclApi::ncclCommInitRank, Call(NcclApi::ncclGroupEnd, nullptr)));
  for (size_t i = 0; i < comms.size(); ++i) comms[i]->SetComputed(handles[i]);
  return {};
}

void Fold::Leave(ServedComm& comm) {
  if (comm.computed() == nullptr) return;
  const uint64_t handle = api::ToWord(comm.computed());
  comm.SetComputed(nullptr);
  Call(NcclApi::ncclCommDestroy, &handle);
}

void Fold::KeepOperator(const ServedComm& comm, const preload::Call& call) {
  uint32_t op = 0;
  std::memcpy(&op, api::FromWord<const void*>(call.ArgOf(Role::kNewRedOp)), sizeof op);
  Operator made;
  made.dtype = static_cast<uint32_t>(call.ArgOf(Role::kDType));
  made.address = call.ArgOf(Role::kScalarPtr);
  if (call.ArgOf(Role::kResidence) == ncclScalarHostImmediate) {
    const auto* scalar = api::FromWord<const std::byte*>(made.address);
    made.scalar.assign(scalar, scalar + digest::ElementSize(made.dtype));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  operators_[{comm.number(), op}] = std::move(made);
}

std::optional<Fold::Operator> Fold::FindOperator(const ServedComm& comm, uint64_t op) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = operators_.find({comm.number(), op});
  return it == operators_.end() ? std::nullopt : std::optional(it->second);
}

Result<uint64_t> Fold::MakeOperator(void* comm, uint32_t dtype, std::span<const std::byte> scalar) {
  ncclRedOp_t op{};
  const uint64_t args[] = {api::ToWord(&op), api::ToWord(scalar.data()), dtype,
                           ncclScalarHostImmediate, api::ToWord(comm)};
  DEJA_RETURN_IF_ERROR(
      Check(NcclApi::ncclRedOpCreatePreMulSum, Call(NcclApi::ncclRedOpCreatePreMulSum, args)));
  return static_cast<uint64_t>(op);
}

void Fold::DropOperator(void* comm, uint64_t op) {
  const uint64_t args[] = {op, api::ToWord(comm)};
  Call(NcclApi::ncclRedOpDestroy, args);
}

Status Fold::Run(std::span<const Operation> group) {
  DEJA_RETURN_IF_ERROR(Check(NcclApi::ncclGroupStart, Call(NcclApi::ncclGroupStart, nullptr)));
  // What is wrong with a call the group's end says.
  for (const Operation& operation : group)
    Call(static_cast<NcclApi>(operation.api), operation.args.data());
  const NcclApi named = group.empty() ? NcclApi::ncclGroupEnd : static_cast<NcclApi>(group[0].api);
  return Check(named, Call(NcclApi::ncclGroupEnd, nullptr));
}

}  // namespace deja::replayer
