#include "replayer/core/replayer.h"

#include <sys/wait.h>

#include <cstdio>
#include <optional>

#include "preload/process/process_name.h"
#include "replayer/process/claim.h"

namespace deja::replayer {

void Replayer::Refuse(const char* what, const char* target, const char* option) const {
  char text[512];
  snprintf(text, sizeof text, "%s %s was refused: a replay reaches nothing outside itself%s%s",
           what, target, option != nullptr ? "; allow it with deja replay … " : "",
           option != nullptr ? option : "");
  Say(text);
  RefusedLine line{.what = what, .target = target, .option = std::nullopt};
  if (option != nullptr) line.option = option;
  report.Write(line);
}

void Replayer::ReportLive() {
  if (!preload::HasProcessName() || live_told_.exchange(true)) return;
  const preload::ProcessName& name = preload::OwnProcessName();
  // One that was killed at once had done nothing yet: there is nothing that could have been lost.
  if (inherited != nullptr) {
    const auto status = inherited->StatusOf(static_cast<uint32_t>(name.recorded_pid));
    if (status && WIFSIGNALED(*status)) return;
  }
  report.Write(ChildLiveLine{.name = name.path, .pid = OwnPid()});
}

}  // namespace deja::replayer
