#include "check/evidence/summary.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace deja::check {

std::string Describe(const Place& place) {
  if (place.file.empty()) return place.function;
  std::string text = fmt::format("{}:{}", place.file, place.line);
  if (!place.function.empty()) text += " in " + place.function;
  return text;
}

Place ParsePlace(const std::string& text) {
  Place place;
  const size_t in = text.find(" in ");
  const size_t colon = text.rfind(':', in);
  if (in == std::string::npos || colon == std::string::npos) return place;
  place.file = text.substr(0, colon);
  place.line = std::atoi(text.substr(colon + 1, in - colon - 1).c_str());
  place.function = text.substr(in + 4);
  return place;
}

std::string Describe(const Site& site) {
  if (site.empty()) return "";
  std::string text = Describe(site.front());
  if (site.size() > 1) text += fmt::format(" (from {})", Describe(site[1]));
  return text;
}

std::string EndState::Describe() const {
  const char* name = sigabbrev_np(signal);
  std::string what =
      name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
  switch (kind) {
    case EndKind::kExit:
      return fmt::format("exit {}", code) + (exception.empty() ? "" : ", " + exception);
    case EndKind::kSignal:
      return what;
    case EndKind::kEnded:
      return fmt::format("ended from outside by {}", what);
    case EndKind::kRunning:
      return "still running";
    case EndKind::kUnknown:
      break;
  }
  return "died without a word (SIGKILL or power loss)";
}

}  // namespace deja::check
