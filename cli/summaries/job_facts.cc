#include "cli/summaries/job_facts.h"

#include <fmt/format.h>

#include <ctime>
#include <string_view>

#include "cli/events/event_words.h"
#include "cli/output.h"
#include "cli/summaries/replay_summary.h"
#include "common/text/hex_text.h"

namespace deja::cli {
namespace {

constexpr const char* kLevelNames[] = {"order", "digest", "full"};

std::string Joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::string_view word : words) {
    if (!text.empty()) text += ' ';
    bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?#~`") == std::string_view::npos;
    text += plain ? std::string(word) : fmt::format("'{}'", word);
  }
  return text;
}

// "HF_TOKEN (name)": what was masked, and by which rule where the trace says so.
std::vector<std::string> MaskedWithRules(const format::ProcessInfo& process) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < process.masked.size(); ++i) {
    const bool has_rule = i < process.masked_by.size();
    texts.push_back(has_rule ? fmt::format("{} ({})", process.masked[i], process.masked_by[i])
                             : std::string(process.masked[i]));
  }
  return texts;
}

std::string VersionsText(const format::TraceHeader& header) {
  const format::ProcessInfo& process = header.process;
  const std::string nccl =
      process.nccl_path.empty()
          ? ""
          : fmt::format("NCCL {} ({}), ", NcclVersion(process.nccl_version), process.nccl_path);
  return fmt::format("{}, format {}.{}, {}{}", header.producer, header.format_major,
                     header.format_minor, nccl, process.kernel);
}

}  // namespace

std::string LevelName(uint32_t level) {
  return level < 3 ? kLevelNames[level] : fmt::format("level {}", level);
}

std::string WallTime(uint64_t ns) {
  auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::vector<JobFact> JobFacts(const format::RankReader& first) {
  const format::TraceHeader& header = first.header();
  const format::ProcessInfo& process = header.process;
  std::vector<JobFact> facts;
  if (const auto replay = format::ReadReplayOrigin(first))
    facts.push_back({"replay", DescribeReplay(*replay)});
  facts.push_back({"job", HexText(header.job_id)});
  facts.push_back({"program", Joined(process.argv)});
  if (const size_t masked = process.masked.size(); masked != 0)
    facts.push_back(
        {"masked", fmt::format("{} value{}, not stored: {}", masked, masked == 1 ? "" : "s",
                               fmt::join(MaskedWithRules(process), ", "))});
  if (header.redacted)
    facts.push_back(
        {"redacted", "names, paths, addresses and values of the environment are stand-ins"});
  if (!process.cpu_model.empty())
    facts.push_back({"machine", fmt::format("{} CPUs ({}), {} of memory", process.cpu_count,
                                            process.cpu_model, HumanBytes(process.memory_bytes))});
  facts.push_back({"in", fmt::format("{} on {}", process.working_directory, process.hostname)});
  facts.push_back({"started", WallTime(header.start_wall_ns)});
  facts.push_back({"versions", VersionsText(header)});
  return facts;
}

}  // namespace deja::cli
