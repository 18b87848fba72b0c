// The results of MPI's calls: buffers, handles, statuses and other out-parameters.
#include <algorithm>
#include <cstring>

#include "digest/digest.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/mpi/mpi_serve.h"
#include "replayer/process/program_memory.h"

namespace deja::replayer {

using api::MpiApi;
using api::Role;
using preload::Call;
using preload::MpiBuffer;
using preload::TheMpiAbi;

namespace {

// One call's results on their way to the program.
class Giver {
 public:
  Giver(Session& session, ThreadState& thread, Call& call, const MpiRequests& requests,
        uint32_t index)
      : session_(session),
        thread_(thread),
        call_(call),
        requests_(requests),
        index_(index),
        recorded_(session.plan().calls()[index]),
        mpi_(MpiOf(session)) {}

  void Run() {
    GiveBuffers();
    const auto outs = session_.plan().Words(recorded_.outs);
    blob_ = session_.plan().Bytes(recorded_.out_blob);
    size_t next = 0;
    for (uint32_t i = 0; i < call_.info->param_count && next < outs.size(); ++i)
      if (Give(i, outs[next])) ++next;
    if (recorded_.result == 0 && preload::EndsWithRequest(call_))
      mpi_.AddRequest(mpi_.NumberOf(TheMpiAbi().HandleAt(call_.args[call_.info->param_count - 1])),
                      call_);
    EndRequests();
  }

 private:
  [[noreturn]] void Fail(const std::string& why) {
    FailReplay(session_, thread_,
               "the result of " + std::string(call_.info->name) + " cannot be served: " + why,
               recorded_.stack);
  }

  std::vector<std::byte> Read(uint32_t output, uint64_t bytes) {
    std::vector<std::byte> room(bytes);
    if (const Status read = session_.payloads().ReadOutput(index_, output, room); !read)
      Fail(read.error().message);
    return room;
  }

  void GiveBuffers() {
    const auto outputs = session_.plan().Tensors(recorded_.outputs);
    bool own = false;
    for (uint32_t k = 0; k < outputs.size(); ++k) {
      const format::Tensor& tensor = outputs[k];
      if (tensor.param >= preload::kMpiRequestParam) {
        GiveRequest(k, tensor);
        continue;
      }
      if (tensor.param >= call_.info->param_count) continue;
      switch (call_.info->params[tensor.param].role) {
        case Role::kOutPacked:
          GivePacked(k, tensor);
          break;
        case Role::kOut:
        case Role::kOutN:
        case Role::kOutRoot:
        case Role::kOutNRoot:
        case Role::kInOut:
        case Role::kInRootOut:
          own = true;
          GiveTo(preload::MpiOutput(call_, mpi_), k, tensor);
          break;
        default:
          break;  // an array: see Array()
      }
    }
    if (own || recorded_.result != 0 || preload::EndsWithRequest(call_)) return;
    const MpiBuffer output = preload::MpiOutput(call_, mpi_);
    if (output.present() && !output.known())
      Fail("the layout of its type was not recorded (more pieces than a trace keeps)");
  }

  void GiveTo(const MpiBuffer& buffer, uint32_t output, const format::Tensor& tensor) {
    const uint64_t element = digest::ElementSize(tensor.dtype);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(tensor.count, element, &bytes)) Fail("the trace is damaged");
    if (tensor.payload != static_cast<uint32_t>(format::PayloadState::kKept))
      Fail("its bytes are not in the trace (record with --level full)");
    if (session_.payloads().Dropped(tensor.segment) && !session_.payloads().SizeOf(tensor.hash))
      Fail(kNotInWindow);
    if (!buffer.present() || !buffer.known() || bytes > buffer.bytes())
      Fail("it has " + std::to_string(bytes) + " bytes, and the program has room for " +
           std::to_string(buffer.bytes()));
    const std::span<std::byte> whole = buffer.contiguous();
    if (whole.size() == bytes) {
      if (const Status read = session_.payloads().ReadOutput(index_, output, whole); !read)
        Fail(read.error().message);
      return;
    }
    buffer.Scatter(Read(output, bytes));
  }

  void GiveRequest(uint32_t output, const format::Tensor& tensor) {
    const size_t at = tensor.param - preload::kMpiRequestParam;
    uint64_t number = 0;
    if (at < requests_.size()) number = requests_[at];
    if (call_.info->id == static_cast<uint32_t>(MpiApi::kMPI_Request_get_status))
      number = mpi_.NumberOf(TheMpiAbi().Handle(call_.ArgOf(Role::kHandle)));
    const std::optional<Call> made = mpi_.FindRequest(number);
    if (!made) Fail("the replay does not know the request");
    GiveTo(preload::MpiOutput(*made, mpi_), output, tensor);
  }

  void GivePacked(uint32_t output, const format::Tensor& tensor) {
    const int narrow = call_.info->Find(Role::kInOutInt);
    const int wide = call_.info->Find(Role::kInOutSize);
    const uint64_t position = call_.args[narrow >= 0 ? narrow : wide];
    int64_t from = 0;
    if (narrow >= 0) {
      int32_t value = 0;
      std::memcpy(&value, reinterpret_cast<const void*>(position), sizeof value);
      from = value;
    } else {
      std::memcpy(&from, reinterpret_cast<const void*>(position), sizeof from);
    }
    const int room = call_.info->Find(Role::kSize);
    const uint64_t size = room >= 0 ? call_.args[room] : call_.ArgOf(Role::kInt);
    const uint64_t packed = call_.ArgOf(Role::kOutPacked);
    if (packed == 0 || from < 0 || tensor.count > size ||
        static_cast<uint64_t>(from) > size - tensor.count)
      Fail("it is longer than the program has room for");
    const std::vector<std::byte> bytes = Read(output, tensor.count);
    Copy(packed + static_cast<uint64_t>(from), bytes);
  }

  // The bytes of an array or text; at most `room` of them.
  std::vector<std::byte> Array(uint32_t param, uint64_t word, size_t room) {
    const uint64_t bytes = word & ~preload::kMpiSpilled;
    if (bytes > room) Fail("the trace is damaged");
    if ((word & preload::kMpiSpilled) == 0) {
      const std::string_view part = blob_.substr(0, bytes);
      blob_.remove_prefix(part.size());
      const auto* at = reinterpret_cast<const std::byte*>(part.data());
      return {at, at + part.size()};
    }
    const auto outputs = session_.plan().Tensors(recorded_.outputs);
    for (uint32_t k = 0; k < outputs.size(); ++k)
      if (outputs[k].param == param && outputs[k].count == bytes) return Read(k, bytes);
    Fail("the trace is damaged");
  }

  void Copy(uint64_t address, const std::vector<std::byte>& bytes) {
    if (address != 0 && !bytes.empty())
      std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
  }

  void GiveHandles(uint32_t param, uint64_t word) {
    const std::vector<std::byte> bytes = Array(param, word, requests_.size() * sizeof(uint64_t));
    for (size_t i = 0; i * sizeof(uint64_t) < bytes.size(); ++i) {
      uint64_t number = 0;
      std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
      TheMpiAbi().PutHandle(call_.args[param] + i * TheMpiAbi().handle_bytes,
                            mpi_.HandleOf(number));
    }
  }

  void GiveAttribute(uint64_t word) {
    const int keyval = static_cast<int>(call_.ArgOf(Role::kInt));
    const uint64_t owner = mpi_.NumberOf(TheMpiAbi().Handle(call_.args[0]));
    const uint64_t value = TheMpiAbi().IsOwnKeyval(keyval)
                               ? ServedMpi::KeepInt(static_cast<int>(word))
                               : mpi_.Attribute({owner, keyval});
    Store<uint64_t>(call_.ArgOf(Role::kOutPtr), value);
  }

  // False if the parameter has no word in the record.
  bool Give(uint32_t param, uint64_t word) {
    const uint64_t address = call_.args[param];
    const size_t n = preload::MpiArrayCount(call_);
    switch (call_.info->params[param].role) {
      case Role::kOutInt:
      case Role::kInOutInt:
        Store<uint32_t>(address, word);
        return true;
      case Role::kOutSize:
      case Role::kInOutSize:
        Store<uint64_t>(address, word);
        return true;
      case Role::kOutPtr:
        if (call_.info->Find(Role::kInt) >= 0) GiveAttribute(word);
        return true;
      case Role::kNewHandle:
        if (recorded_.result == 0) TheMpiAbi().PutHandle(address, mpi_.HandleOf(word));
        return true;
      case Role::kHandleInOut:
        if (address != 0) TheMpiAbi().PutHandle(address, mpi_.HandleOf(word));
        return true;
      case Role::kHandlesInOut:
        if (address != 0) GiveHandles(param, word);
        return true;
      case Role::kOutInts:
      case Role::kInOutInts:
        Copy(address, Array(param, word, n * sizeof(int)));
        return true;
      case Role::kOutText:
        Copy(address, Array(param, word, 4096));
        return true;
      case Role::kStatus:
      case Role::kStatuses: {
        const bool one = call_.info->params[param].role == Role::kStatus;
        const std::vector<std::byte> bytes =
            Array(param, word, (one ? 1 : n) * TheMpiAbi().status_bytes);
        if (address != TheMpiAbi().status_ignore) Copy(address, bytes);
        return true;
      }
      default:
        return false;
    }
  }

  // Those that are null now.
  void EndRequests() {
    if (requests_.size() == 0) return;
    int arg = call_.info->Find(Role::kHandleInOut);
    if (arg < 0) arg = call_.info->Find(Role::kHandlesInOut);
    for (size_t i = 0; i < requests_.size(); ++i) {
      const uint64_t at = call_.args[arg] + i * TheMpiAbi().handle_bytes;
      if (mpi_.NumberOf(TheMpiAbi().HandleAt(at)) != requests_[i]) mpi_.EndRequest(requests_[i]);
    }
  }

  Session& session_;
  ThreadState& thread_;
  Call& call_;
  const MpiRequests& requests_;
  const uint32_t index_;
  const RecordedCall& recorded_;
  ServedMpi& mpi_;
  std::string_view blob_;
};

}  // namespace

MpiRequests::MpiRequests(const Call& call, ServedMpi& mpi) {
  int arg = call.info->Find(Role::kHandleInOut);
  size_t count = 1;
  if (arg < 0) {
    arg = call.info->Find(Role::kHandlesInOut);
    count = preload::MpiArrayCount(call);
  }
  if (arg < 0 || call.args[arg] == 0) return;
  for (size_t i = 0; i < count; ++i)
    numbers_.push_back(
        mpi.NumberOf(TheMpiAbi().HandleAt(call.args[arg] + i * TheMpiAbi().handle_bytes)));
}

void GiveMpiResults(Session& session, ThreadState& thread, Call& call, const MpiRequests& requests,
                    uint32_t index) {
  Giver(session, thread, call, requests, index).Run();
}

}  // namespace deja::replayer
