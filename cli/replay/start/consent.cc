#include "cli/replay/start/consent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "cli/fence/trust_store.h"
#include "cli/output.h"
#include "cli/programs/executed_program.h"

namespace deja::cli {
namespace {

constexpr size_t kMostShown = 200;  // characters of one word
constexpr size_t kMostVariables = 40;
constexpr size_t kMostTargets = 4;
constexpr size_t kMostChildPrograms = 20;

std::string Cut(const std::string& text) {
  if (text.size() <= kMostShown) return text;
  return fmt::format("{}… ({} bytes)", text.substr(0, kMostShown), text.size());
}

std::string Words(const std::vector<std::string>& words) {
  return Cut(QuotedWords(words));
}

// By which a program, or the loader, is made to run something else.
bool LeadsElsewhere(std::string_view entry) {
  constexpr std::array<std::string_view, 14> kPrefixes = {
      "LD_",           "PYTHON",     "PATH=",       "BASH_ENV=", "ENV=", "PERL5", "RUBY",
      "NODE_OPTIONS=", "JAVA_TOOL_", "GCONV_PATH=", "SHELL=",    "GIT_", "NCCL_", "CUDA_"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
    return entry.substr(0, prefix.size()) == prefix;
  });
}

// Those that differ from this environment, first those that can lead elsewhere.
std::vector<std::string> ChangedVariables(const ReplayTarget& target) {
  std::vector<std::string> changed;
  for (const std::string& entry : target.environment) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const char* here = getenv(entry.substr(0, equals).c_str());
    const bool same = here != nullptr && entry.substr(std::min(equals + 1, entry.size())) == here;
    if (!same && entry.compare(0, 5, "DEJA_") != 0) changed.push_back(entry);
  }
  std::stable_partition(changed.begin(), changed.end(), LeadsElsewhere);
  return changed;
}

bool IsSameStart(const ReplayTarget& a, const ReplayTarget& b) {
  return a.executable == b.executable && a.argv == b.argv &&
         a.working_directory == b.working_directory;
}

void AddChildPrograms(const ChildPrograms& programs, std::vector<std::string>& lines) {
  const std::vector<ChildProgram>& children = programs.recorded;
  for (size_t i = 0; i < std::min(children.size(), kMostChildPrograms); ++i) {
    const ChildProgram& child = children[i];
    const std::string often =
        child.processes == 1 ? "" : fmt::format(" ({} processes)", child.processes);
    lines.push_back(fmt::format("  a child runs   {}{}", Cut(child.executable), often));
    lines.push_back(fmt::format("    arguments    {}", Words(child.argv)));
  }
  if (children.size() > kMostChildPrograms)
    lines.push_back(
        fmt::format("  and {} more programs of children", children.size() - kMostChildPrograms));
  if (programs.unknown == 0) return;
  lines.push_back(
      fmt::format("  not recorded   {} of the processes, which did nothing that is recorded;",
                  programs.unknown));
  lines.emplace_back(
      "                 what they run is not known here; the same fence is around them");
}

bool Ask() {
  std::string answer;
  Prompt("run it? [y/N] ");
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes" || answer == "Y");
}

}  // namespace

std::vector<std::string> DescribeStart(const std::vector<const ReplayTarget*>& targets,
                                       const ChildPrograms& children) {
  std::vector<std::string> lines;
  std::vector<const ReplayTarget*> shown;
  size_t others = 0;
  for (const ReplayTarget* target : targets) {
    const bool known = std::any_of(shown.begin(), shown.end(), [&](const ReplayTarget* one) {
      return IsSameStart(*one, *target);
    });
    if (known || shown.size() == kMostTargets) {
      ++others;
      continue;
    }
    shown.push_back(target);
    lines.push_back(fmt::format("rank {}: program  {}", target->rank, Cut(target->executable)));
    lines.push_back(fmt::format("  arguments      {}", Words(target->argv)));
    lines.push_back(fmt::format("  working in     {}", Cut(target->working_directory)));
    lines.push_back(fmt::format("  build id       {}", target->build_id));
  }
  if (others != 0) lines.push_back(fmt::format("and {} more ranks, or ranks like these", others));
  if (targets.empty()) return lines;
  AddChildPrograms(children, lines);
  const ReplayTarget& first = *targets.front();
  const std::vector<std::string> changed = ChangedVariables(first);
  lines.push_back(fmt::format("  environment    {} variables are not as they are here{}",
                              changed.size(), changed.empty() ? "" : ":"));
  for (size_t i = 0; i < std::min(changed.size(), kMostVariables); ++i)
    lines.push_back("    " + Cut(changed[i]));
  if (changed.size() > kMostVariables)
    lines.push_back(fmt::format("    and {} more", changed.size() - kMostVariables));
  lines.push_back("  it may start   any program that it may read, in the same fence");
  lines.push_back(first.fence.allow_writes ? "  it may write   everywhere (--allow-writes)"
                                           : "  it may write   in its scratch folder only");
  lines.push_back(first.fence.allow_network ? "  it may connect everywhere (--allow-network)"
                                            : "  it may connect nowhere");
  std::string reads;
  for (const std::string& path : first.own_paths) reads += ", " + path;
  lines.push_back("  it may read    the system's folders, the trace" + Cut(reads));
  return lines;
}

Status AskConsent(const std::string& trace, const std::vector<const ReplayTarget*>& targets,
                  const ChildPrograms& children, bool trust) {
  Diagnose(fmt::format(
      "replaying: {}: this user has not recorded or packed it here; a replay runs:", trace));
  for (const std::string& line : DescribeStart(targets, children)) Diagnose("  " + line);
  if (!trust && (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1))
    return Fail(
        ErrorCode::kForeign,
        fmt::format("replaying: {}: this user has not agreed to run its program; give --trust "
                    "once, or answer on a terminal",
                    trace));
  if (!trust && !Ask())
    return Fail(ErrorCode::kForeign,
                fmt::format("replaying: {}: the answer was no; nothing was run", trace));
  if (const Status remembered = TrustStore().Add(trace, Trust::kAgreed); !remembered)
    Diagnose(remembered.error().message);
  return {};
}

Status CheckConsent(const std::string& path, format::Trace& trace,
                    const std::vector<Replayed>& replays, int attempt, bool trust) {
  if (TrustStore().Of(path) != Trust::kNone) return {};
  std::vector<const ReplayTarget*> targets;
  std::vector<uint32_t> ranks;
  targets.reserve(replays.size());
  ranks.reserve(replays.size());
  for (const Replayed& replay : replays) {
    targets.push_back(&replay.target);
    ranks.push_back(replay.target.rank);
  }
  DEJA_ASSIGN_OR_RETURN(const auto children, ReadChildPrograms(trace, ranks, attempt));
  return AskConsent(path, targets, children, trust);
}

}  // namespace deja::cli
