// ProcessFacts: what a replay has to know about the recorded process, for the trace's header.
//
// Begin() runs in the first hook and takes what the program may change later (working directory,
// arguments, environment); it calls no malloc. Complete() gathers the rest when the process becomes
// a rank. The views of Fill() live as long as the object.
#ifndef DEJA_RECORDER_FACTS_PROCESS_FACTS_H_
#define DEJA_RECORDER_FACTS_PROCESS_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/process/memory_cgroup.h"
#include "common/secrets/secrets.h"
#include "format/wire/messages.h"

namespace deja::recorder {

class ProcessFacts {
 public:
  void Begin();
  // `nccl_path`, `nccl_version`: the library that serves NCCL's calls. What `rule` says is masked
  // here: from here on there is no copy of it that anything could write down.
  void Complete(const char* nccl_path, uint32_t nccl_version, const SecretRule& rule);
  void Fill(format::TraceHeader& header) const;
  // By the system's clock; 0 before Begin.
  [[nodiscard]] uint64_t start_wall_ns() const { return start_wall_ns_; }

 private:
  // A file of /proc as it was, in mapped memory.
  struct RawFile {
    char* data = nullptr;
    size_t size = 0;
    void Read(const char* path);
    void Forget();
  };
  void NoteMasked(const std::string& what, std::string_view rule);
  void TakeArguments(const SecretRule& rule);
  void TakeEnvironment(const SecretRule& rule);
  RawFile raw_arguments_;
  RawFile raw_environment_;
  char working_directory_[4096] = {};
  std::string hostname_;
  std::string executable_;
  std::string build_id_;
  std::vector<std::string> argv_;
  std::vector<std::string> environment_;
  std::vector<std::string> masked_;
  std::vector<std::string_view> masked_by_;  // static texts
  std::string cpu_model_;
  std::string cpu_features_;
  std::string user_;
  uint64_t memory_bytes_ = 0;
  uint32_t umask_ = 0;
  uint64_t inherited_ = 0;
  CgroupCount cgroup_;
  std::string kernel_;
  std::string nccl_path_;
  uint32_t nccl_version_ = 0;
  uint32_t pid_ = 0;
  uint32_t parent_pid_ = 0;
  uint32_t cpu_count_ = 0;
  uint64_t page_size_ = 0;
  uint64_t start_wall_ns_ = 0;
  uint64_t start_mono_ns_ = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FACTS_PROCESS_FACTS_H_
