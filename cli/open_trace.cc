#include "cli/open_trace.h"

#include <sys/stat.h>

#include <set>

#include "cli/progress.h"

namespace deja::cli {

Result<std::unique_ptr<format::Trace>> OpenTrace(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return format::Trace::Open(path);
  Progress progress("unpacking " + path);
  return format::Trace::Open(path,
                             [&](uint64_t done, uint64_t total) { progress.Update(done, total); });
}

std::vector<uint32_t> RankNumbers(const format::Trace& trace) {
  std::set<uint32_t> ranks;
  for (const format::RankFolder& folder : trace.ranks()) ranks.insert(folder.rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace deja::cli
