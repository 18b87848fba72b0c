#include "cli/replay/start/child_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cli/programs/executed_program.h"
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

void Add(ChildProgram program, std::vector<ChildProgram>& programs) {
  const auto known = std::find_if(programs.begin(), programs.end(),
                                  [&](const ChildProgram& one) { return one.IsSameAs(program); });
  if (known == programs.end())
    programs.push_back(std::move(program));
  else
    ++known->processes;
}

// What the events of others say of a process or image without a folder.
void AddUnrecorded(std::string program, std::vector<std::string> argv, ChildPrograms& programs) {
  if (program.empty())
    ++programs.unknown;
  else
    Add({std::move(program), std::move(argv), 1}, programs.recorded);
}

// A process that the process has made.
struct Made {
  uint32_t thread = 0;
  uint32_t number = 0;
  std::string program;
  std::vector<std::string> argv;
};

// Adds the processes that the process has made, and the image that it became itself, as far as they
// have no folder.
void AddUnrecordedOf(const format::RankReader& reader, const RecordedProcesses& recorded,
                     ChildPrograms& programs) {
  const format::ProcessOrigin& origin = reader.header().origin;
  if (origin.root.empty()) return;
  const std::string own(origin.path);
  std::map<uint32_t, std::string> threads;
  std::vector<Made> made;
  auto cursor = reader.Events();
  constexpr uint64_t kKinds =
      format::KindBit(format::EventKind::kThreadStart) | format::KindBit(format::EventKind::kChild);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* start = event->As<format::ThreadStart>())
      threads[start->thread] = std::string(start->name);
    else if (const auto* child = event->As<format::Child>(); child != nullptr && !child->ended)
      made.push_back({event->thread, child->number, std::string(child->program),
                      ArgumentsOf(child->arguments)});
  }
  for (Made& one : made) {
    const std::string path =
        fmt::format("{}{}{}/{}", own, own.empty() ? "" : "/", threads[one.thread], one.number);
    if (!recorded.HasProcess(origin.root, path))
      AddUnrecorded(std::move(one.program), std::move(one.argv), programs);
  }
  if (recorded.HasImage(origin.root, NextImageOf(own))) return;
  if (auto next = WasReplaced(reader))
    AddUnrecorded(std::move(next->program), std::move(next->argv), programs);
}

}  // namespace

Result<ChildPrograms> ReadChildPrograms(format::Trace& trace, const std::vector<uint32_t>& ranks,
                                        int attempt) {
  ChildPrograms programs;
  const RecordedProcesses recorded(trace);
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    const ChildProgram own = ProgramOf(*reader);
    AddUnrecordedOf(*reader, recorded, programs);
    DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(rank, attempt));
    for (const format::ChildFolder& child : children) {
      const auto process = trace.Process(child);
      if (!process) continue;  // the replay says what it cannot read
      AddUnrecordedOf(**process, recorded, programs);
      ChildProgram program = ProgramOf(**process);
      if (!program.IsSameAs(own)) Add(std::move(program), programs.recorded);
    }
  }
  return programs;
}

}  // namespace deja::cli
