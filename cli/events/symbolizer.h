// Symbolizer: names for recorded stack frames, from the binaries that are on this machine.
//
// A trace holds module paths, build ids and offsets. Names are looked up when the trace is read,
// also on another machine:
// - at the recorded path, if its build id is the recorded one
// - then in the folders given by AddDirectory, by file name and build id
//
// Separate debug information is found the usual ways (/usr/lib/debug/.build-id, .gnu_debuglink).
// What cannot be found is shown as module+0xoffset. The C library has functions, without lines.
//
// Owner: the caller. Not thread-safe. Uses elfutils.
#ifndef DEJA_CLI_EVENTS_SYMBOLIZER_H_
#define DEJA_CLI_EVENTS_SYMBOLIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace deja::cli {

struct SourceFrame {
  std::string function;  // demangled; empty if unknown
  std::string file;      // as the compiler got it; empty if unknown
  int line = 0;
  bool python = false;   // a function of Python's
  bool inlined = false;  // inlined into the frame that follows
  std::string module;    // path
  uint64_t offset = 0;

  // "sampler.cc:81", or "libfoo.so+0x1234" when there is no line.
  [[nodiscard]] std::string Place() const;
  // "Sampler::Next (sampler.cc:81)"; of Python "train.py:88 in train_step"
  [[nodiscard]] std::string Describe() const;
};

// The file is Deja's own library or Python module, or an NCCL, which is another one in a replay: no
// place in the program.
bool IsDejaModule(const std::string& path);

class Symbolizer {
 public:
  Symbolizer();
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  void AddDirectory(const std::string& directory);

  // Frames for one code address, innermost inlined function first; never empty.
  // `is_return_address`: the instruction that is meant is the one before.
  std::vector<SourceFrame> Resolve(const std::string& module_path, const std::string& build_id,
                                   uint64_t offset, bool is_return_address);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_SYMBOLIZER_H_
