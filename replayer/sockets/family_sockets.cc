#include "replayer/sockets/family_sockets.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "common/runtime/errno_keeper.h"
#include "format/reader/rank_reader.h"
#include "preload/calls/life_calls.h"
#include "preload/process/guard.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/forks/children.h"
#include "replayer/process/own_thread.h"
#include "replayer/report/report.h"

namespace deja::replayer {

using preload::SocketAddress;
namespace real = preload::real;

namespace {

// Out of the way of the numbers that the program gets and counts on.
constexpr int kFirstInner = 600;

constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
constexpr char kClientName[] = "deja-client-%d-%d-%u";

// The socket gets a name, which its other end sees: in it are the numbers of this process, the
// recorded and the live one.
void SayWho(int fd) {
  static std::atomic<uint32_t> made{0};
  const preload::ProcessName& own = preload::OwnProcessName();
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, kClientName, own.recorded_pid,
                         own.pid, made.fetch_add(1));
  real::Bind(fd, reinterpret_cast<const sockaddr*>(&name),
             static_cast<socklen_t>(kPath + 1 + static_cast<size_t>(n)));
}

int WhoIs(const sockaddr_un& name, socklen_t size) {
  if (size <= kPath + 1 || size > sizeof name || name.sun_path[0] != '\0') return 0;
  char text[sizeof name.sun_path] = {};
  std::memcpy(text, name.sun_path + 1, size - kPath - 1);
  int recorded = 0;
  int live = 0;
  unsigned number = 0;
  return sscanf(text, kClientName, &recorded, &live, &number) == 3 ? recorded : 0;
}

// -1, and errno.
int Listen(int type, const SocketAddress& address) {
  const int made = real::Socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  int listener = fcntl(made, F_DUPFD_CLOEXEC, kFirstInner);
  if (listener < 0)
    listener = made;
  else
    close(made);
  if (real::Bind(listener, reinterpret_cast<const sockaddr*>(address.bytes), address.size) == 0 &&
      real::Listen(listener, SOMAXCONN) == 0)
    return listener;
  const ErrnoKeeper keep;
  close(listener);
  return -1;
}

// A blocking accept would keep the number of a descriptor while it waits, one that the program gets
// in the recording.
void Accept(int listener, std::mutex& mutex, const std::function<void(int, int)>& take) {
  preload::Guard guard;
  fcntl(listener, F_SETFL, O_NONBLOCK);
  for (;;) {
    pollfd asked{listener, POLLIN, 0};
    if (poll(&asked, 1, -1) < 0 && errno != EINTR) break;
    sockaddr_un name{};
    socklen_t size = sizeof name;
    const std::lock_guard<std::mutex> lock(mutex);
    const int fd = real::Accept(listener, reinterpret_cast<sockaddr*>(&name), &size, SOCK_CLOEXEC);
    if (fd >= 0) {
      const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstInner);
      if (moved >= 0) close(fd);
      take(moved >= 0 ? moved : fd, WhoIs(name, size));
    } else if ((errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) ||
               (asked.revents & POLLHUP) != 0) {
      break;  // ended: accept may find nothing for good
    }
  }
  close(listener);
}

// The rank's recording, and those of its children.
std::vector<std::string> RecordingsOf(const std::string& rank, const std::string& scratch) {
  std::vector<std::string> folders = ChildFolders(scratch);
  folders.insert(folders.begin(), rank);
  return folders;
}

// When the process became another program; UINT64_MAX: it did not.
uint64_t ReplacedAt(const format::RankReader& reader) {
  constexpr auto kByExec = static_cast<uint32_t>(preload::ExitHow::kExec);
  uint64_t time_ns = UINT64_MAX;
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kProcessExit)))
    time_ns = event->As<format::ProcessExit>()->how == kByExec ? event->time_ns : UINT64_MAX;
  return time_ns;
}

// Calls look(opened) for each connection that a process of the rank accepted at `address`, until it
// returns false.
template <typename Look>
void EachAccepted(const std::string& rank, const std::string& scratch, std::string_view address,
                  const Look& look) {
  for (const std::string& folder : RecordingsOf(rank, scratch)) {
    const auto reader = format::RankReader::Open(folder);
    if (!reader) continue;
    const auto cursor = (*reader)->Events();
    constexpr uint64_t kOpened = format::KindBit(format::EventKind::kConnectionOpened);
    while (const format::Event* event = cursor->NextOf(kOpened)) {
      const auto* opened = event->As<format::ConnectionOpened>();
      if (opened == nullptr ||
          preload::WithoutEndingZeros(opened->local) != preload::WithoutEndingZeros(address))
        continue;
      const auto kind = static_cast<format::ConnectionKind>(opened->kind);
      if (kind == format::ConnectionKind::kAccepted && !look(*opened)) return;
    }
  }
}

}  // namespace

SocketAddress FamilyAddress(const std::string& scratch, const SocketAddress& address) {
  // A name in the file system may or may not be followed by a zero.
  size_t size = address.size;
  while (size > kPath + 1 && address.bytes[size - 1] == '\0') --size;
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(address.bytes, size, XXH3_64bits(scratch.data(), scratch.size()));
  sockaddr_un family{};
  family.sun_family = AF_UNIX;
  const int n = snprintf(family.sun_path + 1, sizeof family.sun_path - 1,
                         "deja-replay-%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                         static_cast<unsigned long long>(hash.low64));
  SocketAddress result;
  result.Set(reinterpret_cast<const sockaddr*>(&family),
             static_cast<socklen_t>(kPath + 1 + static_cast<size_t>(n)));
  return result;
}

std::map<int, uint64_t> RecordedProcesses(const std::string& rank, const std::string& scratch) {
  std::map<int, uint64_t> begun;  // by process: when its last image began
  std::map<int, uint64_t> recorded;
  for (const std::string& folder : RecordingsOf(rank, scratch)) {
    const auto reader = format::RankReader::Open(folder);
    if (!reader) continue;
    const auto pid = static_cast<int>((*reader)->header().process.pid);
    const uint64_t start_ns = (*reader)->header().start_mono_ns;
    const auto [last, is_new] = begun.try_emplace(pid, start_ns);
    if (!is_new && last->second > start_ns) continue;
    last->second = start_ns;
    recorded[pid] = ReplacedAt(**reader);
  }
  return recorded;
}

bool AnyoneAccepts(const std::string& rank, const std::string& scratch, std::string_view address) {
  bool found = false;
  EachAccepted(rank, scratch, address, [&](const format::ConnectionOpened&) {
    found = true;
    return false;
  });
  return found;
}

size_t CountAccepted(const std::string& rank, const std::string& scratch, std::string_view address,
                     uint32_t client) {
  size_t count = 0;
  EachAccepted(rank, scratch, address, [&](const format::ConnectionOpened& opened) {
    const std::string peer(opened.peer);
    if (static_cast<uint32_t>(strtoul(peer.c_str(), nullptr, 10)) == client) ++count;
    return true;
  });
  return count;
}

int ConnectFamily(int fd, const SocketAddress& address, int patience_ms) {
  constexpr timespec kPause{0, 5'000'000};
  constexpr int kTellMs = 10'000;
  SayWho(fd);
  for (int waited_ms = 0;; waited_ms += 5) {
    const int result =
        real::Connect(fd, reinterpret_cast<const sockaddr*>(address.bytes), address.size);
    // A signal that the recorded connect did not get. Python would take the socket for connected.
    if (result < 0 && errno == EINTR) continue;
    const bool early = result < 0 && (errno == ECONNREFUSED || errno == EAGAIN);
    if (!early || waited_ms >= patience_ms) return result;
    if (waited_ms == kTellMs)
      Say("replay: a connection to a process of the rank waits: no process listens at its address");
    nanosleep(&kPause, nullptr);
  }
}

int ConnectUntaken(int fd, int type, const std::string& scratch) {
  static std::atomic<uint32_t> made{0};
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "untaken-%d-%u",
                         preload::OwnProcessName().pid, made.fetch_add(1));
  SocketAddress address;
  address.Set(reinterpret_cast<const sockaddr*>(&name),
              static_cast<socklen_t>(kPath + 1 + static_cast<size_t>(n)));
  address = FamilyAddress(scratch, address);  // which the fence lets through
  const int listener = Listen(type, address);
  if (listener < 0) return -1;
  if (real::Connect(fd, reinterpret_cast<const sockaddr*>(address.bytes), address.size) == 0)
    return listener;
  const ErrnoKeeper keep;
  close(listener);
  return -1;
}

int StartFamilyListener(int type, const SocketAddress& address, std::mutex& mutex,
                        std::function<void(int, int)> take) {
  const int listener = Listen(type, address);
  if (listener < 0) return -1;
  StartOwnThread([listener, &mutex, take = std::move(take)] { Accept(listener, mutex, take); });
  return listener;
}

void EndFamilyListener(int listener) {
  real::Shutdown(listener, SHUT_RDWR);
}

}  // namespace deja::replayer
