// What a call of MPI's leaves: the statuses and requests around it, and the record of its results.
//
// On the caller's stack; arrays that are longer than usual are mapped. Any thread.
#ifndef DEJA_RECORDER_MPI_MPI_RESULTS_H_
#define DEJA_RECORDER_MPI_MPI_RESULTS_H_

#include <cstddef>
#include <cstdint>

#include "preload/calls/mpi_call.h"
#include "recorder/core/recording.h"
#include "recorder/events/blob.h"
#include "recorder/mpi/mpi_state.h"

namespace deja::recorder {

// Memory for `count` things of `element` bytes, zeroed.
class Room {
 public:
  Room() = default;
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  // Null if there is no memory.
  std::byte* Get(size_t bytes);

 private:
  static constexpr size_t kLocal = 1536;
  alignas(8) std::byte local_[kLocal] = {};
  std::byte* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// The statuses of a call, wherever the program wants them. If it does not want them, the call gets
// room of ours: how much was received stands there.
class MpiStatuses {
 public:
  explicit MpiStatuses(preload::Call& call);
  // Changes the argument of the call, if it has to; and puts the program's back.
  void Substitute();
  void Restore();
  [[nodiscard]] bool wanted() const { return arg_ >= 0 && room_ == nullptr; }
  [[nodiscard]] const std::byte* at(size_t i) const;

 private:
  preload::Call& call_;
  int arg_ = -1;
  uint64_t programs_ = 0;
  const std::byte* address_ = nullptr;
  std::byte* room_ = nullptr;
  Room memory_;
};

// The handles that the call may end.
class MpiHandlesBefore {
 public:
  explicit MpiHandlesBefore(const preload::Call& call);
  // As they were before the call, and are now.
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] uint64_t operator[](size_t i) const { return taken_[i].handle; }
  [[nodiscard]] uint64_t Now(size_t i) const;
  [[nodiscard]] uint32_t Request(size_t i) const { return taken_[i].request; }
  // Around the call; End when nothing is asked about the ended ones any more.
  void Take(MpiState& mpi);
  void PutBack(MpiState& mpi);
  void End(MpiState& mpi);

 private:
  uint64_t address_ = 0;
  size_t count_ = 0;
  MpiState::Taken* taken_ = nullptr;
  Room memory_;
};

class MpiResults {
 public:
  MpiResults(Recording& rec, preload::Call& call, uint64_t enter_seq)
      : rec_(rec), call_(call), enter_seq_(enter_seq) {}

  // Memory that the call has written, its first `limit` bytes.
  void AddBuffer(const preload::MpiBuffer& buffer, uint64_t limit, uint32_t param);
  // The results of the requests that the call has ended.
  void AddRequests(const MpiHandlesBefore& before, const MpiStatuses& statuses);
  // CallLeave with the out-parameters.
  void WriteLeave(const MpiHandlesBefore& before, const MpiStatuses& statuses);
  void AddPacked(const preload::MpiEnter& enter);

 private:
  void WriteTensor(std::span<const std::byte> bytes, uint32_t dtype, uint32_t param);
  uint64_t Array(uint32_t param, const void* data, size_t bytes);
  uint64_t Out(uint32_t param, const MpiHandlesBefore& before, const MpiStatuses& statuses);
  uint64_t HandleArray(uint32_t param, const MpiHandlesBefore& before);
  uint64_t Attribute();
  void AddRequest(uint32_t request, size_t index, const std::byte* status);
  bool Succeeded() const { return call_.result == 0; }

  Recording& rec_;
  preload::Call& call_;
  const uint64_t enter_seq_;
  Blob blob_;
};

// The input of a call as its enter record shows it.
format::Tensor MpiTensor(Recording& rec, const preload::MpiBuffer& buffer);

// The value of the out-parameter `name` (an int), or `otherwise`.
int MpiOutInt(const preload::Call& call, std::string_view name, int otherwise);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_MPI_MPI_RESULTS_H_
