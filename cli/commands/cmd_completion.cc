// deja completion: what shells need to complete the command line.
#include "cli/command.h"
#include "cli/help/command_line.h"
#include "cli/help/completion.h"
#include "cli/output.h"

namespace deja::cli {
namespace {

std::string g_completed_shell;

void AddCompletionOptions(CLI::App& app) {
  app.add_option("SHELL", g_completed_shell, "The shell: bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(CompletedShells()));
}

int RunCompletion(const Context& context) {
  const std::string shell = g_completed_shell;
  bool unused = false;
  const CommandLine line = MakeCommandLine(unused);
  const std::string script = CompletionScript(shell, line);
  if (context.json)
    PrintJson({{"shell", shell}, {"script", script}});
  else
    PrintLines(script);
  return kExitOk;
}

}  // namespace

extern const Command kCompletionCommand;
const Command kCompletionCommand = {
    "completion",
    "Print what a shell needs to complete deja's command line",
    "  deja completion bash >~/.local/share/bash-completion/completions/deja\n"
    "  deja completion fish >~/.config/fish/completions/deja.fish\n"
    "  deja completion zsh >~/.zfunc/_deja    ~/.zfunc is in fpath\n"
    "`cmake --install` installs them for all three shells.\n",
    false,
    AddCompletionOptions,
    RunCompletion,
};

}  // namespace deja::cli
