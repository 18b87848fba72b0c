// FileReplayer: which file the program means by a name. There are three: one about the machine, one
// from the trace, or one of the overlay that takes what it writes.
//
// One per process, made with the engine, never destroyed. Any thread, within the guard unless its
// interface says otherwise. errno afterwards is the recording's.
#ifndef DEJA_REPLAYER_FILES_FILE_REPLAYER_H_
#define DEJA_REPLAYER_FILES_FILE_REPLAYER_H_

#include <dirent.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>

#include "preload/calls/file_calls.h"
#include "replayer/core/replayer.h"
#include "replayer/files/input_files.h"
#include "replayer/files/machine_files.h"
#include "replayer/files/overlay.h"
#include "replayer/files/served_folders.h"

namespace deja::replayer {

class FileReplayer : public preload::FileCalls {
 public:
  explicit FileReplayer(Replayer& replayer) : replayer_(replayer) {}

  // Where what the program writes goes.
  void Open() { overlay_.Open(replayer_.scratch); }
  // The process has a session.
  void Begin();
  // In a forked child: it has no session yet / it is one that goes on.
  static void Abandon();
  void OpenInChild();
  // What the recorded run made was not there before it. In the rank's first process.
  void HideCreatedFiles();
  // A child finds what the run made where a process of this replay has made it.
  void LearnCreatedFiles();
  // A child of the rank has what its parent's files were.
  void FillInherited();
  Overlay& overlay() { return overlay_; }

  const char* MapPath(int dirfd, const char* path, preload::FileUse use,
                      std::span<char> buffer) override;
  size_t UnmapPath(char* path, size_t size) override;
  preload::FolderLayer* Folders() override { return &folders_; }
  void OnStat(const char* mapped, int fd, struct stat& info) override;
  preload::FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) override;
  int OnOpenRefused(int dirfd, const char* path, int flags) override;

 private:
  // Says that the fence refused a file of this machine.
  void SayRefused(int dirfd, const char* path);
  std::string InputName(int dirfd, const char* path, bool& inside);
  bool IsOutside(int dirfd, const char* path);
  [[nodiscard]] bool KnowsWhatIsMissing() const;
  bool IsMissing(std::string_view name, preload::FileUse use);
  std::string OwnLinkTarget(int dirfd, const char* path);
  const char* MapFollowed(int dirfd, const char* path, preload::FileUse use,
                          std::span<char> buffer);
  const char* MapUnrecorded(int dirfd, const char* path, preload::FileUse use,
                            std::span<char> buffer);
  const char* MapInput(int dirfd, const char* path, preload::FileUse use, std::span<char> buffer);
  const char* MapNamed(int dirfd, const char* path, preload::FileUse use, std::span<char> buffer,
                       std::string& name);
  bool FindEntries(DIR* stream, const char* path, ServedFolders::Folder& folder);

  Replayer& replayer_;
  Overlay overlay_;
  MachineServer machine_files_;
  InputServer input_files_;
  ServedFolders folders_;
  std::atomic<int> refused_reads_{0};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_FILE_REPLAYER_H_
