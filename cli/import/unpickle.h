// Unpickle: a pickled value as JSON, for values that are numbers, texts, lists and dictionaries.
//
// What the pickle would call or import is refused, so nothing of it is executed. Input is hostile:
// its depth, its size and what it refers to again and again are bounded. Pure; any thread.
#ifndef DEJA_CLI_IMPORT_UNPICKLE_H_
#define DEJA_CLI_IMPORT_UNPICKLE_H_

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/result.h"

namespace deja::cli {

// Tuples become arrays, keys texts. kForeign: no pickle, or one with objects; kTruncated; kLimit.
Result<nlohmann::json> Unpickle(std::string_view bytes);

}  // namespace deja::cli

#endif  // DEJA_CLI_IMPORT_UNPICKLE_H_
