// Screen: a terminal that shows one page after another, and takes keys.
//
// While one lives, the terminal has its alternate screen, no cursor, and keys come unread by line.
// The destructor gives back what was. Ctrl-C and Ctrl-Z are keys, so that the terminal is given
// back first. The owner has signals noted (cli/interruption.h) for the same reason. Main thread
// only; one at a time.
#ifndef DEJA_CLI_TOP_SCREEN_H_
#define DEJA_CLI_TOP_SCREEN_H_

#include <termios.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace deja::cli {

enum class Key { kNone, kQuit, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kResized };

class Screen {
 public:
  // Null where standard input or output is no terminal that can do this.
  static std::unique_ptr<Screen> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    size_t columns = 80;
    size_t lines = 24;
  };
  [[nodiscard]] Size size() const;

  // `lines`: plain text that fits. `heading`: the one in reverse video.
  void Show(const std::vector<std::string>& lines, size_t heading);

  // Waits for a key or a new size of the terminal. kNone: neither came.
  Key WaitForKey(int milliseconds);

 private:
  explicit Screen(const termios& before) : before_(before) {}
  void Begin();
  void End();
  void Suspend();
  Key TakeKey();

  termios before_;
  std::string typed_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_TOP_SCREEN_H_
