// "Did you mean": the name that a user most likely wanted to type.
//
// Pure functions; any thread.
#ifndef DEJA_CLI_HELP_NEAREST_NAME_H_
#define DEJA_CLI_HELP_NEAREST_NAME_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace deja::cli {

// How many letters are inserted, left out, exchanged or swapped with their neighbour between two
// words.
size_t EditDistance(std::string_view a, std::string_view b);

// The one of `names` that is most like `name`, or that alone begins with it; empty: none is alike.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

// "; did you mean 'replay'?", or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_NEAREST_NAME_H_
