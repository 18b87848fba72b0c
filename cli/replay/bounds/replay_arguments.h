// ReplayArguments: what `deja replay` gets on its command line.
//
// A value; main thread only.
#ifndef DEJA_CLI_REPLAY_BOUNDS_REPLAY_ARGUMENTS_H_
#define DEJA_CLI_REPLAY_BOUNDS_REPLAY_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/replay/bounds/stop_condition.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

struct ReplayArguments {
  std::string trace;
  int rank = -1;
  int attempt = -1;
  std::string child;
  std::string ranks;
  bool all = false;
  bool compute = false;
  uint32_t devices = 0;
  size_t turns = 0;
  std::string on_divergence = "stop";
  std::string clock = "served";
  int64_t from_step = -1;
  UntilOptions until;
  bool gdb = false;
  std::string debugger = "gdb";
  std::string debugger_args;
  std::string interpreter;
  std::string gdbserver;
  bool wait = false;
  bool vscode = false;
  bool pdb = false;
  std::vector<std::string> breaks;
  int debugpy = -1;  // a port; -1: not given
  bool profile = false;
  bool coverage = false;
  bool valgrind = false;
  bool stacks = false;
  std::vector<std::string> gdb_commands;
  std::string process_checkpoint;
  std::string out;
  std::string scratch;
  bool keep_scratch = false;
  bool edited = false;
  bool force = false;
  bool trust = false;
  std::string program;
  std::vector<std::string> allow_read;
  std::vector<std::string> allow_file;
  bool allow_writes = false;
  bool allow_network = false;
  std::vector<std::string> pass_env;
  std::vector<std::string> binaries;
};

// Binds the options to `arguments`, which must outlive the parse.
void AddReplayArguments(CLI::App& app, ReplayArguments& arguments);

// The ranks that are to be replayed, by number. One that is not in the trace may be among them:
// Trace::Rank words the error.
Result<std::vector<uint32_t>> ChosenRanks(const ReplayArguments& arguments,
                                          const format::Trace& trace);

// Which options contradict each other, or these ranks; empty: none.
std::string FindMistake(const ReplayArguments& arguments, const std::vector<uint32_t>& ranks);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_BOUNDS_REPLAY_ARGUMENTS_H_
