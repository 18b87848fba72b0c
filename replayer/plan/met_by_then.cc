#include "replayer/plan/met_by_then.h"

#include <algorithm>
#include <iterator>

namespace deja::replayer {

void MetByThen::AddMeeting(uint32_t thread, Meeting meeting, uint32_t input, uint64_t time_ns) {
  Thread& of = threads_[thread];
  of.meetings.push_back(time_ns);
  if (meeting == Meeting::kFound) of.polls.push_back({input, time_ns});
  if (meeting == Meeting::kWrite) writes_[thread].push_back({time_ns, of.meetings.size()});
}

void MetByThen::AddEnd(uint32_t thread, uint32_t pid, uint64_t time_ns) {
  threads_[thread].ends[pid].push_back(time_ns);
}

MeetingsByThread MetByThen::At(uint32_t thread, uint64_t time_ns) const {
  MeetingsByThread met;
  for (const auto& [other, of] : threads_) {
    const auto after = std::upper_bound(of.meetings.begin(), of.meetings.end(), time_ns);
    if (other != thread && after != of.meetings.begin())
      met.emplace_back(other, after - of.meetings.begin());
  }
  return met;
}

std::optional<uint64_t> MetByThen::TimeOf(uint32_t thread, uint64_t number) const {
  const auto of = threads_.find(thread);
  if (of == threads_.end() || number >= of->second.meetings.size()) return std::nullopt;
  return of->second.meetings[number];
}

MeetingsByThread MetByThen::AtEnd(uint32_t thread, uint32_t pid, size_t number) const {
  const auto own = threads_.find(thread);
  if (own == threads_.end()) return {};
  const auto ends = own->second.ends.find(pid);
  if (ends == own->second.ends.end() || number >= ends->second.size()) return {};
  return At(thread, ends->second[number]);
}

MeetingsByThread MetByThen::AtPoll(uint32_t thread, uint32_t input) const {
  const auto own = threads_.find(thread);
  if (writes_.empty() || own == threads_.end()) return {};
  const std::vector<Poll>& polls = own->second.polls;
  const auto poll =
      std::lower_bound(polls.begin(), polls.end(), input,
                       [](const Poll& one, uint32_t wanted) { return one.input < wanted; });
  if (poll == polls.end() || poll->input != input) return {};
  const uint64_t before_ns = poll == polls.begin() ? 0 : std::prev(poll)->time_ns;
  MeetingsByThread met;
  for (const auto& [other, writes] : writes_) {
    const auto after = std::upper_bound(
        writes.begin(), writes.end(), poll->time_ns,
        [](uint64_t time_ns, const Write& write) { return time_ns < write.time_ns; });
    if (other != thread && after != writes.begin() && std::prev(after)->time_ns > before_ns)
      met.emplace_back(other, std::prev(after)->number);
  }
  return met;
}

}  // namespace deja::replayer
