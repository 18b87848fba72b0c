// deja man: the manual pages.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "cli/help/command_line.h"
#include "cli/help/man_page.h"
#include "cli/help/nearest_name.h"
#include "cli/help/option_list.h"
#include "cli/output.h"

namespace deja::cli {
namespace {

struct ManOptions {
  std::string command;
  std::string out;
};
ManOptions g_man_options;

void AddManOptions(CLI::App& app) {
  CLI::Option* command = app.add_option("COMMAND", g_man_options.command,
                                        "The page of this command (default: of deja)")
                             ->type_name("{" + CLI::detail::join(CommandNames(), ",") + "}");
  app.add_option("-o,--out", g_man_options.out, "Write all pages into this folder instead")
      ->type_name(kPathType)
      ->excludes(command);
}

Status WritePage(const std::string& folder, const std::string& name, const std::string& page) {
  std::ofstream out(folder + "/" + name);
  out << page;
  out.close();
  if (!out) return FailErrno("writing: " + folder + "/" + name, errno);
  return {};
}

Status WritePages(const CommandLine& line, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailErrno("making: " + folder, error.value());
  DEJA_RETURN_IF_ERROR(WritePage(folder, ManPageFile(nullptr), ProgramManPage(*line.app)));
  for (const Command* command : Commands())
    DEJA_RETURN_IF_ERROR(WritePage(folder, ManPageFile(command),
                                   CommandManPage(*command, *line.Find(command->name))));
  return {};
}

int RunMan(const Context& context) {
  const ManOptions options = g_man_options;
  bool unused = false;
  const CommandLine line = MakeCommandLine(unused);
  if (!options.out.empty()) {
    if (const Status written = WritePages(line, options.out); !written)
      return FailWith(written.error());
    if (context.json) PrintJson({{"folder", options.out}, {"pages", Commands().size() + 1}});
    return kExitOk;
  }
  std::string page;
  if (options.command.empty()) page = ProgramManPage(*line.app);
  for (const Command* command : Commands())
    if (command->name == options.command)
      page = CommandManPage(*command, *line.Find(command->name));
  if (page.empty()) {
    Diagnose(fmt::format("man: there is no command '{}'{}", options.command,
                         DidYouMean(options.command, CommandNames())));
    return kExitUsage;
  }
  if (context.json)
    PrintJson({{"page", page}});
  else
    PrintLines(page);
  return kExitOk;
}

}  // namespace

extern const Command kManCommand;
const Command kManCommand = {
    "man",
    "Print the manual page of a command",
    "  deja man record | man -l -           read it\n"
    "  deja man --out ~/.local/share/man/man1    for `man deja` and `man deja-record`\n",
    false,
    AddManOptions,
    RunMan,
};

}  // namespace deja::cli
