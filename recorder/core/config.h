// What the environment says about this recording (common/env_vars.def).
//
// Read once per process, before anything is recorded. A process without DEJA_OUT is not recorded.
#ifndef DEJA_RECORDER_CORE_CONFIG_H_
#define DEJA_RECORDER_CORE_CONFIG_H_

#include <cstddef>
#include <cstdint>

#include "common/ids.h"
#include "format/log/rank_log.h"

namespace deja::recorder {

// --inputs
enum class InputMode : uint8_t { kOff, kDigest, kFull };

// No strings: it is read in the first hook, which may be inside the program's own allocator.
struct Config {
  Level level = Level::kFull;
  char trace_dir[4096] = {};
  char tail_dir[4096] = {};
  char python_dir[4096] = {};  // from which Python takes Deja's own modules
  char job_id[64] = {};
  size_t payload_bytes = 0;  // 0: the log's default
  uint64_t base_memory = 0;  // for differences to the step before
  bool fast_codec = false;
  bool device_digests = true;     // of device buffers are made by their device
  bool graph_nodes = true;        // may be added to the program's CUDA graphs
  uint64_t checkpoint_every = 0;  // steps; 0: only when the program asks
  bool drop_payloads = false;
  format::WindowOptions window;
  uint64_t hang_after_seconds = 0;
  int background_nice = 0;
  bool background_idle_io = false;
  char background_cpus[256] = {};
  uint32_t copies = 1;  // of payloads that ranks of this machine share; 0: they share nothing
  int single_pid = 0;   // the process that is a rank from its start; 0: none is
  InputMode inputs = InputMode::kDigest;
  bool order_locks = false;  // --threads
  // Patterns of paths, each with a newline after it (common/input_rule.h).
  char inputs_include[4096] = {};
  char inputs_exclude[4096] = {};
  // Patterns of names (common/secrets/secrets.h).
  char keep_env[4096] = {};
  char mask[4096] = {};
};

// False if this process is not to be recorded.
bool ReadConfig(Config& config);
// `is_child`: of a process that may well be short.
format::RankLogOptions LogOptions(const Config& config, bool is_child = false);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_CONFIG_H_
