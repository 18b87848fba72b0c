#include "preload/hooks/descriptors/epoll_sets.h"

#include <algorithm>

#include "preload/hooks/descriptors/own_pipes.h"
#include "preload/hooks/descriptors/tracked.h"

namespace deja::preload {
namespace {

constexpr size_t kSets = 64;
constinit SpinLock g_pool_lock;
constinit EpollSet g_sets[kSets];

}  // namespace

EpollSet* EpollSet::Take() {
  const Hold hold(g_pool_lock);
  for (EpollSet& set : g_sets) {
    if (set.taken_) continue;
    set.taken_ = true;
    set.overflowed_ = false;
    set.count_ = 0;
    return &set;
  }
  return nullptr;
}

void EpollSet::OnUnused(int) {
  const Hold hold(g_pool_lock);
  taken_ = false;
}

EpollSet* EpollSet::Of(int epoll) {
  FdObject* object = Tracked(epoll);
  if (object == nullptr || object->kind() != Kind::kEpoll) return nullptr;
  return static_cast<EpollSet*>(object);
}

EpollSet::Member* EpollSet::Find(int fd) {
  Member* end = members_ + count_;
  Member* found = std::find_if(members_, end, [fd](const Member& m) { return m.fd == fd; });
  return found == end ? nullptr : found;
}

void EpollSet::Change(int operation, int fd, const epoll_event* event) {
  const bool own = operation == EPOLL_CTL_ADD && IsOwnPipe(fd);
  const Hold hold(lock_);
  Member* member = Find(fd);
  if (operation == EPOLL_CTL_DEL) {
    if (member == nullptr) return;
    std::copy(member + 1, members_ + count_, member);
    --count_;
    return;
  }
  if (event == nullptr) return;
  if (operation == EPOLL_CTL_ADD) {
    // One of this number may be left of a descriptor that was closed.
    if (member == nullptr && count_ == kMost) {
      overflowed_ = true;
      return;
    }
    if (member == nullptr) member = &members_[count_++];
    member->fd = fd;
    member->own = own;
  }
  if (member == nullptr) return;
  member->events = static_cast<short>(event->events & 0x7fff);
  member->name = event->data;
}

size_t EpollSet::Members(std::span<pollfd, kMost> descriptors,
                         std::span<epoll_data_t, kMost> names) {
  const Hold hold(lock_);
  if (overflowed_) return 0;
  for (size_t i = 0; i < count_; ++i) {
    if (!members_[i].own) return 0;
    descriptors[i] = {members_[i].fd, members_[i].events, 0};
    names[i] = members_[i].name;
  }
  return count_;
}

}  // namespace deja::preload
