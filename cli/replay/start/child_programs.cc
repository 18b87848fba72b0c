#include "cli/replay/start/child_programs.h"

#include <algorithm>
#include <utility>

namespace deja::cli {
namespace {

ChildProgram ProgramOf(const format::RankReader& reader) {
  const format::ProcessInfo& process = reader.header().process;
  return {std::string(process.executable), {process.argv.begin(), process.argv.end()}, 1};
}

}  // namespace

Result<std::vector<ChildProgram>> ReadChildPrograms(format::Trace& trace,
                                                    const std::vector<uint32_t>& ranks,
                                                    int attempt) {
  std::vector<ChildProgram> programs;
  for (const uint32_t rank : ranks) {
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace.Rank(rank, attempt));
    const ChildProgram own = ProgramOf(*reader);
    DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(rank, attempt));
    for (const format::ChildFolder& child : children) {
      const auto process = trace.Process(child);
      if (!process) continue;  // the replay says what it cannot read
      ChildProgram program = ProgramOf(**process);
      if (program.IsSameAs(own)) continue;
      const auto known =
          std::find_if(programs.begin(), programs.end(),
                       [&](const ChildProgram& one) { return one.IsSameAs(program); });
      if (known == programs.end())
        programs.push_back(std::move(program));
      else
        ++known->processes;
    }
  }
  return programs;
}

}  // namespace deja::cli
