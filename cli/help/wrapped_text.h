// Text for a terminal of a fixed width: words laid out in lines.
//
// Pure functions; any thread. A character of UTF-8 counts as one column.
#ifndef DEJA_CLI_HELP_WRAPPED_TEXT_H_
#define DEJA_CLI_HELP_WRAPPED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace deja::cli {

// What help texts are wrapped at.
inline constexpr size_t kHelpColumns = 100;

// Columns that the text takes.
size_t Columns(std::string_view text);

// Lines of at most `width` columns. A word that is longer has a line of its own.
std::vector<std::string> WrappedLines(std::string_view text, size_t width);

// "  NAME      text that goes on\n            below itself\n", for a list whose texts begin at
// `column`. A name that reaches that column has a line of its own.
std::string ListEntry(std::string_view name, std::string_view text, size_t column);

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_WRAPPED_TEXT_H_
