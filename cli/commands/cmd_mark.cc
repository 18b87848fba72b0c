// deja mark: keep the window of a job that is being recorded.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output.h"
#include "format/layout/mark.h"

namespace deja::cli {
namespace {

struct MarkOptions {
  std::string trace;
  std::string reason = "deja mark";
};
MarkOptions g_mark_options;

void AddMarkOptions(CLI::App& app) {
  app.add_option("TRACE", g_mark_options.trace, "The trace directory of the running recording")
      ->required();
  app.add_option("--reason", g_mark_options.reason, "The reason, for `deja info` and `deja show`")
      ->capture_default_str();
}

// A recording process holds a shared lock on the file `job` (docs/FORMAT.md).
bool IsBeingRecorded(const std::string& trace) {
  const int fd = open((trace + "/job").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return !free;
}

int RunMark(const Context& context) {
  if (!IsBeingRecorded(g_mark_options.trace)) {
    Diagnose(fmt::format("marking: {}: no recording writes it; its last window is kept already",
                         g_mark_options.trace));
    return kExitFailure;
  }
  const auto number = format::LeaveMark(g_mark_options.trace, g_mark_options.reason);
  if (!number) return FailWith(number.error());
  if (context.json) {
    PrintJson(
        {{"trace", g_mark_options.trace}, {"mark", *number}, {"reason", g_mark_options.reason}});
  } else {
    PrintLine(
        fmt::format("mark {}: within a second every rank keeps its window for good and begins a "
                    "new one",
                    *number));
  }
  return kExitOk;
}

}  // namespace

extern const Command kMarkCommand;
const Command kMarkCommand = {
    "mark",
    "Keep the window of a running recording for good",
    "  deja mark run.deja\n"
    "  deja mark run.deja --reason 'the loss jumped'\n",
    false,
    AddMarkOptions,
    RunMark,
};

}  // namespace deja::cli
