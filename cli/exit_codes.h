// What the exit status of `deja` means (docs/CLI.md).
#ifndef DEJA_CLI_EXIT_CODES_H_
#define DEJA_CLI_EXIT_CODES_H_

namespace deja::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitDataLoss = 3,  // finished, but something that was or should have been recorded is missing
  kExitDiverged = 4,  // a replay, two traces, or (deja check) the ranks of one differ
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EXIT_CODES_H_
