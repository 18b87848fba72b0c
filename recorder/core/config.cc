#include "recorder/core/config.h"

#include <cstdlib>
#include <cstring>

#include "common/env_vars.h"
#include "preload/process/own_variables.h"

namespace deja::recorder {
namespace {

using preload::OwnFlag;
using preload::OwnNumber;
using preload::OwnVariableIs;

// False, and nothing is copied, if the variable is not set or too long.
template <size_t N>
bool CopyVariable(const env::Variable& variable, char (&to)[N]) {
  const char* value = preload::OwnVariable(variable);
  if (value == nullptr) return false;
  const size_t length = std::strlen(value);
  if (length >= N) return false;
  std::memcpy(to, value, length + 1);
  return true;
}

uint64_t NumberIn(const char* value) {
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

// The ranks of the job. Where no launcher says how many are on this machine, all of them may be.
uint64_t RanksOnThisMachine() {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_NTASKS_PER_NODE", "WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}) {
    if (const uint64_t ranks = NumberIn(std::getenv(name)); ranks != 0) return ranks;
  }
  return 1;
}

}  // namespace

bool ReadConfig(Config& config) {
  if (!CopyVariable(env::kOut, config.trace_dir) || config.trace_dir[0] != '/') return false;
  CopyVariable(env::kTailDir, config.tail_dir);
  CopyVariable(env::kPython, config.python_dir);
  CopyVariable(env::kJobId, config.job_id);
  if (OwnVariableIs(env::kLevel, "order")) config.level = Level::kOrder;
  if (OwnVariableIs(env::kLevel, "digest")) config.level = Level::kDigest;
  config.payload_bytes = OwnNumber(env::kBuffer);
  config.checkpoint_every = OwnNumber(env::kCheckpointEvery);
  config.single_pid = static_cast<int>(OwnNumber(env::kSingle));
  config.base_memory = OwnNumber(env::kDeltaMemory);
  config.fast_codec = OwnVariableIs(env::kCodec, "fast");
  config.device_digests = !OwnVariableIs(env::kDeviceDigests, "host");
  config.graph_nodes = !OwnVariableIs(env::kCudaGraphs, "leave");
  config.drop_payloads = OwnVariableIs(env::kOnPressure, "drop-payload");
  if (preload::OwnVariable(env::kRedundancy) != nullptr)
    config.copies = static_cast<uint32_t>(OwnNumber(env::kRedundancy));
  config.window.keep_steps = OwnNumber(env::kKeepSteps);
  config.window.keep_bytes = OwnNumber(env::kKeepBytes);
  config.window.keep_seconds = OwnNumber(env::kKeepSeconds);
  config.window.disk_budget = OwnNumber(env::kDiskBudget);
  config.window.machine_ranks = RanksOnThisMachine();
  config.hang_after_seconds = OwnNumber(env::kHangAfter);
  config.background_nice = static_cast<int>(OwnNumber(env::kBackgroundNice));
  config.background_idle_io = OwnFlag(env::kBackgroundIdleIo);
  CopyVariable(env::kBackgroundCpus, config.background_cpus);
  if (OwnVariableIs(env::kInputs, "off")) config.inputs = InputMode::kOff;
  if (OwnVariableIs(env::kInputs, "full")) config.inputs = InputMode::kFull;
  config.order_locks = OwnVariableIs(env::kThreads, "order");
  CopyVariable(env::kInputsInclude, config.inputs_include);
  CopyVariable(env::kInputsExclude, config.inputs_exclude);
  CopyVariable(env::kKeepEnv, config.keep_env);
  CopyVariable(env::kMask, config.mask);
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
