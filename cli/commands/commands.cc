// The commands, in the order of the help. A new command is a cmd_<verb>.cc, a declaration and a row
// here; a test checks that none is forgotten.
#include <vector>

#include "cli/command.h"

namespace deja::cli {

extern const Command kRecordCommand;
extern const Command kLaunchCommand;
extern const Command kReplayCommand;
extern const Command kServeCommand;
extern const Command kTopCommand;
extern const Command kInfoCommand;
extern const Command kShowCommand;
extern const Command kCheckCommand;
extern const Command kReportCommand;
extern const Command kExportCommand;
extern const Command kDiffCommand;
extern const Command kBisectCommand;
extern const Command kVerifyCommand;
extern const Command kPackCommand;
extern const Command kUnpackCommand;
extern const Command kImportCommand;
extern const Command kMergeCommand;
extern const Command kRecoverCommand;
extern const Command kMarkCommand;
extern const Command kDoctorCommand;
extern const Command kHelpCommand;
extern const Command kManCommand;
extern const Command kCompletionCommand;

const std::vector<CommandGroup>& CommandGroups() {
  static const std::vector<CommandGroup> groups = {
      {"Record a job",
       {&kDoctorCommand, &kRecordCommand, &kLaunchCommand, &kTopCommand, &kMarkCommand}},
      {"Run it again", {&kReplayCommand, &kServeCommand}},
      {"Read and compare",
       {&kInfoCommand, &kShowCommand, &kCheckCommand, &kReportCommand, &kDiffCommand,
        &kBisectCommand, &kVerifyCommand}},
      {"Keep and pass on",
       {&kPackCommand, &kUnpackCommand, &kMergeCommand, &kExportCommand, &kImportCommand,
        &kRecoverCommand}},
      {"Help", {&kHelpCommand, &kManCommand, &kCompletionCommand}},
  };
  return groups;
}

std::span<const Command* const> Commands() {
  static const std::vector<const Command*> commands = [] {
    std::vector<const Command*> all;
    for (const CommandGroup& group : CommandGroups())
      all.insert(all.end(), group.commands.begin(), group.commands.end());
    return all;
  }();
  return commands;
}

}  // namespace deja::cli
