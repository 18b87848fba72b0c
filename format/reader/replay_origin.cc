#include "format/reader/replay_origin.h"

#include <charconv>
#include <memory>

#include "format/reader/rank_reader.h"

namespace deja::format {
namespace {

constexpr std::string_view kFirstWord = "deja-replay-of";
constexpr std::string_view kTrace = " trace=";  // the last one: a path may hold anything

// The value after `key`, up to the next space; empty: it is not there.
std::string_view ValueOf(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return rest.substr(0, rest.find(' '));
}

std::optional<uint64_t> NumberOf(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

std::string ReplayOrigin::Write() const {
  std::string text(kFirstWord);
  text += " job=" + job_id + " attempt=" + std::to_string(attempt);
  if (from_step)
    text += " from-step=" + std::to_string(*from_step) +
            " skipped=" + std::to_string(skipped.first_ns) + "-" + std::to_string(skipped.last_ns);
  return text.append(kTrace) + trace;
}

std::optional<ReplayOrigin> ParseReplayOrigin(std::string_view text) {
  const size_t trace = text.find(kTrace);
  if (text.substr(0, kFirstWord.size()) != kFirstWord || trace == std::string_view::npos)
    return std::nullopt;
  ReplayOrigin origin;
  origin.trace = std::string(text.substr(trace + kTrace.size()));
  text = text.substr(0, trace);
  origin.job_id = std::string(ValueOf(text, " job="));
  origin.attempt = static_cast<uint32_t>(NumberOf(ValueOf(text, " attempt=")).value_or(0));
  origin.from_step = NumberOf(ValueOf(text, " from-step="));
  const std::string_view skipped = ValueOf(text, " skipped=");
  const size_t dash = skipped.find('-');
  if (!origin.from_step || dash == std::string_view::npos) return origin;
  const auto first = NumberOf(skipped.substr(0, dash));
  const auto last = NumberOf(skipped.substr(dash + 1));
  if (first && last) origin.skipped = {*first, *last};
  return origin;
}

std::optional<ReplayOrigin> ReadReplayOrigin(const RankReader& reader) {
  const std::unique_ptr<EventCursor> cursor = reader.Events();
  std::optional<ReplayOrigin> origin;
  while (const Event* event = cursor->NextOf(KindBit(EventKind::kNote))) {
    if (event->thread != 0) continue;
    const std::string_view text = event->As<Note>()->text;
    if (!origin) {
      origin = ParseReplayOrigin(text);
      if (!origin) return std::nullopt;
    } else if (text == kReplayEnded) {
      origin->ended_ns = event->time_ns;
    }
  }
  return origin;
}

}  // namespace deja::format
