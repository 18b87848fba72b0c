// The status line: one line on stderr that is redrawn in place, such as progress.
//
// Only on a terminal that can erase a line (TERM is not dumb). It has no colours. Output that goes
// to a terminal hides it first (output.h), so that no line is drawn over. Any thread.
#ifndef DEJA_CLI_STATUS_LINE_H_
#define DEJA_CLI_STATUS_LINE_H_

#include <mutex>
#include <string_view>

namespace deja::cli {

// Whether stderr is such a terminal.
bool HasStatusLine();
// Draws `text`, which is plain text, cut to the terminal's width.
void ShowStatusLine(std::string_view text);
// Erases it. Nothing happens if none is shown.
void HideStatusLine();

// Erases it, and keeps other threads from drawing it while this lives: what is written meanwhile
// begins at the beginning of a line. Whoever has one makes no other, and draws nothing.
class NoStatusLine {
 public:
  NoStatusLine();
  NoStatusLine(const NoStatusLine&) = delete;
  NoStatusLine& operator=(const NoStatusLine&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_STATUS_LINE_H_
