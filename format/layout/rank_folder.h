// Names inside a trace's directory: `rank-NNNNN`, `rank-NNNNN.A` for attempt A > 0,
// `child-PID-NONCE` for a process that a rank has made.
//
// Any thread. Five digits are the least, not the most.
#ifndef DEJA_FORMAT_LAYOUT_RANK_FOLDER_H_
#define DEJA_FORMAT_LAYOUT_RANK_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deja::format {

struct RankFolderName {
  uint32_t rank = 0;
  uint32_t attempt = 0;
  friend bool operator==(const RankFolderName&, const RankFolderName&) = default;
};

// The folder of an attempt of a rank, without a path.
std::string MakeRankFolderName(uint32_t rank, uint32_t attempt);

// Nothing if `name` is not exactly what MakeRankFolderName makes of some rank and attempt.
std::optional<RankFolderName> ParseRankFolderName(std::string_view name);

// The folders of ranks in `directory`, sorted by rank and attempt. None if it cannot be read.
std::vector<RankFolderName> ListRankFolderNames(const std::string& directory);

// Bytes of the files in a rank's or child's folder; 0 if it cannot be read.
uint64_t FolderBytes(const std::string& folder);
// The same of all attempts of the rank before `attempt`.
uint64_t EarlierAttemptBytes(const std::string& directory, uint32_t rank, uint32_t attempt);

inline constexpr char kChildPrefix[] = "child-";

// `process_name`: "PID-NONCE", as Tail::process_name().
std::string MakeChildFolderName(std::string_view process_name);
bool IsChildFolderName(std::string_view name);

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_RANK_FOLDER_H_
