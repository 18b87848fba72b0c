#include "replayer/files/served_folders.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace deja::replayer {

std::vector<dirent> EntriesOf(std::string_view recorded) {
  std::vector<dirent> entries;
  while (!recorded.empty()) {
    const size_t end = std::min(recorded.find('\0'), recorded.size());
    const std::string_view one = recorded.substr(0, end);
    recorded.remove_prefix(std::min(end + 1, recorded.size()));
    dirent entry{};
    if (one.size() < 2 || one.size() > sizeof entry.d_name ||
        one.find('/') != std::string_view::npos)
      continue;
    const char type = one[0];
    entry.d_type = type == 'd' ? DT_DIR : type == 'f' ? DT_REG : type == 'l' ? DT_LNK : DT_UNKNOWN;
    std::memcpy(entry.d_name, one.data() + 1, one.size() - 1);
    entry.d_ino = std::hash<std::string_view>()(one) | 1;
    entry.d_off = static_cast<off_t>(entries.size() + 1);
    entry.d_reclen = sizeof entry;
    entries.push_back(entry);
  }
  return entries;
}

void ServedFolders::OnOpened(DIR* stream, const char* path) {
  Folder folder;
  if (find_ == nullptr || !find_(stream, path, folder, context_)) return;
  auto listing = std::make_unique<Listing>();
  listing->entries = EntriesOf(folder.entries);
  for (dirent& entry : listing->entries)
    if (const uint64_t inode = inode_(folder.name + "/" + entry.d_name, context_); inode != 0)
      entry.d_ino = inode;
  std::lock_guard<std::mutex> lock(mutex_);
  listings_[stream] = std::move(listing);
}

ServedFolders::Listing* ServedFolders::ListingOf(DIR* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = listings_.find(stream);
  return it == listings_.end() ? nullptr : it->second.get();
}

bool ServedFolders::Serves(DIR* stream) {
  return ListingOf(stream) != nullptr;
}

dirent* ServedFolders::Next(DIR* stream) {
  Listing* listing = ListingOf(stream);
  if (listing == nullptr || listing->next >= listing->entries.size()) return nullptr;
  return &listing->entries[listing->next++];
}

long ServedFolders::Position(DIR* stream) {
  const Listing* listing = ListingOf(stream);
  return listing == nullptr ? 0 : static_cast<long>(listing->next);
}

void ServedFolders::SetPosition(DIR* stream, long position) {
  Listing* listing = ListingOf(stream);
  if (listing == nullptr || position < 0) return;
  listing->next = std::min(static_cast<size_t>(position), listing->entries.size());
}

void ServedFolders::OnClosed(DIR* stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  listings_.erase(stream);
}

}  // namespace deja::replayer
