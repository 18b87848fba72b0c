#include "cli/help/help_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/help/wrapped_text.h"

namespace deja::cli {
namespace {

constexpr HelpItem kLevels[] = {
    {"",
     "`deja record --level` says how much of each collective a trace keeps. A higher level keeps "
     "all that the lower ones keep."},
    {"order",
     "The calls, their arguments and their order. `deja info` and `deja show` read such a "
     "trace: it says where a job hung. A replay of one rank is not possible."},
    {"digest",
     "Also a hash and statistics of every tensor: NaN and Inf counts, minimum, maximum, "
     "sums. `deja diff` and `deja bisect` compare them. `deja replay --all` computes the "
     "results again and compares."},
    {"full",
     "Also the bytes that the collectives returned. This is the default, and the level that "
     "a replay of one rank alone needs."},
    {"",
     "`--keep-steps`, `--keep-bytes` and `--keep-seconds` keep the bytes of the last part of a "
     "run only. `deja pack --level` makes a smaller copy."},
};

constexpr HelpItem kThreads[] = {
    {"",
     "A trace names each thread by its parent and its number among that parent's threads: 0 is "
     "the main thread, 0.1 the first thread that it started, 0.1.2 the second of that one. The "
     "name `deja` stands for what the recorder itself wrote down."},
    {"",
     "`deja show --thread 0.1` lists one thread. Every input of a thread is replayed on that "
     "thread, in its order."},
    {"",
     "By default the order in which threads take locks is not recorded. `deja record --threads "
     "order` records it, and a replay repeats it. Use it for a program whose result depends "
     "on which thread comes first."},
};

constexpr HelpItem kInputs[] = {
    {"", "`deja record --inputs` says what a trace keeps of the files that the program reads."},
    {"off", "Nothing."},
    {"digest",
     "Hashes. A replay reads the files of this machine and names the one that differs. "
     "This is the default."},
    {"full", "Also the bytes that were read. A replay needs none of the files."},
    {"",
     "System folders, libraries, Python modules and files that the run itself wrote are left "
     "out. `--inputs-include` and `--inputs-exclude` change that."},
    {"",
     "Random bytes, clock readings, received network data, the environment and the arguments "
     "are always recorded. Values that look secret are masked: see `--keep-env` and `--mask`, "
     "and `deja replay --pass-env`."},
};

constexpr HelpItem kTraces[] = {
    {"",
     "A trace is a folder, NAME.deja, with a folder for each rank in it: rank-00000, and "
     "rank-00000.1 for the second attempt of a rank that was restarted."},
    {"",
     "A bundle is the same as one file, NAME.deja.zip, made by `deja pack`. Every command that "
     "takes a trace takes a bundle."},
    {"",
     "A rank that was killed leaves a trace that every command can read. `deja verify` checks "
     "all of its bytes. `deja recover` completes it where the `deja record` that started the "
     "rank was killed, too."},
    {"",
     "A replay runs the program that the trace names. A trace that was not recorded or packed "
     "here by you is replayed only after you have agreed: on the terminal, or by `deja replay "
     "--trust`."},
};

constexpr HelpItem kExitCodes[] = {
    {"0", "The command did what it was asked to do. A replay or a comparison found no difference."},
    {"1", "It could not: standard error says why."},
    {"2", "The command line is wrong, or a replay was not agreed to."},
    {"3",
     "It is done, but data is missing: the trace is damaged, which a line on standard error says, "
     "or incomplete, or a bundle cannot be replayed."},
    {"4",
     "A replay diverged, two recordings differ, or `deja check` has a finding. A damaged trace "
     "gives 4 only where the damage is not the reason."},
    {"128+N", "Signal N ended the command: 130 for Ctrl-C."},
    {"",
     "`deja record` and `deja launch` exit as the job did: with the code of the command, or of "
     "the rank that failed first."},
};

constexpr HelpItem kEnvironment[] = {
    {"", "Read by the commands:"},
    {"PATH", "Where programs, gdb, age and gpg are looked for."},
    {"TMPDIR", "Where a replay's scratch folder and an unpacked bundle are made; /tmp by default."},
    {"XDG_STATE_HOME",
     "Below it stands which traces you trust (deja/); ~/.local/state by default."},
    {"RANK WORLD_SIZE",
     "And their like: set for each rank by `deja record --loopback` and `deja "
     "launch`, and read from other launchers."},
    {"",
     "The commands tell the libraries in the program what to do by the variables below. The "
     "commands set them; you need not. They may change with each version."},
#define DEJA_ENV(constant, name, type, values, meaning) {#name, values meaning},
#include "common/env_vars.def"
#undef DEJA_ENV
};

constexpr std::array kTopics = {
    HelpTopic{"levels", "How much of each collective is kept: order, digest, full", kLevels},
    HelpTopic{"threads", "Names of threads, and the order of locks", kThreads},
    HelpTopic{"inputs", "What is kept of files and other inputs", kInputs},
    HelpTopic{"traces", "Traces, bundles, and what may be done with those of others", kTraces},
    HelpTopic{"exit-codes", "What the exit status says", kExitCodes},
    HelpTopic{"environment", "Variables of the environment that are read and set", kEnvironment},
};

}  // namespace

const char* const kExitStatusLine =
    "0 ok, 1 failure, 2 usage, 3 done with data missing, 4 diverged, 128+N\n"
    "ended by signal N; `record` and `launch` exit as the job did. `deja COMMAND --help` explains "
    "a\n"
    "command.";

std::span<const HelpTopic> HelpTopics() {
  return kTopics;
}

const HelpTopic* FindHelpTopic(std::string_view name) {
  const auto* found = std::find_if(kTopics.begin(), kTopics.end(),
                                   [&](const HelpTopic& topic) { return topic.name == name; });
  return found == kTopics.end() ? nullptr : found;
}

std::string TopicText(const HelpTopic& topic) {
  constexpr size_t kMostColumn = 30;
  size_t column = 0;
  for (const HelpItem& item : topic.items) column = std::max(column, Columns(item.name) + 4);
  column = std::min(column, kMostColumn);
  std::string text = fmt::format("{}: {}\n", topic.name, topic.summary);
  bool in_list = false;
  for (const HelpItem& item : topic.items) {
    const bool is_row = *item.name != 0;
    if (!is_row || !in_list) text += "\n";
    in_list = is_row;
    if (is_row) {
      text += ListEntry(item.name, item.text, column);
      continue;
    }
    for (const std::string& line : WrappedLines(item.text, kHelpColumns)) text += line + "\n";
  }
  return text;
}

}  // namespace deja::cli
