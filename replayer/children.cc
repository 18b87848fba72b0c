#include "replayer/children.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deja::replayer {

std::string FindChildFolder(const std::string& scratch, std::string_view name) {
  FILE* file = fopen((scratch + "/children").c_str(), "re");
  if (file == nullptr) return {};
  std::string folder;
  char* line = nullptr;
  size_t capacity = 0;
  ssize_t size = 0;
  while (folder.empty() && (size = getline(&line, &capacity, file)) > 0) {
    std::string_view text(line, static_cast<size_t>(size));
    if (text.ends_with('\n')) text.remove_suffix(1);
    const size_t tab = text.find('\t');
    if (tab != std::string_view::npos && text.substr(0, tab) == name)
      folder = std::string(text.substr(tab + 1));
  }
  free(line);
  fclose(file);
  return folder;
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
