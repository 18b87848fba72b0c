#include "recorder/mpi/mpi_results.h"

#include <algorithm>

#include "digest/digest.h"
#include "recorder/events/argument_memory.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

using api::MpiApi;
using api::Role;
using preload::MpiBuffer;
using preload::TheMpiAbi;

namespace {

constexpr size_t kMaxMpiText = 4096;
// What is sent is kept up to this size, so that a difference can be shown.
constexpr size_t kMaxKeptInput = 4096;

// f(bytes): those of `buffer`, gathered if they lie apart.
template <typename F>
void WithBytes(const MpiBuffer& buffer, uint64_t limit, F f) {
  std::span<std::byte> bytes = buffer.contiguous();
  if (!bytes.empty())
    return f(std::span<const std::byte>(bytes.first(std::min(limit, bytes.size()))));
  const uint64_t size = std::min(limit, buffer.bytes());
  if (size == 0) return f(std::span<const std::byte>());
  void* room = MapZeroed(size);
  if (room == nullptr) return;
  bytes = {static_cast<std::byte*>(room), size};
  buffer.Gather(bytes);
  f(std::span<const std::byte>(bytes));
  munmap(room, size);
}

uint32_t DTypeOf(const MpiBuffer& buffer, size_t bytes) {
  const uint32_t element = digest::ElementSize(buffer.type.dtype);
  return buffer.types != 0 || element == 0 || bytes % element != 0 ? format::kRawBytes
                                                                   : buffer.type.dtype;
}

}  // namespace

Room::~Room() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

std::byte* Room::Get(size_t bytes) {
  if (bytes <= sizeof local_) return local_;
  mapped_ = static_cast<std::byte*>(MapZeroed(bytes));
  mapped_bytes_ = bytes;
  return mapped_;
}

MpiStatuses::MpiStatuses(preload::Call& call) : call_(call) {
  size_t count = 1;
  arg_ = call.info->Find(Role::kStatus);
  if (arg_ < 0) {
    arg_ = call.info->Find(Role::kStatuses);
    count = preload::MpiArrayCount(call);
  }
  if (arg_ < 0) return;
  programs_ = call.args[arg_];
  if (programs_ != TheMpiAbi().status_ignore) {
    address_ = reinterpret_cast<const std::byte*>(programs_);
    return;
  }
  room_ = memory_.Get(std::max<size_t>(count, 1) * TheMpiAbi().status_bytes);
  address_ = room_;
}

void MpiStatuses::Substitute() {
  if (room_ != nullptr) call_.args[arg_] = reinterpret_cast<uint64_t>(room_);
}

void MpiStatuses::Restore() {
  if (arg_ >= 0) call_.args[arg_] = programs_;
}

const std::byte* MpiStatuses::at(size_t i) const {
  return address_ == nullptr ? nullptr : address_ + i * TheMpiAbi().status_bytes;
}

MpiHandlesBefore::MpiHandlesBefore(const preload::Call& call) {
  int arg = call.info->Find(Role::kHandleInOut);
  size_t count = 1;
  if (arg < 0) {
    arg = call.info->Find(Role::kHandlesInOut);
    count = preload::MpiArrayCount(call);
  }
  if (arg < 0 || call.args[arg] == 0 || count == 0) return;
  taken_ = reinterpret_cast<MpiState::Taken*>(memory_.Get(count * sizeof(MpiState::Taken)));
  if (taken_ == nullptr) return;
  address_ = call.args[arg];
  count_ = count;
  for (size_t i = 0; i < count; ++i) {
    taken_[i] = {};
    taken_[i].handle = Now(i);
  }
}

void MpiHandlesBefore::Take(MpiState& mpi) {
  for (size_t i = 0; i < count_; ++i) taken_[i] = mpi.Take(taken_[i].handle);
}

void MpiHandlesBefore::PutBack(MpiState& mpi) {
  for (size_t i = 0; i < count_; ++i)
    if (Now(i) == taken_[i].handle) mpi.PutBack(taken_[i]);
}

void MpiHandlesBefore::End(MpiState& mpi) {
  for (size_t i = 0; i < count_; ++i)
    if (Now(i) != taken_[i].handle) mpi.End(taken_[i]);
}

uint64_t MpiHandlesBefore::Now(size_t i) const {
  return TheMpiAbi().HandleAt(address_ + i * TheMpiAbi().handle_bytes);
}

int MpiOutInt(const preload::Call& call, std::string_view name, int otherwise) {
  for (uint32_t i = 0; i < call.info->param_count; ++i)
    if (call.info->params[i].role == Role::kOutInt && name == call.info->params[i].name)
      return call.args[i] == 0 ? otherwise : static_cast<int>(ValueAt<int32_t>(call.args[i]));
  return otherwise;
}

format::Tensor MpiTensor(Recording& rec, const MpiBuffer& buffer) {
  format::Tensor tensor;
  tensor.param = static_cast<uint32_t>(buffer.arg);
  tensor.address = buffer.address;
  if (!buffer.known()) return tensor;
  const uint64_t size = buffer.bytes();
  tensor.dtype = DTypeOf(buffer, size);
  tensor.count = size / digest::ElementSize(tensor.dtype);
  if (rec.config.level == Level::kOrder || size == 0) return tensor;
  WithBytes(buffer, size, [&tensor, &rec](std::span<const std::byte> bytes) {
    const digest::TensorDigest digest = digest::DigestTensor(bytes, tensor.dtype);
    tensor.hash = digest.hash;
    tensor.stats = digest.stats;
    if (bytes.size() > kMaxKeptInput || rec.config.level != Level::kFull) return;
    const uint32_t element = digest::ElementSize(tensor.dtype);
    const format::Placed placed = rec.KeepPayload(tensor.hash, bytes, element);
    if (!placed.kept) return;
    tensor.payload = static_cast<uint32_t>(format::PayloadState::kKept);
    tensor.segment = placed.segment;
  });
  return tensor;
}

void MpiResults::WriteTensor(std::span<const std::byte> bytes, uint32_t dtype, uint32_t param) {
  format::Tensor tensor;
  tensor.param = param;
  tensor.dtype = dtype;
  tensor.count = bytes.size() / digest::ElementSize(dtype);
  tensor.address = reinterpret_cast<uint64_t>(bytes.data());
  if (!bytes.empty()) {
    const digest::TensorDigest digest = digest::DigestTensor(bytes, dtype);
    tensor.hash = digest.hash;
    tensor.stats = digest.stats;
    if (bytes.size() <= preload::kMpiAlwaysKept || rec_.config.level == Level::kFull) {
      const format::Placed placed =
          rec_.KeepPayload(tensor.hash, bytes, digest::ElementSize(dtype));
      tensor.payload = static_cast<uint32_t>(placed.kept ? format::PayloadState::kKept
                                                         : format::PayloadState::kDropped);
      tensor.segment = placed.segment;
    }
  }
  format::CallResults results;
  results.comm_seq = enter_seq_;
  results.outputs.push_back(tensor);
  rec_.writer.Write(results);
}

void MpiResults::AddBuffer(const MpiBuffer& buffer, uint64_t limit, uint32_t param) {
  if (!buffer.present() || !buffer.known()) return;
  WithBytes(buffer, limit, [&](std::span<const std::byte> bytes) {
    if (!bytes.empty()) WriteTensor(bytes, DTypeOf(buffer, bytes.size()), param);
  });
}

void MpiResults::AddRequest(uint32_t request, size_t index, const std::byte* status) {
  bool is_new = false;
  const MpiRequest* made = MpiOf(rec_).Deliver(request, is_new);
  if (made == nullptr || !is_new) return;
  const MpiBuffer buffer = preload::MpiOutput(made->call, MpiOf(rec_));
  uint64_t limit = ~uint64_t{0};
  if (preload::IsReceive(*made->call.info)) {
    if (status == nullptr) return;
    limit = TheMpiAbi().ReceivedBytes(status);
  }
  AddBuffer(buffer, limit, preload::kMpiRequestParam + static_cast<uint32_t>(index));
}

void MpiResults::AddRequests(const MpiHandlesBefore& before, const MpiStatuses& statuses) {
  switch (static_cast<MpiApi>(call_.info->id)) {
    case MpiApi::kMPI_Wait:
    case MpiApi::kMPI_Test:
      if (before.count() == 1) AddRequest(before.Request(0), 0, statuses.at(0));
      return;
    case MpiApi::kMPI_Request_get_status:
      return AddRequest(MpiOf(rec_).RequestOf(TheMpiAbi().Handle(call_.ArgOf(Role::kHandle))), 0,
                        statuses.at(0));
    case MpiApi::kMPI_Waitall:
    case MpiApi::kMPI_Testall:
      for (size_t i = 0; i < before.count(); ++i) AddRequest(before.Request(i), i, statuses.at(i));
      return;
    case MpiApi::kMPI_Waitany:
    case MpiApi::kMPI_Testany: {
      const int index = MpiOutInt(call_, "index", preload::kMpiUndefined);
      if (index >= 0 && static_cast<size_t>(index) < before.count())
        AddRequest(before.Request(static_cast<size_t>(index)), static_cast<size_t>(index),
                   statuses.at(0));
      return;
    }
    case MpiApi::kMPI_Waitsome:
    case MpiApi::kMPI_Testsome: {
      const int done = MpiOutInt(call_, "outcount", 0);
      const auto* indices = static_cast<const int*>(Pointer(call_.ArgOf(Role::kOutInts)));
      for (int i = 0; i < done && indices != nullptr; ++i)
        if (indices[i] >= 0 && static_cast<size_t>(indices[i]) < before.count())
          AddRequest(before.Request(static_cast<size_t>(indices[i])),
                     static_cast<size_t>(indices[i]), statuses.at(static_cast<size_t>(i)));
      return;
    }
    default:
      return;
  }
}

// A word for an array or text: its bytes are in the blob, or else in a tensor.
uint64_t MpiResults::Array(uint32_t param, const void* data, size_t bytes) {
  if (data == nullptr || bytes == 0) return 0;
  const size_t before = blob_.view().size();
  blob_.Add(data, bytes);
  if (blob_.view().size() - before == bytes) return bytes;
  WriteTensor({static_cast<const std::byte*>(data), bytes}, format::kRawBytes, param);
  return bytes | preload::kMpiSpilled;
}

uint64_t MpiResults::HandleArray(uint32_t param, const MpiHandlesBefore& before) {
  Room room;
  auto* numbers = reinterpret_cast<uint64_t*>(room.Get(before.count() * sizeof(uint64_t)));
  if (numbers == nullptr) return 0;
  for (size_t i = 0; i < before.count(); ++i) numbers[i] = MpiOf(rec_).NumberOf(before.Now(i));
  return Array(param, numbers, before.count() * sizeof(uint64_t));
}

// Attributes of the library's own are ints behind a pointer; others are the program's pointers.
uint64_t MpiResults::Attribute() {
  if (!Succeeded() || MpiOutInt(call_, "flag", 0) == 0) return 0;
  const int keyval_arg = call_.info->Find(Role::kInt);
  if (keyval_arg < 0 || !TheMpiAbi().IsOwnKeyval(static_cast<int>(call_.args[keyval_arg])))
    return 0;
  return ValueAt<uint32_t>(ValueAt<uint64_t>(call_.ArgOf(Role::kOutPtr)));
}

uint64_t MpiResults::Out(uint32_t param, const MpiHandlesBefore& before,
                         const MpiStatuses& statuses) {
  const uint64_t word = call_.args[param];
  const size_t n = preload::MpiArrayCount(call_);
  switch (call_.info->params[param].role) {
    case Role::kOutInt:
    case Role::kInOutInt:
      return ValueAt<uint32_t>(word);
    case Role::kOutSize:
    case Role::kInOutSize:
      return ValueAt<uint64_t>(word);
    case Role::kOutPtr:
      return call_.info->Find(Role::kInt) >= 0 ? Attribute() : 0;
    case Role::kNewHandle:
      return Succeeded() ? MpiOf(rec_).Created(TheMpiAbi().HandleAt(word)) : 0;
    case Role::kHandleInOut:
      return before.count() == 1 ? MpiOf(rec_).NumberOf(before.Now(0)) : 0;
    case Role::kHandlesInOut:
      return HandleArray(param, before);
    case Role::kOutInts:
    case Role::kInOutInts:
      return Array(param, Pointer(word), n * sizeof(int));
    case Role::kOutText: {
      if (!Succeeded() || MpiOutInt(call_, "flag", 1) == 0 || word == 0) return 0;
      const char* text = static_cast<const char*>(Pointer(word));
      return Array(param, text, strnlen(text, kMaxMpiText - 1) + 1);
    }
    case Role::kStatus:
      return statuses.wanted() ? Array(param, statuses.at(0), TheMpiAbi().status_bytes) : 0;
    case Role::kStatuses: {
      const auto some = static_cast<size_t>(std::max(0, MpiOutInt(call_, "outcount", 0)));
      const bool is_some = call_.info->Find(Role::kOutInts) >= 0;
      return statuses.wanted() ? Array(param, statuses.at(0),
                                       (is_some ? std::min(some, n) : n) * TheMpiAbi().status_bytes)
                               : 0;
    }
    default:
      return 0;
  }
}

namespace {

bool HasOut(Role role) {
  switch (role) {
    case Role::kOutInt:
    case Role::kInOutInt:
    case Role::kOutSize:
    case Role::kInOutSize:
    case Role::kOutPtr:
    case Role::kNewHandle:
    case Role::kHandleInOut:
    case Role::kHandlesInOut:
    case Role::kOutInts:
    case Role::kInOutInts:
    case Role::kOutText:
    case Role::kStatus:
    case Role::kStatuses:
      return true;
    default:
      return false;
  }
}

}  // namespace

// What was packed lies between the positions before and after.
void MpiResults::AddPacked(const preload::MpiEnter& enter) {
  const int packed = call_.info->Find(Role::kOutPacked);
  if (packed < 0 || !Succeeded()) return;
  const int narrow = call_.info->Find(Role::kInOutInt);
  const int wide = call_.info->Find(Role::kInOutSize);
  if (narrow < 0 && wide < 0) return;
  const auto at = static_cast<size_t>(narrow < 0 ? wide : narrow);
  const uint64_t from = enter.args[at];
  const uint64_t to =
      narrow < 0 ? ValueAt<uint64_t>(call_.args[at]) : ValueAt<int32_t>(call_.args[at]);
  if (to > from)
    WriteTensor({static_cast<const std::byte*>(Pointer(call_.args[packed] + from)), to - from},
                format::kRawBytes, static_cast<uint32_t>(packed));
}

void MpiResults::WriteLeave(const MpiHandlesBefore& before, const MpiStatuses& statuses) {
  format::CallLeave leave;
  leave.enter_seq = enter_seq_;
  leave.result = static_cast<int32_t>(call_.result);
  for (uint32_t i = 0; i < call_.info->param_count; ++i)
    if (HasOut(call_.info->params[i].role)) leave.outs.push_back(Out(i, before, statuses));
  leave.blob = blob_.view();
  rec_.writer.Write(leave);
}

}  // namespace deja::recorder
