// NcclState: what the recorder knows of NCCL in this process.
//
// A part of Recording, made with it, never destroyed. The parts synchronise themselves.
#ifndef DEJA_RECORDER_NCCL_NCCL_STATE_H_
#define DEJA_RECORDER_NCCL_NCCL_STATE_H_

#include "recorder/core/recording.h"
#include "recorder/events/handle_table.h"
#include "recorder/nccl/comm_registry.h"
#include "recorder/nccl/device_reads.h"
#include "recorder/nccl/nccl_choices.h"
#include "recorder/nccl/pending_ops.h"

namespace deja::recorder {

struct NcclState {
  static constexpr RecordingPart kPart = RecordingPart::kNccl;

  explicit NcclState(Recording& recording) : device_reads(recording), choices(recording) {}

  CommRegistry comms;
  HandleTable handles;
  OpPool ops;
  DeviceReads device_reads;
  NcclChoices choices;
};

inline NcclState& NcclOf(Recording& recording) {
  return recording.Of<NcclState>();
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_NCCL_NCCL_STATE_H_
