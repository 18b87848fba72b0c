#include "cli/replay/watch/recorded_silence.h"

#include <algorithm>
#include <cstddef>

#include "api/libc_table.h"

namespace deja::cli {
namespace {

using api::InputKind;
using format::EventKind;
using format::KindBit;

constexpr uint64_t kNsPerSecond = 1'000'000'000;
// Each of these is counted in a replay, too.
constexpr uint64_t kCounted = KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCallLeave) |
                              KindBit(EventKind::kCallResults) | KindBit(EventKind::kStep) |
                              KindBit(EventKind::kSnapshot) | KindBit(EventKind::kTransfer) |
                              KindBit(EventKind::kInput);
// This one is not, and says when a recording was over.
constexpr uint64_t kLast = KindBit(EventKind::kProcessExit) | KindBit(EventKind::kCrash);

bool IsCounted(const format::Event& event) {
  const auto* input = event.As<format::Input>();
  if (input == nullptr) return true;
  const InputKind kind = api::InputKindOf(input->api);
  const bool counts =
      kind == InputKind::kEntropy || kind == InputKind::kMeeting || kind == InputKind::kPosition;
  return counts && input->api != static_cast<uint32_t>(api::LibcApi::ksigaction);
}

// The seconds in which something was done, since the rank began.
class Seconds {
 public:
  // `start_ns`: no event is earlier.
  explicit Seconds(uint64_t start_ns) : start_ns_(start_ns) { Add(start_ns); }

  void Add(const format::RankReader& reader) {
    const auto cursor = reader.Events();
    while (const format::Event* event = cursor->NextOf(kCounted | kLast))
      if (IsCounted(*event)) Add(event->time_ns);
  }

  [[nodiscard]] std::chrono::seconds LongestGap() const {
    size_t longest = 0;
    size_t last = 0;
    for (size_t at = 0; at < used_.size(); ++at) {
      if (!used_[at]) continue;
      longest = std::max(longest, at - last);
      last = at;
    }
    return std::chrono::seconds(longest + 1);
  }

 private:
  void Add(uint64_t time_ns) {
    constexpr size_t kMost = 366UL * 24 * 3600;  // of a damaged recording: any time
    const size_t at = time_ns < start_ns_ ? 0 : (time_ns - start_ns_) / kNsPerSecond;
    if (at >= kMost) return;
    if (at >= used_.size()) used_.resize(at + 1);
    used_[at] = true;
  }

  const uint64_t start_ns_;
  std::vector<bool> used_;
};

}  // namespace

std::chrono::seconds LongestSilence(const std::vector<const format::RankReader*>& processes) {
  uint64_t start_ns = UINT64_MAX;
  for (const format::RankReader* reader : processes)
    start_ns = std::min(start_ns, reader->header().start_mono_ns);
  Seconds seconds(start_ns);
  for (const format::RankReader* reader : processes) seconds.Add(*reader);
  return seconds.LongestGap();
}

std::chrono::seconds LongestSilence(format::Trace& trace, uint32_t rank, int attempt) {
  const auto own = trace.Rank(rank, attempt);
  if (!own) return {};
  std::vector<const format::RankReader*> all = {*own};
  // A forked rank's replay begins with what its ancestors did.
  for (const auto& processes : {trace.LifeBefore(rank, attempt), trace.Children(rank, attempt)}) {
    if (!processes) continue;
    for (const format::ChildFolder& process : *processes)
      if (const auto reader = trace.Process(process)) all.push_back(*reader);
  }
  return LongestSilence(all);
}

}  // namespace deja::cli
