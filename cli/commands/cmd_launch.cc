// deja launch: N ranks on this machine without recording, i.e. `deja record` without Deja.
#include "cli/command.h"
#include "cli/install_layout.h"
#include "cli/output.h"
#include "cli/record/launcher.h"

namespace deja::cli {
namespace {

int g_ranks = 0;
double g_grace = 5;

void AddLaunchOptions(CLI::App& app) {
  app.add_option("-n,--ranks", g_ranks, "Number of ranks")->required()->check(CLI::Range(1, 4096));
  app.add_option("--grace", g_grace,
                 "Seconds that the other ranks have when one failed, before they are terminated")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

int RunLaunch(const Context& context) {
  if (context.program.empty()) {
    Diagnose("launching: no program is given; write it after `--`: deja launch -n 4 -- ./train");
    return kExitUsage;
  }
  auto loopback = FindLoopbackDirectory();
  if (!loopback) return FailWith(loopback.error());
  LaunchOptions options;
  options.program = context.program;
  options.ranks = g_ranks;
  options.loopback_directory = *loopback;
  options.grace = std::chrono::milliseconds(static_cast<int64_t>(g_grace * 1000));
  JobEnd job = RunJob(options);
  if (!job.start_error.empty()) Diagnose(job.start_error);
  if (context.json) {
    nlohmann::json ranks = nlohmann::json::array();
    for (const ProcessEnd& end : job.ends)
      if (end.rank >= 0)
        ranks.push_back({{"rank", end.rank}, {"exit_code", end.exit_code}, {"signal", end.signal}});
    PrintJson({{"exit_code", job.exit_code}, {"ranks", ranks}});
  }
  return job.exit_code;
}

}  // namespace

extern const Command kLaunchCommand;
const Command kLaunchCommand = {
    "launch",
    "Run N ranks on this machine, in host memory, without recording",
    "  deja launch -n 4 -- build/examples/digits/digits_train\n"
    "  deja launch -n 2 -- bash -c 'echo rank $RANK of $WORLD_SIZE'\n",
    true,
    AddLaunchOptions,
    RunLaunch,
};

}  // namespace deja::cli
