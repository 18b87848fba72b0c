#include "replayer/plan/met_by_then.h"

#include <algorithm>

#include "api/libc_table.h"

namespace deja::replayer {

void MetByThen::AddMeeting(uint32_t thread, const RecordedInput& input, uint32_t index,
                           uint64_t time_ns) {
  Thread& of = threads_[thread];
  of.meetings.push_back(time_ns);
  if (input.api == static_cast<uint32_t>(api::LibcApi::ksocketpair))
    of.writes.push_back({time_ns, of.meetings.size()});
  if (input.api == static_cast<uint32_t>(api::LibcApi::kpoll) && input.result > 0)
    of.polls.push_back({index, time_ns});
}

void MetByThen::AddEnd(uint32_t thread, uint32_t pid, uint64_t time_ns) {
  ends_.push_back({thread, pid, time_ns});
}

MeetingsByThread MetByThen::MetBy(const End& end) const {
  MeetingsByThread met;
  for (const auto& [thread, of] : threads_) {
    const auto last = std::upper_bound(of.meetings.begin(), of.meetings.end(), end.time_ns);
    if (thread != end.thread && last != of.meetings.begin())
      met.emplace_back(thread, last - of.meetings.begin());
  }
  return met;
}

MeetingsByThread MetByThen::WrittenBetween(uint32_t thread, uint64_t from_ns,
                                           uint64_t to_ns) const {
  MeetingsByThread met;
  for (const auto& [other, of] : threads_) {
    const auto after = std::upper_bound(
        of.writes.begin(), of.writes.end(), to_ns,
        [](uint64_t time_ns, const Write& write) { return time_ns < write.time_ns; });
    if (other != thread && after != of.writes.begin() && std::prev(after)->time_ns > from_ns)
      met.emplace_back(other, std::prev(after)->number);
  }
  return met;
}

void MetByThen::Finish(std::vector<RecordedThread>& threads,
                       std::unordered_map<uint32_t, MeetingsByThread>& at_polls) const {
  for (const End& end : ends_)
    if (threads[end.thread].name != "0")
      threads[end.thread].met_at_ends[end.pid].push_back(MetBy(end));
  for (const auto& [thread, of] : threads_) {
    uint64_t before_ns = 0;
    for (const Poll& poll : of.polls) {
      MeetingsByThread met = WrittenBetween(thread, before_ns, poll.time_ns);
      if (!met.empty()) at_polls.emplace(poll.input, std::move(met));
      before_ns = poll.time_ns;
    }
  }
}

}  // namespace deja::replayer
