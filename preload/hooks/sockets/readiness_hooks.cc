// Waiting for descriptors by which processes of a rank speak to each other (own_pipes.h): the
// variants of poll, select and epoll. What is found, and when, is an input of the program. Whatever
// else is waited for goes to the real functions.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "preload/calls/meeting_calls.h"
#include "preload/hooks/child_signal_places.h"
#include "preload/hooks/descriptors/epoll_sets.h"
#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(pollfd*, nfds_t, int)> real_poll{"poll"};
constinit RealFn<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)> real_ppoll{"ppoll"};
constinit RealFn<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)> real_select{"select"};
constinit RealFn<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    real_pselect{"pselect"};
constinit RealFn<int (*)(int)> real_epoll_create{"epoll_create"};
constinit RealFn<int (*)(int)> real_epoll_create1{"epoll_create1"};
constinit RealFn<int (*)(int, int, int, epoll_event*)> real_epoll_ctl{"epoll_ctl"};
constinit RealFn<int (*)(int, epoll_event*, int, int)> real_epoll_wait{"epoll_wait"};
constinit RealFn<int (*)(int, epoll_event*, int, int, const sigset_t*)> real_epoll_pwait{
    "epoll_pwait"};
constinit RealFn<int (*)(int, epoll_event*, int, const timespec*, const sigset_t*)>
    real_epoll_pwait2{"epoll_pwait2"};

constexpr size_t kMostPolled = EpollSet::kMost;

// In ms, not less than `timeout`; -1: for good.
int Milliseconds(const timespec* timeout) {
  constexpr int64_t kMost = 1 << 30;
  if (timeout == nullptr || timeout->tv_sec >= kMost / 1000) return -1;
  return static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
}

// A wait on its way through the engine. `real(PollCall&)` makes the program's call.
template <typename Real>
void Wait(Engine& engine, PollCall& call, const sigset_t* mask, Real real) {
  struct Context {
    Real& real;
    const sigset_t* mask;
  } context{real, mask};
  call.context = &context;
  call.real = [](PollCall& c, void* with) { static_cast<Context*>(with)->real(c); };
  call.look = [](PollCall& c, void* with) {
    const timespec wait{c.timeout_ms / 1000, c.timeout_ms % 1000 * 1000000L};
    c.result = real_ppoll(c.descriptors, c.count, c.timeout_ms < 0 ? nullptr : &wait,
                          static_cast<Context*>(with)->mask);
  };
  const MeetingCall meeting;
  engine.meetings->OnPoll(call);
  call.context = nullptr;  // it ends here, the call does not
}

// ---- poll

bool AreOwnPipes(const pollfd* descriptors, nfds_t count) {
  return descriptors != nullptr && count != 0 && count <= kMostPolled &&
         std::all_of(descriptors, descriptors + count,
                     [](const pollfd& asked) { return IsOwnPipe(asked.fd); });
}

// For a wait for one pipe.
uint64_t KeyOfPipe(const pollfd* descriptors, nfds_t count) {
  FdObject* object = count == 1 ? FdTable::Find(descriptors->fd) : nullptr;
  if (object == nullptr || object->kind() != FdObject::Kind::kPipe) return 0;
  const auto* pipe = static_cast<const OwnPipe*>(object);
  const PipeSlot* slot = pipe->in() != nullptr ? pipe->in() : pipe->out();
  return slot == nullptr ? 0 : slot->key.load(std::memory_order_relaxed);
}

// `real(pollfd*, nfds_t)` makes the call.
template <typename Real>
int Poll(pollfd* descriptors, nfds_t count, int timeout_ms, const sigset_t* mask, Real real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr || !AreOwnPipes(descriptors, count)) return real();
  PollCall call{.descriptors = descriptors, .count = count, .timeout_ms = timeout_ms};
  call.key = KeyOfPipe(descriptors, count);
  Wait(*engine, call, mask, [&](PollCall& c) { c.result = real(); });
  return call.result;
}

// ---- select

// What a bit in each of select's sets says, in poll's words.
constexpr size_t kWays = 3;
constexpr short kAsked[kWays] = {POLLIN, POLLOUT, POLLPRI};
constexpr short kFound[kWays] = {POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI};

class SelectSets {
 public:
  SelectSets(int count, fd_set* in, fd_set* out, fd_set* urgent) : sets_{in, out, urgent} {
    if (count <= 0 || count > FD_SETSIZE) return;
    for (int fd = 0; fd < count; ++fd) {
      const short asked = BitsOf(fd);
      if (asked == 0) continue;
      if (size_ == kMostPolled || !IsOwnPipe(fd)) {
        size_ = 0;
        return;
      }
      descriptors_[size_++] = {fd, asked, 0};
    }
  }
  // 0: there is something else among them, or nothing.
  [[nodiscard]] size_t size() const { return size_; }
  pollfd* descriptors() { return descriptors_; }

  // The sets say what was found: so do the descriptors.
  void Read(int result) {
    for (size_t i = 0; i < size_; ++i)
      descriptors_[i].revents = result > 0 ? BitsOf(descriptors_[i].fd) : short{0};
  }
  // And the other way round. Returns select's result.
  int Write() {
    int found = 0;
    for (size_t way = 0; way < kWays; ++way) {
      if (sets_[way] == nullptr) continue;
      for (size_t i = 0; i < size_; ++i) {
        const pollfd& d = descriptors_[i];
        const bool is_there = (d.events & kAsked[way]) != 0 && (d.revents & kFound[way]) != 0;
        found += is_there ? 1 : 0;
        if (!is_there) FD_CLR(d.fd, sets_[way]);
      }
    }
    return found;
  }

 private:
  [[nodiscard]] short BitsOf(int fd) const {
    int bits = 0;
    for (size_t way = 0; way < kWays; ++way)
      if (sets_[way] != nullptr && FD_ISSET(fd, sets_[way])) bits |= kAsked[way];
    return static_cast<short>(bits);
  }

  fd_set* sets_[kWays];
  pollfd descriptors_[kMostPolled];
  size_t size_ = 0;
};

// `real()` makes the call.
template <typename Real>
int Select(int count, fd_set* in, fd_set* out, fd_set* urgent, int timeout_ms, const sigset_t* mask,
           Real real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  SelectSets sets(count, in, out, urgent);
  if (sets.size() == 0) return real();
  bool made = false;
  PollCall call{.descriptors = sets.descriptors(), .count = sets.size(), .timeout_ms = timeout_ms};
  Wait(*engine, call, mask, [&](PollCall& c) {
    c.result = real();
    made = true;
    sets.Read(c.result);
  });
  return made || call.result < 0 ? call.result : sets.Write();
}

// ---- epoll

int Created(int epoll) {
  if (epoll < 0 || EngineForHook() == nullptr) return epoll;
  if (EpollSet* set = EpollSet::Take()) FdTable::Set(epoll, set);
  return epoll;
}

struct EpollEvents {
  epoll_event* events;
  int room;
};

// `real()` makes the call.
template <typename Real>
int EpollWait(int epoll, EpollEvents out, int timeout_ms, const sigset_t* mask, Real real) {
  EpollSet* set = EpollSet::Of(epoll);
  Engine* engine = set == nullptr ? nullptr : EngineForHook();
  if (engine == nullptr || out.events == nullptr || out.room <= 0) return real();
  pollfd descriptors[kMostPolled];
  epoll_data_t names[kMostPolled];
  uint8_t told[kMostPolled];
  const size_t count = set->Members(descriptors, names);
  if (count == 0) return real();
  bool made = false;
  PollCall call{.descriptors = descriptors, .count = count, .timeout_ms = timeout_ms, .told = told};
  Wait(*engine, call, mask, [&](PollCall& c) {
    c.result = real();
    made = true;
    const int found = std::min(c.result, static_cast<int>(kMostPolled));
    for (int i = 0; i < found; ++i) {
      told[i] = kUnknownDescriptor;  // another thread has added it meanwhile
      for (size_t at = 0; at < count && told[i] == kUnknownDescriptor; ++at) {
        if (descriptors[at].revents != 0 || names[at].u64 != out.events[i].data.u64) continue;
        descriptors[at].revents = static_cast<short>(out.events[i].events & 0x7fff);
        told[i] = static_cast<uint8_t>(at);
      }
    }
  });
  if (made || call.result < 0) return call.result;
  int found = 0;
  for (int i = 0; i < call.result && found < out.room; ++i) {
    const uint8_t at = told[i];
    if (at >= count) continue;
    out.events[found].events = static_cast<uint16_t>(descriptors[at].revents);
    out.events[found++].data = names[at];
  }
  return found;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  return Poll(descriptors, count, timeout_ms, nullptr,
              [=] { return real_poll(descriptors, count, timeout_ms); });
}

DEJA_EXPORT int __poll_chk(pollfd* descriptors, nfds_t count, int timeout_ms, size_t size) {
  if (size / sizeof *descriptors < count) __builtin_trap();
  return poll(descriptors, count, timeout_ms);
}

DEJA_EXPORT int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout,
                      const sigset_t* mask) {
  return Poll(descriptors, count, Milliseconds(timeout), mask,
              [=] { return real_ppoll(descriptors, count, timeout, mask); });
}

DEJA_EXPORT int select(int count, fd_set* in, fd_set* out, fd_set* urgent, timeval* timeout) {
  // Programs sleep so: Python's time.sleep before 3.11.
  if (in == nullptr && out == nullptr && urgent == nullptr) {
    const SleepCall sleep;
    if (sleep.is_ended()) {
      errno = EINTR;
      return -1;
    }
    int result = 0;
    do {
      result = real_select(count, in, out, urgent, timeout);  // the kernel notes what is left
    } while (result < 0 && errno == EINTR && SleepCall::GoesOn());
    return result;
  }
  timespec wait{};
  if (timeout != nullptr) wait = {timeout->tv_sec, timeout->tv_usec * 1000};
  return Select(count, in, out, urgent, Milliseconds(timeout != nullptr ? &wait : nullptr), nullptr,
                [=] { return real_select(count, in, out, urgent, timeout); });
}

DEJA_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* urgent, const timespec* timeout,
                        const sigset_t* mask) {
  return Select(count, in, out, urgent, Milliseconds(timeout), mask,
                [=] { return real_pselect(count, in, out, urgent, timeout, mask); });
}

DEJA_EXPORT int epoll_create(int size) noexcept {
  return Created(real_epoll_create(size));
}

DEJA_EXPORT int epoll_create1(int flags) noexcept {
  return Created(real_epoll_create1(flags));
}

DEJA_EXPORT int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  EpollSet* set = EpollSet::Of(epoll);
  const int result = real_epoll_ctl(epoll, operation, fd, event);
  if (result == 0 && set != nullptr) set->Change(operation, fd, event);
  return result;
}

DEJA_EXPORT int epoll_wait(int epoll, epoll_event* events, int room, int timeout_ms) {
  return EpollWait(epoll, {events, room}, timeout_ms, nullptr,
                   [=] { return real_epoll_wait(epoll, events, room, timeout_ms); });
}

DEJA_EXPORT int epoll_pwait(int epoll, epoll_event* events, int room, int timeout_ms,
                            const sigset_t* mask) {
  return EpollWait(epoll, {events, room}, timeout_ms, mask,
                   [=] { return real_epoll_pwait(epoll, events, room, timeout_ms, mask); });
}

DEJA_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int room, const timespec* timeout,
                             const sigset_t* mask) {
  if (real_epoll_pwait2.Get() == nullptr) {  // a C library before 2.35
    errno = ENOSYS;
    return -1;
  }
  return EpollWait(epoll, {events, room}, Milliseconds(timeout), mask,
                   [=] { return real_epoll_pwait2(epoll, events, room, timeout, mask); });
}
