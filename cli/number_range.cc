#include "cli/number_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace deja::cli {

Result<NumberRange> ParseRange(const std::string& option, const std::string& text) {
  NumberRange range;
  if (text.empty()) return range;
  size_t dash = text.find('-');
  auto number = [](std::string_view part, uint64_t& value) {
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  std::string low = text.substr(0, dash);
  std::string high = dash == std::string::npos ? low : text.substr(dash + 1);
  if ((low.empty() && high.empty()) || (!low.empty() && !number(low, range.from)) ||
      (!high.empty() && !number(high, range.to)) || range.from > range.to)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} {}: not a range; write A, A-B, A- or -B with A <= B", option, text));
  return range;
}

Result<std::vector<uint32_t>> ParseRanks(const std::vector<std::string>& texts) {
  constexpr uint64_t kMost = 1 << 20;
  std::vector<uint32_t> ranks;
  for (const std::string& text : texts) {
    DEJA_ASSIGN_OR_RETURN(const NumberRange range, ParseRange("--ranks", text));
    if (range.to >= kMost || text.empty())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("--ranks {}: not a list of ranks; write one such as 2 or 0-3,7", text));
    for (uint64_t rank = range.from; rank <= range.to; ++rank)
      ranks.push_back(static_cast<uint32_t>(rank));
  }
  return ranks;
}

}  // namespace deja::cli
