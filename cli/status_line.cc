#include "cli/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace deja::cli {
namespace {

std::mutex g_mutex;
bool g_is_shown = false;

size_t Columns() {
  winsize its{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &its) != 0 || its.ws_col == 0) return 80;
  return its.ws_col;
}

// A line that wraps could not be erased. Code points, so that the width is about the length.
std::string_view Cut(std::string_view text, size_t columns) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++width == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

bool HasStatusLine() {
  static const bool has_one = [] {
    const char* kind = std::getenv("TERM");
    const bool can_erase = kind != nullptr && *kind != '\0' && std::strcmp(kind, "dumb") != 0;
    return can_erase && isatty(STDERR_FILENO) == 1;
  }();
  return has_one;
}

void ShowStatusLine(std::string_view text) {
  if (!HasStatusLine()) return;
  std::string line = "\r";
  line += Cut(text, Columns());
  line += "\033[K";
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_is_shown = true;
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

NoStatusLine::NoStatusLine() : lock_(g_mutex) {
  if (!g_is_shown) return;
  g_is_shown = false;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void HideStatusLine() {
  const NoStatusLine hidden;
}

}  // namespace deja::cli
