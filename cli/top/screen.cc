#include "cli/top/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace deja::cli {
namespace {

volatile sig_atomic_t g_resized = 0;

void NoteResize(int) {
  g_resized = 1;
}

void Put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

constexpr char kCtrlC = 3;
constexpr char kCtrlZ = 26;

// What terminals send, the longest first.
constexpr std::array<std::pair<std::string_view, Key>, 18> kKeys = {{
    {"\033[5~", Key::kPageUp},
    {"\033[6~", Key::kPageDown},
    {"\033[1~", Key::kHome},
    {"\033[4~", Key::kEnd},
    {"\033[A", Key::kUp},
    {"\033[B", Key::kDown},
    {"\033OA", Key::kUp},
    {"\033OB", Key::kDown},
    {"\033[H", Key::kHome},
    {"\033[F", Key::kEnd},
    {"q", Key::kQuit},
    {"Q", Key::kQuit},
    {"k", Key::kUp},
    {"j", Key::kDown},
    {" ", Key::kPageDown},
    {"b", Key::kPageUp},
    {"g", Key::kHome},
    {"G", Key::kEnd},
}};

}  // namespace

std::unique_ptr<Screen> Screen::Open() {
  const char* kind = std::getenv("TERM");
  if (kind == nullptr || std::strcmp(kind, "dumb") == 0) return nullptr;
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) return nullptr;
  termios before{};
  if (tcgetattr(STDIN_FILENO, &before) != 0) return nullptr;
  auto screen = std::unique_ptr<Screen>(new Screen(before));
  struct sigaction action {};
  action.sa_handler = NoteResize;
  sigaction(SIGWINCH, &action, nullptr);
  screen->Begin();
  return screen;
}

Screen::~Screen() {
  End();
  signal(SIGWINCH, SIG_DFL);
}

void Screen::Begin() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  Put("\033[?1049h\033[?25l");
  std::fflush(stdout);
}

void Screen::End() {
  Put("\033[0m\033[?25h\033[?1049l");
  std::fflush(stdout);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::Suspend() {
  End();
  raise(SIGSTOP);
  Begin();
}

Screen::Size Screen::size() const {
  winsize its{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &its) != 0 || its.ws_col == 0 || its.ws_row == 0) return {};
  return {its.ws_col, its.ws_row};
}

void Screen::Show(const std::vector<std::string>& lines, size_t heading) {
  // Line by line over what was there: no flicker.
  std::string all = "\033[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) all += "\r\n";
    if (i == heading) all += "\033[7m";
    all += lines[i];
    all += i == heading ? "\033[0m\033[K" : "\033[K";
  }
  all += "\033[J";
  Put(all);
  std::fflush(stdout);
}

Key Screen::WaitForKey(int milliseconds) {
  if (const Key key = TakeKey(); key != Key::kNone) return key;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&input, 1, milliseconds);
  if (std::exchange(g_resized, 0) != 0) return Key::kResized;
  if (ready <= 0) return Key::kNone;
  std::array<char, 64> bytes{};
  const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return Key::kQuit;  // the terminal is gone
  typed_.append(bytes.data(), static_cast<size_t>(count));
  return TakeKey();
}

Key Screen::TakeKey() {
  while (!typed_.empty()) {
    if (typed_.front() == kCtrlC) return Key::kQuit;
    if (typed_.front() == kCtrlZ) {
      typed_.erase(0, 1);
      Suspend();
      return Key::kResized;
    }
    for (const auto& [text, key] : kKeys) {
      if (!std::string_view(typed_).starts_with(text)) continue;
      typed_.erase(0, text.size());
      return key;
    }
    typed_.erase(0, 1);
  }
  return Key::kNone;
}

}  // namespace deja::cli
