#include "replayer/core/replay_variables.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "preload/process/own_variables.h"

namespace deja::replayer {

const char* Environment(const char* name) {
  const char* value = preload::OwnVariable(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string FolderAround(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string Text(const char* variable) {
  const char* value = Environment(variable);
  return value == nullptr ? std::string() : std::string(value);
}

uint64_t NumberIn(const char* variable) {
  const char* text = Environment(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

void SetGoals(SessionOptions& options) {
  options.checkpoint = NumberIn("DEJA_FROM_CHECKPOINT");
  options.is_late = options.checkpoint != 0;
  options.until_step = NumberIn("DEJA_UNTIL_STEP");
  options.until_comm = static_cast<uint32_t>(NumberIn("DEJA_UNTIL_COMM"));
  options.until_seq = NumberIn("DEJA_UNTIL_SEQ");
  options.hold = Environment("DEJA_HOLD") != nullptr;
  options.fold = Text("DEJA_FOLD");
  options.out = Text("DEJA_OUT");
  if (options.out.empty()) return;
  options.job_id = Text("DEJA_JOB_ID");
  options.recording = Text("DEJA_RECORDING");
}

void SetModes(SessionOptions& options) {
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) != nullptr) options.working_directory = here;
  const char* mode = Environment("DEJA_ON_DIVERGENCE");
  options.stop_on_divergence = mode == nullptr || std::strcmp(mode, "warn") != 0;
  const char* clock = Environment("DEJA_CLOCK");
  if (clock != nullptr && std::strcmp(clock, "live") == 0) options.clocks = ClockMode::kLive;
  if (clock != nullptr && std::strcmp(clock, "day") == 0) options.clocks = ClockMode::kDay;
}

}  // namespace deja::replayer
