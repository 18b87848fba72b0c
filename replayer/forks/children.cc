#include "replayer/forks/children.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preload/symbols/program_heap.h"

namespace deja::replayer {

namespace {

std::string ListOf(const std::string& scratch) {
  return scratch + "/children";
}

// `take(name, folder)` for each line of the list, until it says that it has had enough.
template <typename Take>
void ForEachListed(const std::string& path, Take take) {
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return;
  char* line = nullptr;
  size_t capacity = 0;
  ssize_t size = 0;
  bool more = true;
  while (more && (size = getline(&line, &capacity, file)) > 0) {
    std::string_view text(line, static_cast<size_t>(size));
    if (text.ends_with('\n')) text.remove_suffix(1);
    const size_t tab = text.find('\t');
    if (tab != std::string_view::npos) more = take(text.substr(0, tab), text.substr(tab + 1));
  }
  preload::ProgramFree(line);
  fclose(file);
}

}  // namespace

std::string FindListed(const std::string& path, std::string_view name) {
  std::string found;
  ForEachListed(path, [&](std::string_view child, std::string_view folder) {
    if (child == name) found = folder;
    return found.empty();
  });
  return found;
}

std::string FindChildFolder(const std::string& scratch, std::string_view name) {
  return FindListed(ListOf(scratch), name);
}

bool IsOtherRank(const std::string& scratch, std::string_view name) {
  bool is = false;
  ForEachListed(ListOf(scratch), [&](std::string_view child, std::string_view folder) {
    is = child == name && folder.empty();
    return !is;
  });
  return is;
}

std::vector<std::string> ChildFolders(const std::string& scratch) {
  std::vector<std::string> folders;
  ForEachListed(ListOf(scratch), [&](std::string_view, std::string_view folder) {
    if (!folder.empty()) folders.emplace_back(folder);
    return true;
  });
  return folders;
}

void PidMap::Add(int recorded, int live) {
  if (recorded <= 0 || live <= 0) return;
  Entry& entry = entries_[next_.fetch_add(1) % kEntries];
  entry.gone.store(false);
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

}  // namespace deja::replayer
