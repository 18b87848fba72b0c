#include "format/layout/rank_folder.h"

#include "common/os/folder_entries.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace deja::format {
namespace {

constexpr std::string_view kRankPrefix = "rank-";
constexpr size_t kDigits = 5;

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string MakeRankFolderName(uint32_t rank, uint32_t attempt) {
  std::string digits = std::to_string(rank);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  std::string name(kRankPrefix);
  name += digits;
  if (attempt > 0) name += "." + std::to_string(attempt);
  return name;
}

std::optional<RankFolderName> ParseRankFolderName(std::string_view name) {
  if (name.substr(0, kRankPrefix.size()) != kRankPrefix) return std::nullopt;
  const std::string_view numbers = name.substr(kRankPrefix.size());
  const size_t dot = numbers.find('.');
  const std::optional<uint32_t> rank = ParseNumber(numbers.substr(0, dot));
  if (!rank) return std::nullopt;
  RankFolderName parsed{*rank, 0};
  if (dot != std::string_view::npos) {
    const std::optional<uint32_t> attempt = ParseNumber(numbers.substr(dot + 1));
    if (!attempt) return std::nullopt;
    parsed.attempt = *attempt;
  }
  if (MakeRankFolderName(parsed.rank, parsed.attempt) != name) return std::nullopt;
  return parsed;
}

std::vector<RankFolderName> ListRankFolderNames(const std::string& directory) {
  std::vector<RankFolderName> names;
  ForEachEntry(directory.c_str(), [&](const char* entry, int) {
    if (const auto name = ParseRankFolderName(entry)) names.push_back(*name);
    return true;
  });
  std::sort(names.begin(), names.end(), [](const RankFolderName& a, const RankFolderName& b) {
    return std::pair(a.rank, a.attempt) < std::pair(b.rank, b.attempt);
  });
  return names;
}

uint64_t FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  ForEachEntry(folder.c_str(), [&](const char* name, int in) {
    struct stat info {};
    if (fstatat(in, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
      bytes += static_cast<uint64_t>(info.st_size);
    return true;
  });
  return bytes;
}

uint64_t EarlierAttemptBytes(const std::string& directory, uint32_t rank, uint32_t attempt) {
  uint64_t bytes = 0;
  for (uint32_t earlier = 0; earlier < attempt; ++earlier)
    bytes += FolderBytes(directory + "/" + MakeRankFolderName(rank, earlier));
  return bytes;
}

std::string MakeChildFolderName(std::string_view process_name) {
  return kChildPrefix + std::string(process_name);
}

bool IsChildFolderName(std::string_view name) {
  const std::string_view prefix = kChildPrefix;
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  const size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash > 10 || name.size() != dash + 9)
    return false;
  return name.find_first_not_of("0123456789") == dash &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == std::string_view::npos;
}

}  // namespace deja::format
