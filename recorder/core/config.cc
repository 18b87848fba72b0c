#include "recorder/core/config.h"

#include <cstdlib>
#include <cstring>

namespace deja::recorder {
namespace {

// False, and nothing is copied, if the variable is not set or too long.
template <size_t N>
bool CopyVariable(const char* name, char (&to)[N]) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  const size_t length = std::strlen(value);
  if (length >= N) return false;
  std::memcpy(to, value, length + 1);
  return true;
}

uint64_t NumberOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

// Of the job; where no launcher says how many are on this machine, they may all be.
uint64_t RanksOnThisMachine() {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_NTASKS_PER_NODE", "WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    if (const uint64_t ranks = NumberOf(name); ranks != 0) return ranks;
  }
  return 1;
}

}  // namespace

bool ReadConfig(Config& config) {
  if (!CopyVariable("DEJA_OUT", config.trace_dir) || config.trace_dir[0] != '/') return false;
  CopyVariable("DEJA_TAIL_DIR", config.tail_dir);
  CopyVariable("DEJA_PYTHON", config.python_dir);
  CopyVariable("DEJA_JOB_ID", config.job_id);
  if (const char* level = std::getenv("DEJA_LEVEL")) {
    if (std::strcmp(level, "order") == 0) config.level = Level::kOrder;
    if (std::strcmp(level, "digest") == 0) config.level = Level::kDigest;
  }
  if (const char* buffer = std::getenv("DEJA_BUFFER"))
    config.payload_bytes = static_cast<size_t>(std::strtoull(buffer, nullptr, 10));
  config.checkpoint_every = NumberOf("DEJA_CHECKPOINT_EVERY");
  if (const char* single = std::getenv("DEJA_SINGLE")) config.single_pid = std::atoi(single);
  config.base_memory = NumberOf("DEJA_DELTA_MEMORY");
  const char* codec = std::getenv("DEJA_CODEC");
  config.fast_codec = codec != nullptr && std::strcmp(codec, "fast") == 0;
  const char* digests = std::getenv("DEJA_DEVICE_DIGESTS");
  config.device_digests = digests == nullptr || std::strcmp(digests, "host") != 0;
  const char* graphs = std::getenv("DEJA_CUDA_GRAPHS");
  config.graph_nodes = graphs == nullptr || std::strcmp(graphs, "leave") != 0;
  const char* pressure = std::getenv("DEJA_ON_PRESSURE");
  config.drop_payloads = pressure != nullptr && std::strcmp(pressure, "drop-payload") == 0;
  if (const char* copies = std::getenv("DEJA_REDUNDANCY"))
    config.copies = static_cast<uint32_t>(std::strtoul(copies, nullptr, 10));
  config.window.keep_steps = NumberOf("DEJA_KEEP_STEPS");
  config.window.keep_bytes = NumberOf("DEJA_KEEP_BYTES");
  config.window.keep_seconds = NumberOf("DEJA_KEEP_SECONDS");
  config.window.disk_budget = NumberOf("DEJA_DISK_BUDGET");
  config.window.machine_ranks = RanksOnThisMachine();
  config.hang_after_seconds = NumberOf("DEJA_HANG_AFTER");
  config.background_nice = static_cast<int>(NumberOf("DEJA_BACKGROUND_NICE"));
  config.background_idle_io = NumberOf("DEJA_BACKGROUND_IDLE_IO") != 0;
  CopyVariable("DEJA_BACKGROUND_CPUS", config.background_cpus);
  if (const char* inputs = std::getenv("DEJA_INPUTS")) {
    if (std::strcmp(inputs, "off") == 0) config.inputs = InputMode::kOff;
    if (std::strcmp(inputs, "full") == 0) config.inputs = InputMode::kFull;
  }
  const char* threads = std::getenv("DEJA_THREADS");
  config.order_locks = threads != nullptr && std::strcmp(threads, "order") == 0;
  CopyVariable("DEJA_INPUTS_INCLUDE", config.inputs_include);
  CopyVariable("DEJA_INPUTS_EXCLUDE", config.inputs_exclude);
  CopyVariable("DEJA_KEEP_ENV", config.keep_env);
  CopyVariable("DEJA_MASK", config.mask);
  return true;
}

format::RankLogOptions LogOptions(const Config& config, bool is_child) {
  format::RankLogOptions options;
  options.trace_dir = config.trace_dir;
  if (config.tail_dir[0] != '\0') options.tail_dir = config.tail_dir;
  options.job_id = config.job_id;
  if (config.payload_bytes != 0) options.payload_bytes = config.payload_bytes;
  // A difference is one more pass over the bytes.
  options.base_memory = config.fast_codec ? 0 : config.base_memory;
  if (config.fast_codec) options.effort = format::CodecEffort::kFast;
  options.copies = config.copies;
  options.window = config.window;
  options.hang_after_seconds = config.hang_after_seconds;
  options.background = {config.background_nice, config.background_idle_io, config.background_cpus};
  if (config.drop_payloads) options.on_pressure = format::PressurePolicy::kDropPayload;
  if (is_child) options.first_payload_bytes = 64 << 10;
  return options;
}

}  // namespace deja::recorder
