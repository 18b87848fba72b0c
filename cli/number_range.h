// NumberRange: "A", "A-B", "A-" or "-B" as an option's value; and lists of ranks.
//
// Values and pure functions.
#ifndef DEJA_CLI_NUMBER_RANGE_H_
#define DEJA_CLI_NUMBER_RANGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace deja::cli {

struct NumberRange {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  [[nodiscard]] bool Holds(uint64_t value) const { return from <= value && value <= to; }
};

// Everything if `text` is empty. The error names `option`.
Result<NumberRange> ParseRange(const std::string& option, const std::string& text);

// What --ranks was given between commas: "2", "0-3". In the order given.
Result<std::vector<uint32_t>> ParseRanks(const std::vector<std::string>& texts);

}  // namespace deja::cli

#endif  // DEJA_CLI_NUMBER_RANGE_H_
