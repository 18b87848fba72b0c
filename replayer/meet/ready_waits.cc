// Waits for pipes of the rank's own, and what stands in eventfds: as they were recorded.
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "preload/engine/child_signal.h"
#include "preload/process/guard.h"
#include "replayer/core/ending.h"
#include "replayer/core/session.h"
#include "replayer/meet/ending_signal.h"
#include "replayer/meet/meetings.h"
#include "replayer/meet/other_threads.h"
#include "replayer/meet/pipe_order.h"
#include "replayer/meet/recorded_meetings.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/busy_threads.h"

namespace deja::replayer {
namespace {

using api::LibcApi;
using preload::CountCall;
using preload::Guard;
using preload::PollCall;

bool IsNonBlockingPipe(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// What a recorded wait had found.
class FoundReady {
 public:
  FoundReady(const PollCall& call, int64_t result, std::string_view found)
      : call_(call), found_(found), told_(call.told == nullptr ? 0 : TellCount(call, result)) {
    fits_ = found.size() == call.count * sizeof(int16_t) + told_;
  }

  // It was a wait for as many descriptors.
  [[nodiscard]] bool fits() const { return fits_; }
  int16_t operator[](nfds_t i) const {
    int16_t was = 0;
    std::memcpy(&was, found_.data() + i * sizeof was, sizeof was);
    return was;
  }
  // A thread that reads what is not there yet waits for it, and another thread may have read what
  // this one had only seen. What does not wait, and an end, has to be there.
  [[nodiscard]] bool MustBeThere(nfds_t i) const {
    const int16_t was = fits_ ? (*this)[i] : 0;
    if (was == 0) return false;
    return (was & (POLLIN | POLLOUT)) == 0 || IsNonBlockingPipe(call_.descriptors[i].fd);
  }
  [[nodiscard]] bool AreThere() const {
    if (!fits_) return call_.result > 0;
    for (nfds_t i = 0; i < call_.count; ++i)
      if (call_.descriptors[i].revents == 0 && MustBeThere(i)) return false;
    return true;
  }
  // All that was there.
  [[nodiscard]] bool AreSeen() const {
    for (nfds_t i = 0; fits_ && i < call_.count; ++i)
      if (call_.descriptors[i].revents == 0 && (*this)[i] != 0) return false;
    return fits_ || call_.result > 0;
  }
  // Puts it where the program finds it.
  void Give(PollCall& call, int64_t result) const {
    if (fits_) {
      for (nfds_t i = 0; i < call.count; ++i) call.descriptors[i].revents = (*this)[i];
      if (told_ != 0) std::memcpy(call.told, found_.data() + call.count * sizeof(int16_t), told_);
      call.result = static_cast<int>(result);
      return;
    }
    int found = 0;
    for (nfds_t i = 0; i < call.count; ++i) {
      if (call.descriptors[i].revents == 0) continue;
      if (call.told != nullptr) call.told[found] = static_cast<uint8_t>(i);
      ++found;
    }
    call.result = found;
  }

 private:
  static size_t TellCount(const PollCall& call, int64_t result) {
    return std::min(static_cast<size_t>(std::max<int64_t>(result, 0)),
                    static_cast<size_t>(call.count));
  }

  const PollCall& call_;
  std::string_view found_;
  size_t told_;  // how many descriptors epoll reported
  bool fits_;
};

void FindNothing(PollCall& call) {
  for (nfds_t i = 0; i < call.count; ++i) call.descriptors[i].revents = 0;
  call.result = 0;
}

// No other thread reads or writes there as this one does, and it never asked in vain.
bool ReadsAlone(Session& session, const ThreadState& thread, uint64_t key) {
  const auto made = MeetingsOf(session, thread, LibcApi::kpipe, key);
  if (made.empty()) return true;
  const RecordedInput& last = session.plan().inputs()[made.back()];
  return RecordedPipeRead(session.plan().Bytes(last.data)).is_alone;
}

enum class Outcome { kReady, kNothing, kError };

// `is_look`: the program looks at one pipe, that this thread alone reads, and will read what it
// finds. The writer may wait for a lock that the thread has, as in an executor of Python's. In the
// recorded run it got the lock later. So when nothing moves there is nothing, and the recorded look
// is still to come.
Outcome AwaitReady(Session& session, ThreadState& thread, PollCall& call, const FoundReady& ready,
                   bool is_look) {
  FindNothing(call);
  Stillness still(session);
  const int asked_ms = call.timeout_ms;
  // What another thread of this process does before it writes there, this one is to find done.
  constexpr int kQuietTicks = 2;
  int quiet = 0;
  Pauses pauses;  // where a look returns at once, since something else is there
  for (;;) {
    call.timeout_ms = static_cast<int>(Stillness::kTickNs / 1'000'000);
    call.Look();
    call.timeout_ms = asked_ms;
    if (call.result < 0) return Outcome::kError;
    if (ready.AreSeen()) return Outcome::kReady;
    quiet = IsAnotherThreadBusy() ? 0 : quiet + 1;
    if (!is_look && ready.AreThere() && quiet >= kQuietTicks) return Outcome::kReady;
    if (call.result > 0) pauses.Next();
    const Guard guard;
    const bool is_time = still.IsTimeToLook();
    if (is_look && still.ns() >= Stillness::kLeftNs) return Outcome::kNothing;
    if (!is_time) continue;
    if (still.IsTimeToTell())
      Say("replay: a thread waits for a pipe that had data in the recorded run, and nothing moves");
    if (!still.IsTimeToGiveUp()) continue;
    DivergeAtMeeting(session, thread, "poll", "the recorded data of a pipe does not arrive");
    return Outcome::kReady;
  }
}

// Takes what stands in the eventfd. False: nothing, or an error, which errno says.
bool TakeCount(int fd, uint64_t& value) {
  const iovec piece{&value, sizeof value};
  if (preadv2(fd, &piece, 1, -1, RWF_NOWAIT) == sizeof value) return true;
  if (errno != EOPNOTSUPP) return false;
  return read(fd, &value, sizeof value) == sizeof value;  // before Linux 5.8; poll has seen it
}

}  // namespace

void ServePoll(Session& session, ThreadState& thread, PollCall& call) {
  const bool keeps = KeepsOrder(session);
  // By the pipe, where the recording names it: one look more or less at one of them must not return
  // the state of another.
  const bool is_named = keeps && MadeMeetings(session, thread, LibcApi::kpoll, call.key);
  const uint64_t key = is_named ? call.key : 0;
  const RecordedInput* next = keeps ? NextMeeting(session, thread, LibcApi::kpoll, key) : nullptr;
  if (next == nullptr && keeps && AwaitEndingSignal(session, thread)) {
    FindNothing(call);
    call.result = -1;
    errno = EINTR;
    return;
  }
  // A look that the recorded thread did not take: what it found would be missing elsewhere.
  if (next == nullptr && keeps && thread.recorded != kNone && call.timeout_ms == 0)
    return FindNothing(call);
  if (next == nullptr) return call.Real();
  if (next->result == 0) {
    ConsumeMeeting(session, thread, LibcApi::kpoll, key);
    return FindNothing(call);
  }
  if (next->result < 0) {  // SIGCHLD
    FindNothing(call);
    call.result = -1;
    preload::RunChildSignalHandler();
    ConsumeMeeting(session, thread, LibcApi::kpoll, key);
    errno = EINTR;
    return;
  }
  const auto index = static_cast<uint32_t>(next - session.plan().inputs().data());
  AwaitMeetings(session, thread, session.plan().met_by_then().AtPoll(thread.recorded, index));
  const FoundReady ready(call, next->result, session.plan().Bytes(next->data));
  const bool is_look = call.timeout_ms == 0 && key != 0 && call.descriptors[0].events == POLLIN &&
                       ReadsAlone(session, thread, key);
  const Outcome outcome = AwaitReady(session, thread, call, ready, is_look);
  if (outcome == Outcome::kError) return;
  if (outcome == Outcome::kNothing) return FindNothing(call);
  ConsumeMeeting(session, thread, LibcApi::kpoll, key);
  ready.Give(call, next->result);
}

void ServeCount(Session& session, ThreadState& thread, CountCall& call) {
  const RecordedInput* next =
      KeepsOrder(session) ? NextMeeting(session, thread, LibcApi::keventfd, 0) : nullptr;
  if (next == nullptr) return call.Real();
  if (next->error != 0) {
    ConsumeMeeting(session, thread, LibcApi::keventfd, 0);
    call.error = next->error;
    return;
  }
  const auto wanted = static_cast<uint64_t>(next->result);
  uint64_t sum = 0;
  Stillness still(session);
  while (sum < wanted) {
    pollfd asked{call.fd, POLLIN, 0};
    // Not by the hook, and not within the guard: handlers of signals are the program's.
    if (syscall(SYS_poll, &asked, 1, static_cast<int>(Stillness::kTickNs / 1'000'000)) < 0) {
      call.error = errno;
      break;
    }
    const Guard guard;
    uint64_t more = 0;
    if (asked.revents != 0 && TakeCount(call.fd, more)) sum += more;
    if (sum >= wanted || !still.IsTimeToLook()) continue;
    if (still.IsTimeToTell())
      Say("replay: a thread waits for an eventfd that was written to, and nothing moves");
    if (!still.IsTimeToGiveUp()) continue;
    DivergeAtMeeting(session, thread, "eventfd", "a recorded write to an eventfd does not happen");
    call.value = sum;
    return call.Real();
  }
  const Guard guard;
  // Another writer has put more there than had come when the recorded thread looked.
  const uint64_t back = call.error != 0 ? sum : sum - wanted;
  if (back != 0 && write(call.fd, &back, sizeof back) != sizeof back)
    Say("replay: an eventfd takes nothing back");
  if (call.error != 0) return;
  ConsumeMeeting(session, thread, LibcApi::keventfd, 0);
  call.value = wanted;
}

}  // namespace deja::replayer
