// MpiRecorder: makes calls of MPI for real and writes them down.
//
// One per process, never destroyed. Any thread, under the guard. errno is left as the real call
// left it.
#ifndef DEJA_RECORDER_MPI_MPI_RECORDER_H_
#define DEJA_RECORDER_MPI_MPI_RECORDER_H_

#include "common/runtime/errno_keeper.h"
#include "preload/calls/mpi_calls.h"
#include "recorder/core/recorder.h"
#include "recorder/mpi/mpi_state.h"

namespace deja::recorder {

class MpiRecorder : public preload::MpiCalls {
 public:
  explicit MpiRecorder(Recorder& recorder) : recorder_(recorder) {}

  void OnMpiCall(preload::Call& call) override;

 private:
  void RecordMpi(Recording& rec, preload::Call& call);
  static void RecordMpiPoll(Recording& rec, preload::Call& call);

  Recorder& recorder_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_MPI_MPI_RECORDER_H_
