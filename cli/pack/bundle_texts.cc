#include "cli/pack/bundle_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/events/event_words.h"
#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "cli/summaries/job_summary.h"
#include "cli/summaries/program_parts.h"
#include "cli/version.h"

namespace deja::cli {
namespace {

using nlohmann::json;

struct PackedRank {
  uint32_t rank = 0;
  uint32_t attempt = 0;
  const format::RankReader* reader = nullptr;
  RankSummary summary;
  std::string ended;
};

struct Answers {
  std::vector<std::pair<std::string, std::string>> lines;
  void Add(std::string question, std::string answer) {
    lines.emplace_back(std::move(question), std::move(answer));
  }
};

constexpr const char* kNotRecorded = "not in the recording";

// Versions that names of libraries have: libcuda.so.550.54.15.
std::string LibraryVersion(const RankSummary& summary, std::string_view name) {
  for (const auto& [number, module] : summary.modules) {
    const size_t at = module.path.rfind('/');
    std::string file = module.path.substr(at == std::string::npos ? 0 : at + 1);
    if (file.compare(0, name.size(), name) == 0) return file;
  }
  return kNotRecorded;
}

std::string PackageVersion(const ProgramParts& parts, const std::string& name) {
  for (const auto& [folder, packages] : parts.packages)
    if (const auto it = packages.find(name); it != packages.end()) return it->second;
  return kNotRecorded;
}

// Variables that choose how NCCL works, as NAME=VALUE; those that differ from rank to rank once
// each.
std::string Variables(const std::vector<PackedRank>& ranks,
                      const std::vector<std::string_view>& prefixes) {
  std::map<std::string, std::set<std::string>> values;
  for (const PackedRank& rank : ranks) {
    for (const std::string_view entry : rank.reader->header().process.environment) {
      const bool wanted = std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) {
        return entry.substr(0, p.size()) == p;
      });
      const size_t equals = entry.find('=');
      if (wanted && equals != std::string_view::npos)
        values[std::string(entry.substr(0, equals))].insert(std::string(entry.substr(equals + 1)));
    }
  }
  std::string text;
  for (const auto& [name, all] : values)
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", name, fmt::join(all, " | "));
  return text.empty() ? "none set" : text;
}

std::string Quoted(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-+=./:,@%").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The command to type: of a redacted bundle the receiver names the program, whose path is a
// stand-in.
std::string ReplayCommand(const std::string& bundle, const PackedRank& rank) {
  std::string command = fmt::format("deja replay {} --rank {}", Quoted(bundle), rank.rank);
  const format::TraceHeader& header = rank.reader->header();
  if (!header.redacted) return command;
  command += " -- PROGRAM";
  for (size_t i = 1; i < header.process.argv.size(); ++i)
    command += " " + Quoted(header.process.argv[i]);
  return command;
}

// The rank that one looks at first: whose end was not good, the earliest.
const PackedRank& FirstToFail(const std::vector<PackedRank>& ranks) {
  const PackedRank* first = nullptr;
  for (const PackedRank& rank : ranks) {
    if (rank.summary.EndedWell()) continue;
    if (first == nullptr || rank.summary.last_time_ns < first->summary.last_time_ns) first = &rank;
  }
  return first != nullptr ? *first : ranks.front();
}

std::string HowOften(const std::vector<PackedRank>& ranks) {
  std::set<uint32_t> attempts;
  std::set<uint32_t> failed;
  for (const PackedRank& rank : ranks) {
    attempts.insert(rank.attempt);
    if (!rank.summary.EndedWell()) failed.insert(rank.attempt);
  }
  return fmt::format("{} of {} recorded attempt{} of the job failed", failed.size(),
                     attempts.size(), attempts.size() == 1 ? "" : "s");
}

std::string FirstWarning(const std::vector<PackedRank>& ranks,
                         const std::vector<CommStanding>& uneven) {
  const PackedRank& first = FirstToFail(ranks);
  if (first.summary.EndedWell() && uneven.empty()) return "none: all ranks ended well";
  std::string text = fmt::format("rank {}: {}", first.rank, first.ended);
  for (const CommStanding& comm : uneven) text += "; " + comm.Describe();
  return text;
}

std::string RanksAndNodes(const std::vector<PackedRank>& ranks) {
  std::map<std::string, std::vector<uint32_t>> nodes;
  for (const PackedRank& rank : ranks) {
    std::vector<uint32_t>& on_node = nodes[std::string(rank.reader->header().process.hostname)];
    if (std::find(on_node.begin(), on_node.end(), rank.rank) == on_node.end())
      on_node.push_back(rank.rank);
  }
  std::string text = fmt::format("{} ranks on {} node{}", ranks.front().reader->header().world_size,
                                 nodes.size(), nodes.size() == 1 ? "" : "s");
  for (const auto& [node, on_node] : nodes)
    text += fmt::format("; {}: {}", node, fmt::join(on_node, ", "));
  return text;
}

std::string Devices(const std::vector<PackedRank>& ranks) {
  std::set<int32_t> devices;
  for (const PackedRank& rank : ranks) {
    const auto cursor = rank.reader->Events();
    while (const format::Event* event =
               cursor->NextOf(format::KindBit(format::EventKind::kCommCreated)))
      devices.insert(event->As<format::CommCreated>()->device);
  }
  devices.erase(-1);
  if (devices.empty()) return "none: the communicators are of host memory";
  return fmt::format("devices {}; their model is not in the recording (nvidia-smi -q)",
                     fmt::join(devices, ", "));
}

Answers NcclForm(const std::vector<PackedRank>& ranks, const std::vector<CommStanding>& uneven,
                 const std::string& replay) {
  const format::ProcessInfo& process = ranks.front().reader->header().process;
  const RankSummary& summary = ranks.front().summary;
  Answers answers;
  answers.Add("NCCL version",
              process.nccl_path.empty()
                  ? "no NCCL was loaded"
                  : fmt::format("{} ({})", NcclVersion(process.nccl_version), process.nccl_path));
  answers.Add("CUDA driver", LibraryVersion(summary, "libcuda.so"));
  answers.Add("CUDA runtime", LibraryVersion(summary, "libcudart.so"));
  answers.Add("GPUs", Devices(ranks));
  answers.Add("Topology",
              Variables(ranks, {"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "CUDA_VISIBLE_DEVICES",
                                "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"}));
  answers.Add("NCCL variables", Variables(ranks, {"NCCL_", "TORCH_NCCL_"}));
  answers.Add("Ranks and nodes", RanksAndNodes(ranks));
  answers.Add("Operating system", std::string(process.kernel));
  answers.Add("CPU", fmt::format("{} ({} usable)", process.cpu_model, process.cpu_count));
  answers.Add("First warning or error", FirstWarning(ranks, uneven));
  answers.Add("How often it happens", HowOften(ranks));
  answers.Add("Steps to reproduce", replay);
  return answers;
}

Answers PytorchForm(const std::vector<PackedRank>& ranks, const ProgramParts& parts,
                    const std::vector<CommStanding>& uneven, const std::string& replay) {
  const format::ProcessInfo& process = ranks.front().reader->header().process;
  const RankSummary& summary = ranks.front().summary;
  Answers answers;
  answers.Add("Describe the bug", FirstWarning(ranks, uneven));
  answers.Add("PyTorch version", PackageVersion(parts, "torch"));
  answers.Add("OS", std::string(process.kernel));
  answers.Add("Libc version", LibraryVersion(summary, "libc.so"));
  answers.Add("Python version", LibraryVersion(summary, "libpython"));
  answers.Add("CUDA runtime version", LibraryVersion(summary, "libcudart.so"));
  answers.Add("GPU models and configuration", Devices(ranks));
  answers.Add("Nvidia driver version", LibraryVersion(summary, "libcuda.so"));
  answers.Add("cuDNN version", LibraryVersion(summary, "libcudnn.so"));
  answers.Add("CPU", fmt::format("{} ({} usable), {}", process.cpu_model, process.cpu_count,
                                 process.cpu_features));
  std::string libraries;
  for (const char* name : {"numpy", "torch", "torchvision", "torchaudio", "triton", "nccl",
                           "nvidia-nccl-cu12", "transformers", "accelerate", "deepspeed"}) {
    const std::string version = PackageVersion(parts, name);
    if (version != kNotRecorded)
      libraries += fmt::format("{}{}=={}", libraries.empty() ? "" : ", ", name, version);
  }
  answers.Add("Versions of relevant libraries", libraries.empty() ? kNotRecorded : libraries);
  answers.Add("Variables of the environment",
              Variables(ranks, {"TORCH", "PYTORCH_", "OMP_", "MKL_", "CUDA_"}));
  answers.Add("Steps to reproduce", replay);
  return answers;
}

json ToJson(const Answers& answers) {
  json lines = json::array();
  for (const auto& [question, answer] : answers.lines)
    lines.push_back({{"question", question}, {"answer", answer}});
  return lines;
}

std::string ToMarkdown(const Answers& answers) {
  std::string text;
  for (const auto& [question, answer] : answers.lines)
    text += fmt::format("- **{}**: {}\n", question, answer);
  return text;
}

std::string Readme(const std::vector<PackedRank>& ranks, const std::string& bundle,
                   const Answers& nccl, const std::string& replay) {
  const format::TraceHeader& header = ranks.front().reader->header();
  std::string text = fmt::format(
      "# A recording of {} rank{} by {}\n\n"
      "`deja` (version {} or newer) opens this file as it is; there is no need to unpack it.\n\n"
      "    {}\n"
      "    deja info {}\n\n",
      header.world_size, header.world_size == 1 ? "" : "s", header.producer, kVersion, replay,
      Quoted(bundle));
  text +=
      "A replay runs the recorded program, which has to be on this machine, as that rank: what "
      "came "
      "from outside\ncomes from the recording. Look at it first: `deja info`, and `deja replay "
      "--help` for what a replay may do.\n";
  if (header.redacted)
    text +=
        "\nNames of hosts, users, folders and addresses are stand-ins (the same one for the same "
        "name), values of many\nvariables of the environment, too. PROGRAM is the place of the "
        "program on this machine; of a program of Python\nalso the path of its script. What the "
        "program sends is not compared.\n";
  text += "\n## What is known\n\n" + ToMarkdown(nccl) + "\n## Ranks\n\n";
  constexpr size_t kMostRanks = 64;
  for (size_t i = 0; i < std::min(kMostRanks, ranks.size()); ++i)
    text += fmt::format("- rank {}: {}\n", ranks[i].rank, ranks[i].ended);
  if (ranks.size() > kMostRanks) text += fmt::format("- {} more\n", ranks.size() - kMostRanks);
  return text + "\nmanifest.json has the same for programs.\n";
}

std::vector<PackedRank> ReadRanks(format::Trace& trace, Symbolizer& symbolizer) {
  std::vector<PackedRank> ranks;
  for (const format::RankFolder& folder : trace.ranks()) {
    const auto reader = trace.Rank(folder.rank, static_cast<int>(folder.attempt));
    if (!reader) continue;
    PackedRank rank{folder.rank, folder.attempt, *reader, ReadRankSummary(**reader), {}};
    rank.ended = rank.summary.HowItEnded(symbolizer);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> DescribeBundle(format::Trace& trace,
                                                                const std::string& bundle) {
  Symbolizer symbolizer;
  const std::vector<PackedRank> ranks = ReadRanks(trace, symbolizer);
  if (ranks.empty()) return {};
  std::vector<RankOfJob> last_attempts;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (i + 1 == ranks.size() || ranks[i + 1].rank != ranks[i].rank)
      last_attempts.push_back({ranks[i].rank, &ranks[i].summary});
  const std::vector<CommStanding> uneven = UnevenComms(last_attempts, symbolizer);
  const ProgramParts parts = ReadProgramParts(*ranks.front().reader);
  const std::string replay = ReplayCommand(bundle, FirstToFail(ranks));
  const Answers nccl = NcclForm(ranks, uneven, replay);
  const Answers pytorch = PytorchForm(ranks, parts, uneven, replay);

  const format::TraceHeader& header = ranks.front().reader->header();
  json manifest = {{"manifest", 1},
                   {"producer", header.producer},
                   {"packed_by", kVersion},
                   {"redacted", header.redacted},
                   {"replay", replay},
                   {"nccl_bug_form", ToJson(nccl)},
                   {"pytorch_bug_form", ToJson(pytorch)},
                   {"ranks", json::array()}};
  for (const PackedRank& rank : ranks) {
    manifest["ranks"].push_back({{"rank", rank.rank},
                                 {"attempt", rank.attempt},
                                 {"node", rank.reader->header().process.hostname},
                                 {"ended", rank.ended},
                                 {"ended_well", rank.summary.EndedWell()}});
  }
  constexpr int kIndent = 2;
  return {
      {"README.md", Readme(ranks, bundle, nccl, replay)},
      {"manifest.json", manifest.dump(kIndent, ' ', false, json::error_handler_t::replace) + "\n"}};
}

}  // namespace deja::cli
