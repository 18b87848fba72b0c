// FileState: what the recorder knows of files in this process.
//
// A part of Recording, made with it, never destroyed. The parts synchronise themselves.
#ifndef DEJA_RECORDER_FILES_FILE_STATE_H_
#define DEJA_RECORDER_FILES_FILE_STATE_H_

#include "recorder/core/recording.h"
#include "recorder/files/input_files.h"
#include "recorder/files/machine_files.h"

namespace deja::recorder {

struct FileState {
  static constexpr RecordingPart kPart = RecordingPart::kFiles;

  explicit FileState(const Config& config) : inputs(config) {}

  MachineRecorder machine;
  InputFiles inputs;
};

inline FileState& FilesOf(Recording& recording) {
  return recording.Of<FileState>();
}

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_FILE_STATE_H_
