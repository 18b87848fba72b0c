// An NCCL for the simulated driver: calls return at once, and what they do is done by their
// streams, between processes as loopback/ does it. Made from the API's table.
//
// As in NCCL: a collective is ordered with what is on its stream and with the communicator's other
// operations; a group's operations start together, on all their streams, when the group ends. Work
// is done on threads that belong to the library. What a communicator is given up for (an abort, a
// revocation) is cut short, and its stream goes on; what fails otherwise, because a peer has ended,
// keeps its stream waiting until then. What is called on a communicator that does not block gets to
// its stream a while later, and until then its state is ncclInProgress.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "api/nccl_table.h"
#include "api/table.h"
#include "preload/calls/buffers.h"
#include "tests/fakes/cuda/cuda_sim.h"
#include "tests/fakes/cuda/nccl/profiler_host.h"
#include "tests/fakes/cuda/sim_stream.h"

namespace {

using deja::api::ApiClass;
using deja::api::ApiInfo;
using deja::api::NcclApi;
using deja::api::Role;

// What this library knows of a communicator. Never freed: streams reach its work at any time.
class Communicator {
 public:
  explicit Communicator(uint64_t its_handle) : handle(its_handle) {}

  const uint64_t handle;
  CUevent last = nullptr;      // behind its latest operations; under g_mutex
  CUevent launched = nullptr;  // the end of the latest launch of captured ones; under g_mutex
  std::atomic<bool> blocks{true};
  std::atomic<int> launching{0};  // groups that are not on their streams yet

  void WaitUntilLaunched() const {
    while (launching != 0) std::this_thread::yield();
  }

  // The number of an operation that is issued; 0: the communicator takes none any more.
  uint64_t Issue() {
    std::lock_guard hold(mutex_);
    return cut_ == kAll ? 0 : ++issued_;
  }
  // False: the operation was cut before it began. Otherwise End must follow.
  bool Begin(uint64_t number) {
    std::lock_guard hold(mutex_);
    if (number <= cut_) return false;
    ++running_;
    return true;
  }
  void End() {
    std::lock_guard hold(mutex_);
    --running_;
    changed_.notify_all();
  }
  bool IsCut(uint64_t number) {
    std::lock_guard hold(mutex_);
    return number <= cut_;
  }
  // An operation that has failed: its stream does not go on before.
  void WaitUntilCut(uint64_t number) {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [&] { return number <= cut_; });
  }
  // Cuts what was issued so far, and, if `all`, what will be.
  void Cut(bool all) {
    std::lock_guard hold(mutex_);
    cut_ = all ? kAll : issued_;
    changed_.notify_all();
  }
  void WaitUntilIdle() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [&] { return running_ == 0; });
  }

 private:
  static constexpr uint64_t kAll = ~uint64_t{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t issued_ = 0;
  uint64_t cut_ = 0;
  int running_ = 0;
};

struct Operation {
  Communicator* comm;
  uint64_t number;
  CUstream stream;
  std::function<ncclResult_t()> run;
  ProfiledCollective profiled;
};

thread_local int t_depth = 0;
thread_local std::vector<Operation> t_group;
std::mutex g_mutex;
std::map<uint64_t, Communicator*> g_comms;

Communicator& CommOf(uint64_t handle) {
  std::lock_guard hold(g_mutex);
  Communicator*& comm = g_comms[handle];
  if (comm == nullptr) comm = new Communicator(handle);
  return *comm;
}

// Its address may be the next communicator's.
void Forget(uint64_t handle) {
  std::lock_guard hold(g_mutex);
  g_comms.erase(handle);
}

// It lies in a place that this library's own gives: in a build tree, or beside what is installed.
void* OpenLoopback() {
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&OpenLoopback), &own) == 0) return nullptr;
  // Behind links: a test may have put one where PyTorch's wheel looks for its NCCL.
  char* path = realpath(own.dli_fname, nullptr);
  if (path == nullptr) return nullptr;
  std::string folder(path);
  std::free(path);
  folder.resize(folder.rfind('/') + 1);
  for (const char* place : {"../../lib/libdeja_loopback.so", "../../lib/deja/libdeja_loopback.so"})
    if (void* library = dlopen((folder + place).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

void* Loopback(const char* name) {
  static void* const library = OpenLoopback();
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) {
    std::fprintf(stderr, "device_nccl: no %s of loopback/\n", name);
    std::abort();
  }
  return function;
}

template <typename Function>
Function LoopbackAs(const char* name) {
  return reinterpret_cast<Function>(Loopback(name));
}

void Must(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "device_nccl: %s failed\n", what);
  std::abort();
}

CUevent Recorded(CUstream stream) {
  CUevent event = nullptr;
  Must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS, "cuEventCreate");
  Must(cuEventRecord(event, stream) == CUDA_SUCCESS, "cuEventRecord");
  return event;
}

// The device of a stream is the current one for as long as this lives, as in NCCL. Default streams
// are those of the current device.
class DeviceOf {
 public:
  explicit DeviceOf(CUstream stream) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return;
    CUcontext context = nullptr;
    Must(cuStreamGetCtx(stream, &context) == CUDA_SUCCESS, "cuStreamGetCtx");
    Must(cuCtxPushCurrent_v2(context) == CUDA_SUCCESS, "cuCtxPushCurrent");
    pushed_ = true;
  }
  ~DeviceOf() {
    if (pushed_) cuCtxPopCurrent_v2(nullptr);
  }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;

 private:
  bool pushed_ = false;
};

// What a stream does when it reaches the operations: it lets their thread go on, and waits for it.
// When a graph is launched again there is no thread, and the stream does it.
struct Launch {
  std::vector<Operation> operations;
  cusim::Mark reached;
  cusim::Mark done;
  std::once_flag first;

  void Do() {
    auto start = LoopbackAs<ncclResult_t (*)()>("pncclGroupStart");
    auto end = LoopbackAs<ncclResult_t (*)()>("pncclGroupEnd");
    std::vector<const Operation*> begun;
    for (const Operation& operation : operations)
      if (operation.comm->Begin(operation.number)) begun.push_back(&operation);
    Must(start() == ncclSuccess, "pncclGroupStart");
    bool good = true;
    for (const Operation* operation : begun) good = Started(operation->run()) && good;
    good = Started(end()) && good;
    std::vector<const Operation*> failed;
    for (const Operation* operation : begun) {
      const bool broken = StateOf(operation->comm->handle) != ncclSuccess;
      if (broken) failed.push_back(operation);
      good = good || broken || operation->comm->IsCut(operation->number);
      operation->comm->End();
    }
    Must(good, "operations");
    for (const Operation* operation : failed) operation->comm->WaitUntilCut(operation->number);
  }

  // Communicators that do not block leave the work to a thread of loopback's.
  static bool Started(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
  }
  static ncclResult_t StateOf(uint64_t comm) {
    auto ask = LoopbackAs<ncclResult_t (*)(uint64_t, ncclResult_t*)>("pncclCommGetAsyncError");
    ncclResult_t state = ncclInProgress;
    while (ask(comm, &state) == ncclSuccess && state == ncclInProgress) std::this_thread::yield();
    return state;
  }
};

// A kernel's node: a host function's could not be in the body of a conditional node.
CUresult LaunchKernel(CUstream stream, Launch* launch) {
  static constexpr cusim_kernel kKernels[] = {{"collective", 1,
                                               [](void** params) {
                                                 Launch* it = nullptr;
                                                 std::memcpy(&it, params[0], sizeof it);
                                                 it->Do();
                                               }},
                                              {nullptr, 0, nullptr}};
  static const CUfunction kernel = [] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    cuThreadExchangeStreamCaptureMode(&mode);
    Must(cuModuleLoadData(&module, kKernels) == CUDA_SUCCESS, "cuModuleLoadData");
    cuThreadExchangeStreamCaptureMode(&mode);
    Must(cuModuleGetFunction(&function, module, "collective") == CUDA_SUCCESS,
         "cuModuleGetFunction");
    return function;
  }();
  void* params[] = {&launch};
  return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
}

// Launches of graphs with operations of one communicator have them one after the other, in the
// order of the launches, as in NCCL. NCCL_GRAPH_MIXING_SUPPORT=0: not, and the graph has no nodes
// for it.
bool OrdersLaunches() {
  static const bool orders = [] {
    const char* text = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return orders;
}

void EnqueueCaptured(CUstream stream, const std::set<Communicator*>& comms, Launch* launch) {
  for (Communicator* comm : comms) {
    if (!OrdersLaunches()) continue;
    if (comm->launched == nullptr)
      Must(cuEventCreate(&comm->launched, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS,
           "cuEventCreate");
    Must(cuStreamWaitEvent(stream, comm->launched, CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS,
         "cuStreamWaitEvent");
  }
  Must(LaunchKernel(stream, launch) == CUDA_SUCCESS, "cuLaunchKernel");
  for (Communicator* comm : comms)
    if (OrdersLaunches())
      Must(cuEventRecordWithFlags(comm->launched, stream, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS,
           "cuEventRecordWithFlags");
}

void Enqueue(std::vector<Operation> operations) {
  auto* launch = new Launch;
  CUstream stream = operations.front().stream;
  const DeviceOf device(stream);
  std::set<CUstream> others;
  std::set<Communicator*> comms;
  for (const Operation& operation : operations) {
    comms.insert(operation.comm);
    if (operation.stream != stream) others.insert(operation.stream);
  }
  // As NCCL tells it: when it launches, and not in the order of the calls.
  for (auto it = operations.rbegin(); it != operations.rend(); ++it)
    if (it->profiled.func != nullptr) ProfilerHost::Get().OnLaunch(it->profiled);
  launch->operations = std::move(operations);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Must(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS, "cuStreamIsCapturing");
  const bool captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  std::lock_guard hold(g_mutex);
  for (CUstream other : others)
    Must(cuStreamWaitEvent(stream, Recorded(other), 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  for (const Communicator* comm : comms)
    if (!captured && comm->last != nullptr)
      Must(cuStreamWaitEvent(stream, comm->last, 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  if (!captured)
    std::thread([launch] {
      launch->reached.Wait();
      launch->Do();
      launch->done.Reach();
    }).detach();
  auto run = [](void* data) {
    auto* it = static_cast<Launch*>(data);
    it->reached.Reach();
    it->done.Wait();
  };
  if (captured)
    EnqueueCaptured(stream, comms, launch);
  else
    Must(cuLaunchHostFunc(stream, run, launch) == CUDA_SUCCESS, "cuLaunchHostFunc");
  CUevent after = Recorded(stream);
  for (CUstream other : others)
    Must(cuStreamWaitEvent(other, after, 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  for (Communicator* comm : comms)
    if (!captured) comm->last = after;
}

// Puts them on their streams, or has that done for communicators that do not block.
ncclResult_t Issue(std::vector<Operation> operations) {
  Communicator& comm = *operations.front().comm;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  {
    const DeviceOf device(operations.front().stream);
    Must(cuStreamIsCapturing(operations.front().stream, &status) == CUDA_SUCCESS,
         "cuStreamIsCapturing");
  }
  if (comm.blocks || status != CU_STREAM_CAPTURE_STATUS_NONE) {
    Enqueue(std::move(operations));
    return ncclSuccess;
  }
  CUcontext context = nullptr;
  Must(cuCtxGetCurrent(&context) == CUDA_SUCCESS, "cuCtxGetCurrent");
  comm.WaitUntilLaunched();
  ++comm.launching;
  std::thread([operations, context, &comm] {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    Must(cuCtxSetCurrent(context) == CUDA_SUCCESS, "cuCtxSetCurrent");
    Enqueue(operations);
    --comm.launching;
  }).detach();
  return ncclInProgress;
}

void WaitFor(const Communicator& comm) {
  comm.WaitUntilLaunched();
  CUevent last = nullptr;
  {
    std::lock_guard hold(g_mutex);
    last = comm.last;
  }
  while (last != nullptr && cuEventQuery(last) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
}

// Buffers are given to loopback/ where their bytes are.
template <typename T>
T Reachable(const ApiInfo& info, int arg, T value) {
  if constexpr (std::is_pointer_v<T>) {
    const Role role = info.params[arg].role;
    if (IsInputRole(role) || IsOutputRole(role) || role == Role::kScalarPtr)
      return static_cast<T>(cusim_backing(value));
  }
  return value;
}

template <typename Function, typename... Args>
ncclResult_t CallOn(const ApiInfo& info, Function real, Args... args) {
  int arg = 0;
  [[maybe_unused]] auto bind = [&]<typename T>(T value) { return Reachable(info, arg++, value); };
  // Braces: from left to right.
  return std::apply(real, std::tuple<Args...>{bind(args)...});
}

template <typename... Args>
uint64_t WordOf(const ApiInfo& info, Role role, const Args&... args) {
  const uint64_t words[] = {deja::api::ToWord(args)..., 0};
  const int at = info.Find(role);
  return at < 0 ? 0 : words[at];
}

// What a profiler plugin hears of a collective; of other calls nothing.
template <typename... Args>
ProfiledCollective Profiled(const ApiInfo& info, uint64_t comm, const Args&... args) {
  ProfiledCollective told;
  if (info.klass != ApiClass::kCollective || !ProfilerHost::Get().loaded()) return told;
  const uint64_t words[] = {deja::api::ToWord(args)..., 0};
  const bool in_place = info.params[0].role == Role::kInRootOut;
  told.func = in_place ? "Broadcast" : info.name + 4;
  told.send = reinterpret_cast<const void*>(words[0]);
  told.recv = reinterpret_cast<void*>(words[in_place ? 0 : 1]);
  told.count = WordOf(info, Role::kCount, args...);
  told.root = static_cast<int>(WordOf(info, Role::kRoot, args...));
  LoopbackAs<ncclResult_t (*)(uint64_t, int*)>("pncclCommUserRank")(comm, &told.rank);
  ProfilerHost::Get().OnCall(told);
  return told;
}

// Memory that NCCL allocates is the device's.
ncclResult_t Allocate(void** memory, size_t bytes) {
  CUdeviceptr made = 0;
  if (memory == nullptr || cuMemAlloc_v2(&made, bytes) != CUDA_SUCCESS) return ncclInvalidArgument;
  *memory = reinterpret_cast<void*>(static_cast<uintptr_t>(made));
  return ncclSuccess;
}

ncclResult_t Free(void* memory) {
  return cuMemFree_v2(reinterpret_cast<uintptr_t>(memory)) == CUDA_SUCCESS ? ncclSuccess
                                                                           : ncclInvalidArgument;
}

// Before a call on a communicator that is not an operation: it waits for the communicator's work,
// or cuts it short.
void Settle(NcclApi api, uint64_t handle, uint64_t flags) {
  if (handle == 0) return;
  Communicator& comm = CommOf(handle);
  if (api == NcclApi::ncclCommShrink && (flags & NCCL_SHRINK_ABORT) != 0) return comm.Cut(false);
  if (api != NcclApi::ncclCommAbort && api != NcclApi::ncclCommRevoke) return WaitFor(comm);
  comm.Cut(true);
  if (api == NcclApi::ncclCommRevoke) return;
  // Whoever is in loopback/ for it has to leave before it is deleted.
  LoopbackAs<ncclResult_t (*)(uint64_t, int)>("pncclCommRevoke")(handle, NCCL_REVOKE_DEFAULT);
  comm.WaitUntilIdle();
}

// For a communicator that a call has made.
void NoteHowItBlocks(uint64_t parent, uint64_t config, uint64_t made) {
  const uint64_t handle = made == 0 ? 0 : *reinterpret_cast<const uint64_t*>(made);
  if (handle == 0) return;
  const bool says = config != 0 && reinterpret_cast<const ncclConfig_t*>(config)->blocking == 0;
  if (says || (parent != 0 && !CommOf(parent).blocks)) CommOf(handle).blocks = false;
}

template <typename Result, typename... Args>
Result Route(NcclApi api, const char* second_name, Args... args) {
  const ApiInfo& info = deja::api::NcclInfo(api);
  auto real = LoopbackAs<Result (*)(Args...)>(second_name);
  if constexpr (std::is_same_v<Result, ncclResult_t> &&
                std::is_same_v<std::tuple<Args...>, std::tuple<void**, size_t>>)
    if (api == NcclApi::ncclMemAlloc) return Allocate(args...);
  if constexpr (std::is_same_v<Result, ncclResult_t> &&
                std::is_same_v<std::tuple<Args...>, std::tuple<void*>>)
    if (api == NcclApi::ncclMemFree) return Free(args...);
  if constexpr (std::is_same_v<Result, ncclResult_t>) {
    if (info.klass == ApiClass::kCollective || info.klass == ApiClass::kP2p) {
      int arg = 0;
      auto bind = [&]<typename T>(T value) { return Reachable(info, arg++, value); };
      // Braces: from left to right.
      std::tuple<Args...> reachable{bind(args)...};
      Communicator& comm = CommOf(WordOf(info, Role::kComm, args...));
      const uint64_t number = comm.Issue();
      if (number == 0) return ncclInvalidUsage;
      t_group.push_back({&comm, number,
                         reinterpret_cast<CUstream>(WordOf(info, Role::kStream, args...)),
                         [real, reachable] { return std::apply(real, reachable); },
                         Profiled(info, comm.handle, args...)});
      return t_depth == 0 ? Issue(std::exchange(t_group, {})) : ncclSuccess;
    }
    // What was called with the operator may not have begun, and has it as it was, as in NCCL.
    if (api == NcclApi::ncclRedOpDestroy) return ncclSuccess;
    if (api == NcclApi::ncclGroupStart) ++t_depth;
    const uint64_t handle = WordOf(info, Role::kComm, args...);
    if (info.klass == ApiClass::kLifecycle)
      Settle(api, handle, WordOf(info, Role::kFlags, args...));
    if (api == NcclApi::ncclCommAbort || api == NcclApi::ncclCommDestroy) Forget(handle);
    if (info.Find(Role::kNewComm) >= 0) ProfilerHost::Get().OnCommunicator();
    if (api == NcclApi::ncclCommGetAsyncError && handle != 0 && CommOf(handle).launching != 0) {
      *reinterpret_cast<ncclResult_t*>(WordOf(info, Role::kOutResult, args...)) = ncclInProgress;
      return ncclSuccess;
    }
    const ncclResult_t result = CallOn(info, real, args...);
    NoteHowItBlocks(handle, WordOf(info, Role::kConfig, args...),
                    WordOf(info, Role::kNewComm, args...));
    if (api == NcclApi::ncclGroupEnd && --t_depth == 0 && !t_group.empty()) {
      const ncclResult_t issued = Issue(std::exchange(t_group, {}));
      return result == ncclSuccess ? issued : result;
    }
    return result;
  } else {
    return real(args...);
  }
}

}  // namespace

extern "C" {
#define DEJA_COMMA_NAME(p) , DEJA_PARAM_NAME_ p
#define DEJA_FN(id, result, name, since, klass, ...)                                            \
  __attribute__((visibility("default"))) result p##name DEJA_PARAMS(__VA_ARGS__) {              \
    return Route<result>(NcclApi::name, "p" #name DEJA_FOR_EACH(DEJA_COMMA_NAME, __VA_ARGS__)); \
  }                                                                                             \
  __attribute__((weak, alias("p" #name), visibility("default")))                                \
  result name DEJA_PARAMS(__VA_ARGS__);
#include "api/tables/nccl.def"
#undef DEJA_FN
}
