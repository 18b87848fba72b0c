// NextProgram: which program a process is about to become by exec, with its arguments.
//
// A value without pointers. A vfork child leaves one in the memory of its parent, and its arguments
// are gone when the parent goes on. Any thread. No allocation. Async-signal-safe.
#ifndef DEJA_PRELOAD_PROCESS_NEXT_PROGRAM_H_
#define DEJA_PRELOAD_PROCESS_NEXT_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace deja::preload {

class NextProgram {
 public:
  static constexpr size_t kMostPath = 512;
  static constexpr size_t kMostArguments = 1024;

  NextProgram() = default;
  // `path`: as exec got it; null or empty: not known (a descriptor).
  NextProgram(const char* path, char* const* argv);
  // The same of a name without a slash, which is looked for in PATH as execvp does.
  static NextProgram InPath(const char* file, char* const* argv);

  // Empty: not known.
  [[nodiscard]] std::string_view path() const { return {path_.data(), path_size_}; }
  // Each ends with a zero. The last one does not where there was no more room.
  [[nodiscard]] std::string_view arguments() const { return {arguments_.data(), arguments_size_}; }
  // It calls the system by shared libraries, where Deja's comes first, or that is not known. Static
  // programs and those of Go do not.
  [[nodiscard]] bool records_itself() const { return records_itself_; }

  // Looks into the program's file. Makes system calls.
  void FindWhetherRecorded();

 private:
  void SetPath(std::string_view path);

  std::array<char, kMostPath> path_ = {};
  std::array<char, kMostArguments> arguments_ = {};
  uint16_t path_size_ = 0;
  uint16_t arguments_size_ = 0;
  bool records_itself_ = true;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_NEXT_PROGRAM_H_
