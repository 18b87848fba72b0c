#include "tests/fuzz/rank_input.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "format/layout/rank_folder.h"
#include "format/wire/frame_format.h"

namespace deja::format::fuzz {

void WriteRankInput(std::span<const std::byte> bytes, const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto magic = std::as_bytes(std::span(kMagic));
  const size_t middle = bytes.size() / 2;
  for (const auto& [name, part] : {std::pair{kEventsFile, bytes.first(middle)},
                                   std::pair{kPayloadsFile, bytes.subspan(middle)}}) {
    std::vector<std::byte> file = {part.begin(), part.end()};
    if (file.size() < kMagicBytes || !std::equal(magic.begin(), magic.end(), file.begin()))
      file.insert(file.begin(), magic.begin(), magic.end());
    samples::WriteFileBytes(folder + "/" + name, file);
  }
}

std::vector<std::byte> RankInputOf(const samples::SampleRank& rank) {
  std::vector<std::byte> bytes = rank.events_file;
  const size_t longer = std::max(rank.events_file.size(), rank.payloads_file.size());
  bytes.resize(longer);
  bytes.insert(bytes.end(), rank.payloads_file.begin(), rank.payloads_file.end());
  bytes.resize(2 * longer);
  return bytes;
}

std::unique_ptr<RankReader> OpenRankInput(const std::string& folder) {
  auto reader = RankReader::Open(folder, {.use_tail = false});
  if (!reader || !(*reader)->header().tail.path.empty()) return nullptr;
  return std::move(*reader);
}

}  // namespace deja::format::fuzz
