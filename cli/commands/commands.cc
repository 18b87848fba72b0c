// The commands, in the order of the help. A new command is a cmd_<verb>.cc, a declaration and a row
// here; a test checks that none is forgotten.
#include <array>

#include "cli/commands/command.h"

namespace deja::cli {

extern const Command kRecordCommand;
extern const Command kLaunchCommand;
extern const Command kReplayCommand;
extern const Command kInfoCommand;
extern const Command kShowCommand;
extern const Command kCheckCommand;
extern const Command kDiffCommand;
extern const Command kBisectCommand;
extern const Command kVerifyCommand;
extern const Command kPackCommand;
extern const Command kUnpackCommand;
extern const Command kRecoverCommand;
extern const Command kMarkCommand;
extern const Command kDoctorCommand;

std::span<const Command* const> Commands() {
  static constexpr std::array kCommands = {
      &kDoctorCommand, &kRecordCommand, &kLaunchCommand, &kMarkCommand,    &kReplayCommand,
      &kInfoCommand,   &kShowCommand,   &kCheckCommand,  &kDiffCommand,    &kBisectCommand,
      &kVerifyCommand, &kPackCommand,   &kUnpackCommand, &kRecoverCommand,
  };
  return kCommands;
}

}  // namespace deja::cli
