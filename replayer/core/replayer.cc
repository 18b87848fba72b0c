#include "replayer/core/replayer.h"

#include <sys/wait.h>

#include <cstdio>

#include "preload/process/process_name.h"
#include "replayer/core/claim.h"

namespace deja::replayer {

void Replayer::Refuse(const char* what, const char* target, const char* option) const {
  char text[512];
  snprintf(text, sizeof text, "%s %s was refused: a replay reaches nothing outside itself%s%s",
           what, target, option != nullptr ? "; to let it: deja replay … " : "",
           option != nullptr ? option : "");
  Say(text);
  JsonLine line("refused");
  line.Add("what", what);
  line.Add("target", target);
  if (option != nullptr) line.Add("option", option);
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
  JsonLine line("child-live");
  line.Add("name", name.path);
  line.Add("pid", OwnPid());
  report.Write(line);
}

}  // namespace deja::replayer
