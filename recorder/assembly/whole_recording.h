// WholeRecording: a recording with the parts of all rooms. The one place that knows them all.
//
// Made by the process's Recorder on the first event, never destroyed.
#ifndef DEJA_RECORDER_ASSEMBLY_WHOLE_RECORDING_H_
#define DEJA_RECORDER_ASSEMBLY_WHOLE_RECORDING_H_

#include <new>

#include "recorder/core/recording.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/file_state.h"
#include "recorder/inputs/input_state.h"
#include "recorder/mpi/mpi_state.h"
#include "recorder/nccl/nccl_state.h"
#include "recorder/steps/step_state.h"

namespace deja::recorder {

class WholeRecording final : public Recording {
 public:
  WholeRecording(const Config& recorded_config, LogFactory make_log)
      : Recording(recorded_config, make_log), nccl_(*this), mpi_(writer), files_(config) {
    SetPart(nccl_);
    SetPart(mpi_);
    SetPart(files_);
    SetPart(inputs_);
    SetPart(steps_);
  }

  // In memory of its own; null: there is none.
  static Recording* Make(const Config& config, LogFactory make_log) {
    void* memory = MapZeroed(sizeof(WholeRecording));
    return memory == nullptr ? nullptr : new (memory) WholeRecording(config, make_log);
  }

 private:
  NcclState nccl_;
  MpiState mpi_;
  FileState files_;
  InputState inputs_;
  StepState steps_;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_ASSEMBLY_WHOLE_RECORDING_H_
