// A TopView in words: lines for a pipe, a page for a terminal.
//
// Pure functions. Strings of the trace are plain text in them.
#ifndef DEJA_CLI_TOP_TOP_TEXT_H_
#define DEJA_CLI_TOP_TOP_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/top/top_view.h"

namespace deja::cli {

// A line on the job, then one for each wait and each straggler, at most `most` of a kind.
std::vector<std::string> TopLines(const TopView& view, size_t most);

struct TopPage {
  std::vector<std::string> lines;  // plain text, at most the screen's size
  size_t heading = 0;              // the line that is the table's heading
  size_t first_row = 0;            // what was asked for, within bounds
};

// `columns` and `lines`: of the screen. `first_row`: of the table's rows, which one comes first.
TopPage MakeTopPage(const TopView& view, size_t columns, size_t lines, size_t first_row);

}  // namespace deja::cli

#endif  // DEJA_CLI_TOP_TOP_TEXT_H_
