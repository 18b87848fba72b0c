#include "cli/replay/start/created_by_children.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "format/reader/rank_reader.h"

namespace deja::cli {
namespace {

// What children did first to a name, and when.
struct Firsts {
  uint64_t created_ns = 0;  // 0: no child made it
  uint64_t found_ns = 0;    // 0: no child looked
  bool found = false;       // what that look found
};

// Earlier than what is known.
bool IsFirst(uint64_t time_ns, uint64_t known) {
  return known == 0 || time_ns < known;
}

void AddFirsts(const format::RankReader& reader, std::map<std::string, Firsts>& names) {
  constexpr uint64_t kKinds =
      format::KindBit(format::EventKind::kInput) | format::KindBit(format::EventKind::kInputFile);
  format::CreatedNameFinder created;
  auto cursor = reader.Events();
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* input = event->As<format::Input>()) {
      const std::string made = created.Add(event->thread, input->api, input->data);
      if (made.empty()) continue;
      Firsts& firsts = names[made];
      if (IsFirst(event->time_ns, firsts.created_ns)) firsts.created_ns = event->time_ns;
    } else if (const auto* file = event->As<format::InputFile>(); file != nullptr) {
      Firsts& firsts = names[std::string(file->path)];
      if (!IsFirst(event->time_ns, firsts.found_ns)) continue;
      firsts.found_ns = event->time_ns;
      firsts.found = file->error == 0;
    }
  }
}

}  // namespace

std::vector<format::CreatedName> NamesCreatedBy(const std::vector<std::string>& folders) {
  std::map<std::string, Firsts> names;
  for (const std::string& folder : folders)
    if (const auto reader = format::RankReader::Open(folder); reader)  // one at a time
      AddFirsts(**reader, names);
  std::vector<format::CreatedName> created;
  for (auto& [path, firsts] : names)
    if (firsts.created_ns != 0)
      created.push_back(
          {path, firsts.created_ns, firsts.found && firsts.found_ns < firsts.created_ns});
  return created;
}

}  // namespace deja::cli
