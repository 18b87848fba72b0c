#include "replayer/core/replay_variables.h"

#include <unistd.h>

#include <climits>

#include "common/env_vars.h"
#include "preload/process/own_variables.h"

namespace deja::replayer {

const char* Environment(const env::Text& variable) {
  const char* value = preload::OwnVariable(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string FolderAround(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string Text(const env::Text& variable) {
  const char* value = Environment(variable);
  return value == nullptr ? std::string() : std::string(value);
}

void SetGoals(SessionOptions& options) {
  options.checkpoint = preload::OwnNumber(env::kFromCheckpoint);
  options.is_late = options.checkpoint != 0;
  options.until_step = preload::OwnNumber(env::kUntilStep);
  options.until_comm = static_cast<uint32_t>(preload::OwnNumber(env::kUntilComm));
  options.until_seq = preload::OwnNumber(env::kUntilSeq);
  options.hold = preload::OwnFlag(env::kHold);
  options.fold = Text(env::kFold);
  options.out = Text(env::kOut);
  if (options.out.empty()) return;
  options.job_id = Text(env::kJobId);
  options.recording = Text(env::kRecording);
}

void SetModes(SessionOptions& options) {
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) != nullptr) options.working_directory = here;
  options.stop_on_divergence = !preload::OwnVariableIs(env::kOnDivergence, "warn");
  if (preload::OwnVariableIs(env::kClock, "live")) options.clocks = ClockMode::kLive;
  if (preload::OwnVariableIs(env::kClock, "day")) options.clocks = ClockMode::kDay;
}

}  // namespace deja::replayer
