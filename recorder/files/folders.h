// RecordedFolders: what folders held when the program opened them: InputFile events with entries.
//
// Any thread, inside the guard. The C library goes on listing them.
#ifndef DEJA_RECORDER_FILES_FOLDERS_H_
#define DEJA_RECORDER_FILES_FOLDERS_H_

#include "preload/calls/folders.h"

namespace deja::recorder {

class Recording;

class RecordedFolders final : public preload::FolderLayer {
 public:
  // `find()` gives the process's recording, or null.
  explicit constexpr RecordedFolders(Recording* (*find)()) : find_(find) {}

  void OnOpened(DIR* stream, const char* path) override;
  bool Serves(DIR*) override { return false; }
  dirent* Next(DIR*) override { return nullptr; }
  long Position(DIR*) override { return 0; }
  void SetPosition(DIR*, long) override {}
  void OnClosed(DIR*) override {}

 private:
  Recording* (*find_)();
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_FOLDERS_H_
