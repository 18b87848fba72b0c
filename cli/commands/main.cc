// deja: the command line. Parses, runs one command, maps errors to exit codes; everything else is
// in cmd_*.cc.
#include <algorithm>
#include <cstring>
#include <memory>

#include "cli/commands/command.h"
#include "cli/output.h"
#include "cli/replay/start/fenced_start.h"
#include "cli/version.h"

namespace deja::cli {
namespace {

constexpr const char* kDescription =
    "Deja records a distributed training run on every rank and replays any rank alone, bit for "
    "bit, in gdb.";

constexpr const char* kFooter =
    "Start with:\n"
    "  deja record --loopback -n 4 --out run.deja -- ./train    record four ranks on this machine\n"
    "  deja record --out run.deja -- torchrun train.py          record a job with its own "
    "launcher\n"
    "  deja info run.deja                                       how each rank ended\n"
    "  deja replay run.deja --rank 2 --gdb                      run rank 2 again, alone, in gdb\n"
    "\n"
    "Exit status: 0 ok, 1 failure, 2 usage, 3 finished with data loss, 4 diverged; `record` and "
    "`launch` exit as\n"
    "the job did. `deja COMMAND --help` explains a command.";

int Run(int argc, char** argv) {
  Context context;
  auto separator =
      std::find_if(argv + 1, argv + argc, [](const char* a) { return std::strcmp(a, "--") == 0; });
  bool has_program = separator != argv + argc;
  if (has_program) context.program.assign(separator + 1, argv + argc);

  CLI::App app(kDescription, "deja");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("deja ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::vector<CLI::App*> subcommands;
  for (const Command* command : Commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->footer(std::string("Examples:\n") + command->examples);
    command->add_options(*sub);
    sub->add_flag("--json", context.json, "Print the result as JSON");
    subcommands.push_back(sub);
  }
  bool known = argc < 2 || argv[1][0] == '-' ||
               std::any_of(Commands().begin(), Commands().end(),
                           [&](const Command* c) { return std::strcmp(c->name, argv[1]) == 0; });
  if (!known) {
    Diagnose(fmt::format("there is no command '{}'; `deja --help` lists them", argv[1]));
    return kExitUsage;
  }
  try {
    app.parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e) == 0 ? kExitOk : kExitUsage;
    Diagnose(e.what());
    Diagnose("see `deja --help`, or `deja COMMAND --help`");
    return kExitUsage;
  }
  for (size_t i = 0; i < subcommands.size(); ++i) {
    const Command& command = *Commands()[i];
    if (!subcommands[i]->parsed()) continue;
    if (has_program && !command.takes_program) {
      Diagnose(fmt::format("{} takes no program behind `--`; see `deja {} --help`", command.name,
                           command.name));
      return kExitUsage;
    }
    return command.run(context);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace deja::cli

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], deja::cli::kRunFenced) == 0)
    return deja::cli::RunFenced(argc, argv);
  return deja::cli::Run(argc, argv);
}
