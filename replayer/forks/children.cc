#include "replayer/forks/children.h"

#include <utility>

#include "format/scratch/process_list.h"
#include "format/scratch/scratch_names.h"

namespace deja::replayer {

namespace {

std::vector<format::ListedProcess> Children(const std::string& scratch) {
  return format::ReadProcessList(scratch + format::kChildrenFile);
}

}  // namespace

std::string FindListed(const std::string& path, std::string_view name) {
  for (format::ListedProcess& process : format::ReadProcessList(path))
    if (process.name == name && !process.folder.empty()) return std::move(process.folder);
  return {};
}

std::string FindChildFolder(const std::string& scratch, std::string_view name) {
  return FindListed(scratch + format::kChildrenFile, name);
}

bool IsOtherRank(const std::string& scratch, std::string_view name) {
  for (const format::ListedProcess& process : Children(scratch))
    if (process.name == name && process.folder.empty()) return true;
  return false;
}

std::vector<std::string> ChildFolders(const std::string& scratch) {
  std::vector<std::string> folders;
  for (format::ListedProcess& process : Children(scratch))
    if (!process.folder.empty()) folders.push_back(std::move(process.folder));
  return folders;
}

void PidMap::Add(int recorded, int live, bool is_live) {
  if (recorded <= 0 || live <= 0) return;
  Entry& entry = entries_[next_.fetch_add(1) % kEntries];
  entry.gone.store(false);
  entry.is_live.store(is_live);
  entry.live.store(live);
  entry.recorded.store(recorded);
}

template <typename Match>
const PidMap::Entry* PidMap::Find(Match match) const {
  const size_t end = next_.load();
  const size_t begin = end > kEntries ? end - kEntries : 0;
  for (size_t i = end; i > begin; --i) {
    const Entry& entry = entries_[(i - 1) % kEntries];
    if (match(entry)) return &entry;
  }
  return nullptr;
}

int PidMap::Live(int recorded) const {
  const Entry* entry = Find([&](const Entry& e) { return e.recorded.load() == recorded; });
  return entry != nullptr ? entry->live.load() : 0;
}

int PidMap::Recorded(int live) const {
  const Entry* entry = Find([&](const Entry& e) { return e.live.load() == live; });
  return entry != nullptr ? entry->recorded.load() : 0;
}

void PidMap::SetGone(int live) {
  const Entry* entry = Find([&](const Entry& e) { return e.live.load() == live; });
  if (entry != nullptr) const_cast<Entry*>(entry)->gone.store(true);
}

bool PidMap::IsGone(int recorded) const {
  const Entry* entry = Find([&](const Entry& e) { return e.recorded.load() == recorded; });
  return entry != nullptr && entry->gone.load();
}

bool PidMap::IsLive(int recorded) const {
  const Entry* entry = Find([&](const Entry& e) { return e.recorded.load() == recorded; });
  return entry != nullptr && entry->is_live.load();
}

}  // namespace deja::replayer
