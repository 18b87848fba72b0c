// NCCL as the trainer uses it: float and integer arrays of a device, its stream unless another one
// is named, and an error ends the process after saying which call failed.
#ifndef DEJA_EXAMPLES_DIGITS_COMMS_H_
#define DEJA_EXAMPLES_DIGITS_COMMS_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/device.h"

namespace digits {

// This process among those of the job, from the variables of torchrun, Open MPI, PMI or Slurm.
struct Job {
  int rank = 0;
  int size = 1;
};
Job JobFromEnvironment();

template <class T>
constexpr ncclDataType_t kNcclType = ncclUint8;
template <>
inline constexpr ncclDataType_t kNcclType<float> = ncclFloat32;
template <>
inline constexpr ncclDataType_t kNcclType<int32_t> = ncclInt32;
template <>
inline constexpr ncclDataType_t kNcclType<uint64_t> = ncclUint64;

// Several threads may use one communicator, but not at a time. `what` names the data in messages.
class Communicator {
 public:
  // All ranks of the job, which compute on `device`. The id comes from NCCL_COMM_ID, or through
  // `id_file` when that is not empty.
  Communicator(const Job& job, const Device& device, const std::string& id_file);
  // Those ranks of `parent` that have the same `color`, ordered by `key`.
  Communicator(const Communicator& parent, const char* name, int color, int key);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  template <class T>
  void Broadcast(T* data, size_t count, int root, const char* what) const {
    Check(ncclBroadcast(data, data, count, kNcclType<T>, root, comm_, stream_), "ncclBroadcast",
          what);
  }
  template <class T>
  void AllReduceSum(T* data, size_t count, Stream stream, const char* what) const {
    Check(ncclAllReduce(data, data, count, kNcclType<T>, ncclSum, comm_, stream), "ncclAllReduce",
          what);
  }
  // `all` holds size() parts of `count`; this rank's lies where it belongs already.
  template <class T>
  void AllGather(T* all, size_t count, const char* what) const {
    Check(ncclAllGather(all + count * static_cast<size_t>(rank_), all, count, kNcclType<T>, comm_,
                        stream_),
          "ncclAllGather", what);
  }
  // `all` holds size() parts of `count`; part rank() becomes the sum over all ranks.
  template <class T>
  void ReduceScatterSum(T* all, size_t count, const char* what) const {
    Check(ncclReduceScatter(all, all + count * static_cast<size_t>(rank_), count, kNcclType<T>,
                            ncclSum, comm_, stream_),
          "ncclReduceScatter", what);
  }
  template <class T>
  void Send(const T* data, size_t count, int peer, const char* what) const {
    Check(ncclSend(data, count, kNcclType<T>, peer, comm_, stream_), "ncclSend", what);
  }
  template <class T>
  void Receive(T* data, size_t count, int peer, const char* what) const {
    Check(ncclRecv(data, count, kNcclType<T>, peer, comm_, stream_), "ncclRecv", what);
  }
  // Makes the sends and receives that `body` issues one group: they proceed together.
  template <class Body>
  void Group(const char* what, Body body) const {
    Check(ncclGroupStart(), "ncclGroupStart", what);
    body();
    Check(ncclGroupEnd(), "ncclGroupEnd", what);
  }

  // What became of operations after their calls had returned. By any thread at any time.
  void CheckForErrors() const;

 private:
  void Check(ncclResult_t result, const char* call, const char* what) const;

  const char* name_;
  int job_rank_;
  int rank_ = 0;
  int size_ = 1;
  Stream stream_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_COMMS_H_
