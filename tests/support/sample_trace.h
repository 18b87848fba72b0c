// A small recording with something of everything, written by hand with the writer's parts: what
// tests of readers read, cut and damage.
#ifndef DEJA_TESTS_SUPPORT_SAMPLE_TRACE_H_
#define DEJA_TESTS_SUPPORT_SAMPLE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "format/wire/format_version.h"
#include "format/wire/messages.h"

namespace deja::format::samples {

struct SampleOptions {
  uint32_t rank = 0;
  int batches = 3;
  int events_per_batch = 8;  // at least 4
  bool payloads = true;
  size_t floats = 200;  // of the smallest payload
  bool finished = true;
  bool all_kinds = false;  // one more batch, with the kinds of events that the others do not have
  std::string tail_path = {};
  std::string tail_id = {};
  uint32_t format_major = kFormatMajor;
  uint32_t format_minor = kFormatMinor;
};

struct SampleRank {
  std::vector<std::byte> events_file;
  std::vector<std::byte> payloads_file;
  std::vector<std::string> events;                        // encoded, in the order of the file
  std::vector<std::pair<Hash128, std::string>> payloads;  // hash and bytes
};

Hash128 HashOf(const std::string& bytes);

// The same bytes for the same options, on every machine and forever: the golden trace is made of
// it.
SampleRank MakeSampleRank(const SampleOptions& options = {});

// Writes the rank's files into `folder`, which is made if need be.
void WriteSampleRank(const SampleRank& rank, const std::string& folder);

std::vector<std::byte> FileBytes(const std::string& path);
void WriteFileBytes(const std::string& path, const std::vector<std::byte>& bytes);

// A folder for one test, removed with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace deja::format::samples

#endif  // DEJA_TESTS_SUPPORT_SAMPLE_TRACE_H_
