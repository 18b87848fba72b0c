// EpollSet: what an epoll descriptor waits for, as the program has told it.
//
// A wait is an input of the program where only its own processes can end it. So all that is asked
// for must be pipes of its own (own_pipes.h). Sets of more than kMost descriptors are not followed.
//
// From a pool, which a set goes back to when its last descriptor is closed. Any thread; no
// allocation.
#ifndef DEJA_PRELOAD_HOOKS_DESCRIPTORS_EPOLL_SETS_H_
#define DEJA_PRELOAD_HOOKS_DESCRIPTORS_EPOLL_SETS_H_

#include <poll.h>
#include <sys/epoll.h>

#include <cstddef>
#include <span>

#include "common/runtime/spin_lock.h"
#include "preload/engine/fd_table.h"

namespace deja::preload {

class EpollSet final : public FdObject {
 public:
  static constexpr size_t kMost = 64;

  constexpr EpollSet() : FdObject(Kind::kEpoll) {}
  // An empty set; null when the pool is.
  static EpollSet* Take();
  // The one that `epoll` is, if this call is the program's.
  static EpollSet* Of(int epoll);

  // epoll_ctl has done this.
  void Change(int operation, int fd, const epoll_event* event);
  // Writes the members, as poll would ask for them, and what the program calls them. How many;
  // 0: the set is empty, or others than pipes of the rank's own are in it.
  size_t Members(std::span<pollfd, kMost> descriptors, std::span<epoll_data_t, kMost> names);

  void OnUnused(int fd) override;

 private:
  struct Member {
    int fd = -1;
    short events = 0;
    bool own = false;
    epoll_data_t name{};
  };
  Member* Find(int fd);

  SpinLock lock_;
  bool taken_ = false;
  bool overflowed_ = false;
  size_t count_ = 0;
  Member members_[kMost];
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_DESCRIPTORS_EPOLL_SETS_H_
