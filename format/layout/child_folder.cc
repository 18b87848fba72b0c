#include "format/layout/child_folder.h"

#include <algorithm>

#include "common/os/file.h"
#include "common/os/folder_entries.h"
#include "format/layout/payload_segments.h"
#include "format/layout/rank_folder.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {

namespace {

Result<Origin> OriginIn(const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file, OpenReadFile(path));
  FrameReader reader(*file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  std::vector<std::byte> payload;
  const FrameResult frame = reader.Next(payload);
  TraceHeader header;
  if (frame.outcome != FrameOutcome::kRecord || frame.type != FrameType::kHeader ||
      !Decode(payload, header))
    return Fail(ErrorCode::kCorrupt, "opening: " + path + ": it does not begin with a header");
  return Origin{std::string(header.origin.root),
                std::string(header.origin.path),
                header.process.pid,
                header.process.parent_pid,
                std::string(header.process.hostname),
                std::string(header.tail.path)};
}

}  // namespace

Result<Origin> ReadOrigin(const std::string& folder) {
  Result<Origin> origin = OriginIn(folder + "/" + kEventsFile);
  if (origin || origin.error().code != ErrorCode::kCorrupt) return origin;
  // Every file of a folder begins with the same header.
  for (const uint32_t segment : ListSegments(folder))
    if (Result<Origin> other = OriginIn(folder + "/" + SegmentFileName(segment))) return other;
  return origin;
}

std::vector<std::string> ListChildFolders(const std::string& directory) {
  std::vector<std::string> folders;
  ForEachEntry(directory.c_str(), [&](const char* name, int) {
    if (IsChildFolderName(name)) folders.push_back(directory + "/" + name);
    return true;
  });
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool IsBelow(const Origin& child, const Origin& ancestor, std::string& name) {
  if (child.root.empty() || child.root != ancestor.root) return false;
  std::string_view rest = child.path;
  if (!ancestor.path.empty()) {
    if (!rest.starts_with(ancestor.path)) return false;
    rest.remove_prefix(ancestor.path.size());
    if (!rest.starts_with('/')) return false;
    rest.remove_prefix(1);
  }
  if (rest.empty() || rest[0] == '+') return false;
  name = std::string(rest);
  return true;
}

int OwnerOf(const Origin& child, const std::vector<Origin>& ranks, std::string& name) {
  int owner = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::string below;
    if (!IsBelow(child, ranks[i], below)) continue;
    if (owner >= 0 && ranks[static_cast<size_t>(owner)].path.size() >= ranks[i].path.size())
      continue;
    owner = static_cast<int>(i);
    name = std::move(below);
  }
  return owner;
}

std::optional<std::string> ForkedFrom(const std::string& path) {
  const size_t number = path.rfind('/');
  if (number == std::string::npos || number == 0 || path.find('+', number) != std::string::npos)
    return std::nullopt;
  const size_t thread = path.rfind('/', number - 1);
  return path.substr(0, thread == std::string::npos ? 0 : thread);
}

bool IsForkAncestor(const Origin& process, const std::vector<Origin>& ranks) {
  for (const Origin& rank : ranks) {
    if (rank.root.empty() || rank.root != process.root) continue;
    for (auto path = ForkedFrom(rank.path); path; path = ForkedFrom(*path))
      if (*path == process.path) return true;
  }
  return false;
}

bool NameBefore(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const size_t i0 = i;
      const size_t j0 = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      if (i - i0 != j - j0) return i - i0 < j - j0;
      const int order = a.compare(i0, i - i0, b, j0, j - j0);
      if (order != 0) return order < 0;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

}  // namespace deja::format
