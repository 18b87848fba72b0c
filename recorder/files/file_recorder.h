// FileRecorder: writes down which files and folders the program opens and asks about.
//
// One per process, never destroyed. Any thread, under the guard. errno is kept.
#ifndef DEJA_RECORDER_FILES_FILE_RECORDER_H_
#define DEJA_RECORDER_FILES_FILE_RECORDER_H_

#include <cstddef>
#include <span>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/file_calls.h"
#include "recorder/core/recorder.h"
#include "recorder/files/file_state.h"

namespace deja::recorder {

class FileRecorder : public preload::FileCalls {
 public:
  explicit FileRecorder(Recorder& recorder) : recorder_(recorder) {}

  const char* MapPath(int dirfd, const char* path, preload::FileUse use,
                      std::span<char> buffer) override;
  void BeforeUnmap(void* memory, size_t size) override;
  preload::FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) override;
  void OnAnswered(int dirfd, const char* path, preload::FileUse use, int error) override;
  void OnTaken(int dirfd, const char* path) override;
  void ReleasePath(const char* mapped) override { MachineRecorder::Release(mapped); }
  preload::FolderLayer* Folders() override { return folders_; }
  // Before the first call.
  void SetFolders(preload::FolderLayer* layer) { folders_ = layer; }

 private:
  Recorder& recorder_;
  preload::FolderLayer* folders_ = nullptr;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_FILE_RECORDER_H_
