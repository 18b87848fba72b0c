// ProgramFiles: what a program of Python consists of beside its executable and libraries. These are
// the modules that it loads, and the packages that are installed beside them. They are facts for a
// later question what has changed since (deja doctor RUN); a replay takes no notice of them.
//
// A module is known by its source, where that is there: Python may write compiled ones again at any
// time. Packages are the names of *.dist-info and *.egg-info in a folder from which a module came.
//
// One per Recording. Any thread, inside the guard; no lock, and memory straight from the kernel.
#ifndef DEJA_RECORDER_FILES_PROGRAM_FILES_H_
#define DEJA_RECORDER_FILES_PROGRAM_FILES_H_

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace deja::recorder {

class InputFiles;
class Recording;

class ProgramFiles {
 public:
  // The name is one of Python's modules.
  static bool IsModule(std::string_view path);

  // The program has opened a module. `path`: absolute; `info`: of the file.
  void Opened(Recording& rec, InputFiles& files, std::string_view path, const struct stat& info);

 private:
  // Records the packages of the folder `path` when its first module comes.
  void Packages(Recording& rec, InputFiles& files, std::string_view path);

  static constexpr size_t kMostFolders = 16;
  std::array<std::atomic<uint64_t>, kMostFolders> folders_{};  // hashes of their paths
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_PROGRAM_FILES_H_
