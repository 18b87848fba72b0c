#include "recorder/sockets/own_sockets.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "preload/process/process_lineage.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_sockets.h"
#include "recorder/events/mapped_memory.h"

namespace deja::recorder {
namespace {

using preload::SocketAddress;

struct Listener {
  RecordedConnection* connection = nullptr;
  SocketAddress local;
};

constexpr size_t kMaxListeners = 64;
constinit SpinLock g_lock;
constinit Listener g_listeners[kMaxListeners];
constinit std::atomic<uint32_t> g_listening{0};
// Connections of this process to itself that are being made.
constinit std::atomic<uint32_t> g_connecting{0};
// Local addresses of the connecting ends, by hash.
constinit KeyMap g_own_ends;
constinit KeyMap g_counters;
constinit SpinLock g_counter_lock;

uint64_t KeyOf(const SocketAddress& address) {
  const uint64_t key = XXH3_64bits(address.bytes, address.size);
  return key == 0 ? 1 : key;
}

bool IsInternet(const SocketAddress& address) {
  return address.family() == AF_INET || address.family() == AF_INET6;
}

// Both ends have one Internet address: they are on one machine.
bool OnOneMachine(SocketAddress a, SocketAddress b) {
  // As if a listened at any port; Reaches compares ports, too.
  std::memcpy(a.bytes + 2, b.bytes + 2, 2);
  return a.port() != 0 && preload::Reaches(a, b);
}

void Ask(int fd, bool of_peer, SocketAddress& address) {
  address.size = sizeof address.bytes;
  if (preload::real::GetName(fd, of_peer, reinterpret_cast<sockaddr*>(address.bytes),
                             &address.size) != 0)
    address.size = 0;
  address.size = std::min<socklen_t>(address.size, sizeof address.bytes);
}

// The process at the other end of a Unix socket; 0: not known.
pid_t PeerPid(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (preload::real::GetOption(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return 0;
  return credentials.pid;
}

bool IsThisProcess(pid_t pid) {
  return pid != 0 && pid == static_cast<pid_t>(syscall(SYS_getpid));
}

uint32_t Count(uint64_t key) {
  if (key == 0) key = 1;
  Hold hold(g_counter_lock);
  uint32_t count = g_counters.Find(key);
  count = count == KeyMap::kMissing ? 1 : count + 1;
  g_counters.Set(key, count);
  return count;
}

}  // namespace

uint32_t NextConnection(Recording* rec) {
  return NextNumber(rec, "connection", {}, {});
}

uint32_t NextNumber(Recording* rec, std::string_view what, std::string_view thread,
                    std::string_view address) {
  uint64_t key = XXH3_64bits_withSeed(what.data(), what.size(), reinterpret_cast<uint64_t>(rec));
  key = XXH3_64bits_withSeed(thread.data(), thread.size(), key);
  return Count(XXH3_64bits_withSeed(address.data(), address.size(), key));
}

OwnSockets::Connecting::Connecting(const SocketAddress& target) {
  if (g_listening.load(std::memory_order_relaxed) == 0 || !IsInternet(target)) return;
  Hold hold(g_lock);
  for (const Listener& listener : g_listeners)
    if (listener.connection != nullptr && preload::Reaches(target, listener.local))
      possible_ = true;
  if (possible_) g_connecting.fetch_add(1);
}

OwnSockets::Connecting::~Connecting() {
  if (possible_) g_connecting.fetch_sub(1);
}

bool OwnSockets::Connecting::Done(int fd, bool made, int domain, uint32_t type) {
  if (!made || type != SOCK_STREAM) return false;
  if (domain == AF_UNIX) return IsThisProcess(PeerPid(fd));
  if (!possible_) return false;
  SocketAddress local;
  SocketAddress peer;
  Ask(fd, false, local);
  Ask(fd, true, peer);
  // A connection that is still being made has no peer yet; on one machine it is made at once.
  if (peer.size != 0 && !OnOneMachine(local, peer)) return false;
  g_own_ends.Set(KeyOf(local), 1);
  return true;
}

void OwnSockets::Listen(RecordedConnection& listener, const SocketAddress& local) {
  Hold hold(g_lock);
  for (Listener& slot : g_listeners) {
    if (slot.connection != nullptr && slot.connection != &listener) continue;
    if (slot.connection == nullptr) g_listening.fetch_add(1);
    slot = {&listener, local};
    return;
  }
}

bool OwnSockets::IsOwnPeer(int fd, const SocketAddress& peer, const SocketAddress& local) {
  if (local.family() == AF_UNIX) return IsThisProcess(PeerPid(fd));
  if (!IsInternet(peer) || !OnOneMachine(peer, local)) return false;
  constexpr int kPatience = 100000;
  for (int i = 0; i < kPatience; ++i) {
    if (g_own_ends.Find(KeyOf(peer)) != KeyMap::kMissing) return true;
    if (g_connecting.load() == 0) return g_own_ends.Find(KeyOf(peer)) != KeyMap::kMissing;
    sched_yield();
  }
  return false;
}

std::string_view OwnSockets::PeerLineage(int fd, std::span<char> out) {
  const preload::ProcessName& name = preload::OwnProcessName();
  const pid_t pid = PeerPid(fd);
  if (pid == 0 || !name.is_known || name.root_pid == 0) return {};
  return preload::WriteLineage(pid, name.root_pid, out);
}

bool OwnSockets::IsListener(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  return preload::real::GetOption(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
         listens != 0;
}

bool OwnSockets::LeadsOutside(int fd) {
  SocketAddress address;
  const bool listens = IsListener(fd);
  Ask(fd, !listens, address);
  if (listens || IsInternet(address)) return true;
  const preload::ProcessName& name = preload::OwnProcessName();
  const pid_t pid = PeerPid(fd);
  // Where a process belonged is not known once it is gone.
  const bool is_there = pid != 0 && syscall(SYS_kill, pid, 0) == 0;
  return is_there && name.is_known && name.root_pid != 0 &&
         !preload::DescendsFrom(pid, name.root_pid);
}

void OwnSockets::Forget(RecordedConnection& connection, const SocketAddress& local) {
  if (g_listening.load(std::memory_order_relaxed) == 0) return;
  g_own_ends.Erase(KeyOf(local));
  Hold hold(g_lock);
  for (Listener& slot : g_listeners) {
    if (slot.connection != &connection) continue;
    slot.connection = nullptr;
    g_listening.fetch_sub(1);
  }
}

}  // namespace deja::recorder
