#include "cli/replay/start/child_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cli/summaries/child_summary.h"
#include "format/layout/child_folder.h"

namespace deja::cli {
namespace {

ChildProgram ProgramOf(const format::RankReader& reader) {
  const format::ProcessInfo& process = reader.header().process;
  return {std::string(process.executable), {process.argv.begin(), process.argv.end()}, 1};
}

// The path of the image that follows the one at `path`: "0/1" and "0/1+1", "0/1+1" and "0/1+2".
std::string NextImageOf(const std::string& path) {
  const size_t plus = path.rfind('+');
  const size_t slash = path.rfind('/');
  if (plus == std::string::npos || (slash != std::string::npos && plus < slash)) return path + "+1";
  uint64_t image = 0;
  std::from_chars(path.data() + plus + 1, path.data() + path.size(), image);
  return fmt::format("{}+{}", path.substr(0, plus), image + 1);
}

// All processes that have a folder in the trace.
class RecordedProcesses {
 public:
  explicit RecordedProcesses(const format::Trace& trace) {
    for (const format::RankFolder& rank : trace.ranks()) Add(rank.path);
    for (const std::string& folder : format::ListChildFolders(trace.directory())) Add(folder);
  }

  [[nodiscard]] bool HasImage(std::string_view root, const std::string& path) const {
    return paths_.contains({std::string(root), path});
  }
  // The process, in any image, or one that it has made.
  [[nodiscard]] bool HasProcess(std::string_view root, const std::string& path) const {
    const auto at = paths_.lower_bound({std::string(root), path});
    if (at == paths_.end() || at->first != root || !at->second.starts_with(path)) return false;
    const std::string_view rest = std::string_view(at->second).substr(path.size());
    return rest.empty() || rest.front() == '+' || rest.front() == '/';
  }

 private:
  void Add(const std::string& folder) {
    if (auto origin = format::ReadOrigin(folder)) paths_.emplace(origin->root, origin->path);
  }

  std::set<std::pair<std::string, std::string>> paths_;  // root, path
};

// Counts the processes that the process has made, and the images that it became itself.
size_t CountUnknown(const format::RankReader& reader, const RecordedProcesses& recorded) {
  const format::ProcessOrigin& origin = reader.header().origin;
  if (origin.root.empty()) return 0;
  const std::string own(origin.path);
  std::map<uint32_t, std::string> threads;
  std::vector<std::pair<uint32_t, uint32_t>> made;  // thread, number
  auto cursor = reader.Events();
  constexpr uint64_t kKinds =
      format::KindBit(format::EventKind::kThreadStart) | format::KindBit(format::EventKind::kChild);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* start = event->As<format::ThreadStart>())
      threads[start->thread] = std::string(start->name);
    else if (const auto* child = event->As<format::Child>(); child != nullptr && !child->ended)
      made.emplace_back(event->thread, child->number);
  }
  size_t unknown = 0;
  for (const auto& [thread, number] : made) {
    const std::string path =
        fmt::format("{}{}{}/{}", own, own.empty() ? "" : "/", threads[thread], number);
    if (!recorded.HasProcess(origin.root, path)) ++unknown;
  }
  if (!recorded.HasImage(origin.root, NextImageOf(own)) && WasReplaced(reader)) ++unknown;
  return unknown;
}

void Add(ChildProgram program, std::vector<ChildProgram>& programs) {
  const auto known = std::find_if(programs.begin(), programs.end(),
                                  [&](const ChildProgram& one) { return one.IsSameAs(program); });
  if (known == programs.end())
    programs.push_back(std::move(program));
  else
    ++known->processes;
}

}  // namespace

Result<ChildPrograms> ReadChildPrograms(format::Trace& trace, const std::vector<uint32_t>& ranks,
                                        int attempt) {
  ChildPrograms programs;
  const RecordedProcesses recorded(trace);
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    const ChildProgram own = ProgramOf(*reader);
    programs.unknown += CountUnknown(*reader, recorded);
    DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(rank, attempt));
    for (const format::ChildFolder& child : children) {
      const auto process = trace.Process(child);
      if (!process) continue;  // the replay says what it cannot read
      programs.unknown += CountUnknown(**process, recorded);
      ChildProgram program = ProgramOf(**process);
      if (!program.IsSameAs(own)) Add(std::move(program), programs.recorded);
    }
  }
  return programs;
}

}  // namespace deja::cli
