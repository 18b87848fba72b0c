#include "loopback/ranks/rendezvous.h"

#define XXH_INLINE_ALL
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "common/env_vars.h"
#include "common/os/passed_descriptor.h"
#include "loopback/ranks/last_error.h"
#include "loopback/ranks/parameters.h"
#include "loopback/ranks/process.h"

namespace deja::loopback {
namespace {

constexpr uint64_t kHelloMagic = 0x6f6c6c6568706f6f;

// NCCL tries a connection this often, with pauses that grow: a minute in all.
uint64_t PatienceNanos() {
  int64_t tries = std::clamp<int64_t>(kSocketRetries.Integer(), 0, 10000);
  int64_t pause = std::clamp<int64_t>(kSocketRetryMilliseconds.Integer(), 0, 1000000);
  return static_cast<uint64_t>(tries * (tries + 1) / 2 * pause) * 1000000;
}

struct Hello {
  uint64_t magic;
  int32_t rank;
  int32_t nranks;
};

enum class Verdict : int32_t { kWelcome = 0, kOtherSize = 1, kRankTaken = 2, kBadRank = 3 };

struct Reply {
  Verdict verdict;
  int32_t nranks;
};

Key Hash(const void* data, size_t bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
  Key key;
  std::memcpy(key.data(), canonical.digest, key.size());
  return key;
}

// What an address stands for: rank 0 of a communicator, or the maker of an id.
constexpr char kMeeting[] = "deja-loopback-";
constexpr char kMaker[] = "deja-loopback-id-";

// The folder in which ranks meet that a fence keeps from abstract addresses (the replays of a
// folded job); null: they meet at abstract ones.
const char* MeetingFolder() {
  static const char* const folder = [] {
    const char* name = std::getenv(deja::env::kFold.name);
    return name == nullptr || *name == 0 ? nullptr : strdup(name);  // for good
  }();
  return folder;
}

// The address of a key: text after a zero byte, which is an abstract address, or after the
// meeting folder. Returns the address's length.
socklen_t AddressOf(const char* what, const Key& key, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  int at = 1;
  if (const char* folder = MeetingFolder())
    at = std::snprintf(address->sun_path, sizeof address->sun_path - 2 * key.size() - 1, "%s/",
                       folder);
  else
    at += std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", what);
  at = std::min(at, static_cast<int>(sizeof address->sun_path - 2 * key.size() - 2));
  for (uint8_t byte : key)
    at += std::snprintf(address->sun_path + at, sizeof address->sun_path - static_cast<size_t>(at),
                        "%02x", byte);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + static_cast<size_t>(at));
}

bool SendReply(int fd, const Reply& reply, int area_fd) {
  return SendWithDescriptor(fd, std::as_bytes(std::span(&reply, 1)), area_fd);
}

// Bytes received, 0 when the other side is gone, -1 with errno. Fills `area_fd` if one came along.
ssize_t ReceiveOnce(int fd, Reply* reply, int* area_fd) {
  return ReceiveWithDescriptor(fd, std::as_writable_bytes(std::span(reply, 1)), MSG_DONTWAIT,
                               area_fd);
}

// The kernel looks for a message first and for the other side's end afterwards. What was sent, and
// closed, in between is reported as an end with the message still to come; after the end nothing
// can be added, so that another look is right.
ssize_t ReceiveReply(int fd, Reply* reply, int* area_fd) {
  ssize_t got = ReceiveOnce(fd, reply, area_fd);
  return got != 0 ? got : ReceiveOnce(fd, reply, area_fd);
}

// An id that is derived from NCCL_COMM_ID says so, and the how many-th of its process it is.
struct AgreedId {
  char mark[8];
  uint8_t hash[16];
  uint64_t number;
};
constexpr char kAgreedMark[] = "dejaloop";

std::atomic<uint64_t> g_ids_made{0};
std::atomic<bool> g_ids_are_handed_over{false};

bool AgreedIdFromEnvironment(AgreedId* id) {
  const char* address = kCommId.String();
  if (*address == 0) return false;
  Key hash = Hash(address, std::strlen(address));
  std::memcpy(id->mark, kAgreedMark, sizeof id->mark);
  std::memcpy(id->hash, hash.data(), sizeof id->hash);
  return true;
}

}  // namespace

Key KeyOfIds(const ncclUniqueId* ids, int count) {
  return Hash(ids, sizeof(ncclUniqueId) * static_cast<size_t>(count));
}

Key KeyOfChild(const uint8_t (&nonce)[16], std::string_view kind, uint64_t count, int64_t color) {
  struct {
    uint8_t nonce[16];
    char kind[16];
    uint64_t count;
    int64_t color;
  } text{};
  std::memcpy(text.nonce, nonce, sizeof nonce);
  std::memcpy(text.kind, kind.data(), std::min(kind.size(), sizeof text.kind));
  text.count = count;
  text.color = color;
  return Hash(&text, sizeof text);
}

namespace {

// The sockets of ids that this process made and that no communicator has been made of yet.
pthread_mutex_t g_makers_mutex = PTHREAD_MUTEX_INITIALIZER;
struct Maker {
  Key key;
  int fd;
};
constexpr size_t kMostMakers = 64;
std::vector<Maker>& Makers() {
  static auto* makers = new std::vector<Maker>;
  return *makers;
}

int OpenSocket() {
  return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void ShowThatTheMakerLives(const ncclUniqueId& id) {
  Key key = KeyOfIds(&id, 1);
  sockaddr_un address;
  socklen_t length = AddressOf(kMaker, key, &address);
  int fd = OpenSocket();
  if (fd < 0) return;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 0) != 0) {
    close(fd);
    return;
  }
  pthread_mutex_lock(&g_makers_mutex);
  auto& makers = Makers();
  if (makers.size() == kMostMakers) {
    close(makers[0].fd);
    makers.erase(makers.begin());
  }
  makers.push_back({key, fd});
  pthread_mutex_unlock(&g_makers_mutex);
}

void ForgetMaker(const Key& key) {
  pthread_mutex_lock(&g_makers_mutex);
  auto& makers = Makers();
  for (size_t i = 0; i < makers.size(); ++i) {
    if (makers[i].key != key) continue;
    close(makers[i].fd);
    makers.erase(makers.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  pthread_mutex_unlock(&g_makers_mutex);
}

// Its listening socket is there, although no process ever accepts: a full queue is an answer, too.
bool MakerLives(const Key& key) {
  sockaddr_un address;
  socklen_t length = AddressOf(kMaker, key, &address);
  int fd = OpenSocket();
  if (fd < 0) return false;
  bool lives = connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 || errno == EAGAIN;
  close(fd);
  return lives;
}

}  // namespace

void MakeUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  AgreedId agreed{};
  if (g_ids_are_handed_over.load() || !AgreedIdFromEnvironment(&agreed)) {
    RandomBytes(id->internal, 32);
    ShowThatTheMakerLives(*id);
    return;
  }
  agreed.number = g_ids_made.fetch_add(1);
  std::memcpy(id->internal, &agreed, sizeof agreed);
}

void NoticeUniqueId(const ncclUniqueId& id) {
  AgreedId agreed{};
  AgreedId got{};
  std::memcpy(&got, id.internal, sizeof got);
  if (AgreedIdFromEnvironment(&agreed) &&
      std::memcmp(&got, &agreed, offsetof(AgreedId, number)) == 0 &&
      got.number >= g_ids_made.load())
    g_ids_are_handed_over.store(true);
}

Rendezvous::Rendezvous(const Key& key, int rank, int nranks, SharedArea& area)
    : key_(key),
      rank_(rank),
      nranks_(nranks),
      deadline_(MonotonicNanos() + PatienceNanos()),
      area_(area) {}

Rendezvous::~Rendezvous() {
  for (int fd : visitors_) close(fd);
  CloseSocket();
}

void Rendezvous::CloseSocket() {
  if (socket_ < 0) return;
  close(socket_);
  socket_ = -1;
  if (rank_ != 0 || MeetingFolder() == nullptr) return;
  sockaddr_un address;
  AddressOf(kMeeting, key_, &address);
  unlink(address.sun_path);
}

Progress Rendezvous::Step() {
  if (rank_ == 0) {
    if (!joined_) return Listen();
    Progress progress = nranks_ > 1 ? Serve() : Progress::kBlocked;
    if (progress != Progress::kBlocked) return progress;
  } else if (!joined_) {
    return connected_ ? AwaitArea() : Connect();
  }
  if (area_.header().joined.load(std::memory_order_acquire) == static_cast<uint32_t>(nranks_)) {
    CloseSocket();
    area_.CloseFd();
    ForgetMaker(key_);
    return Progress::kDone;
  }
  return Progress::kBlocked;
}

Progress Rendezvous::Listen() {
  if (nranks_ > 1 && socket_ < 0) {
    sockaddr_un address;
    socklen_t length = AddressOf(kMeeting, key_, &address);
    int fd = OpenSocket();
    if (fd < 0)
      return Fail(Report(ncclSystemError, "rank 0: no socket for the rendezvous: %s",
                         std::strerror(errno)));
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      int error = errno;
      close(fd);
      // Another communicator of the same id is being made; it lets go of the name when it is done.
      if (error == EADDRINUSE && MonotonicNanos() < deadline_) return Progress::kBlocked;
      return Fail(Report(ncclSystemError,
                         "rank 0: the address of this communicator's id cannot be bound: %s. Does "
                         "another job use the same NCCL_COMM_ID?",
                         std::strerror(error)));
    }
    if (listen(fd, 4096) != 0) {
      int error = errno;
      close(fd);
      return Fail(Report(ncclSystemError, "rank 0: listen: %s", std::strerror(error)));
    }
    socket_ = fd;
  }
  Result<SharedArea> area = SharedArea::Create(nranks_);
  if (!area) return Fail(Report(ncclSystemError, "rank 0: %s", area.error().message.c_str()));
  area_ = std::move(*area);
  seen_.assign(static_cast<size_t>(nranks_), false);
  seen_[0] = true;
  return Join();
}

Progress Rendezvous::Serve() {
  bool moved = false;
  while (socket_ >= 0) {
    int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) break;
    visitors_.push_back(fd);
    moved = true;
  }
  for (size_t i = 0; i < visitors_.size();) {
    if (!Answer(visitors_[i])) {
      ++i;
      continue;
    }
    close(visitors_[i]);
    visitors_.erase(visitors_.begin() + static_cast<ptrdiff_t>(i));
    moved = true;
  }
  return moved ? Progress::kMoved : Progress::kBlocked;
}

// False: the visitor has not spoken yet.
bool Rendezvous::Answer(int fd) {
  Hello hello{};
  ssize_t got = recv(fd, &hello, sizeof hello, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (got != static_cast<ssize_t>(sizeof hello) || hello.magic != kHelloMagic ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid())
    return true;  // not one of ours
  Reply reply{Verdict::kWelcome, nranks_};
  if (hello.nranks != nranks_) {
    reply.verdict = Verdict::kOtherSize;
  } else if (hello.rank <= 0 || hello.rank >= nranks_) {
    reply.verdict = Verdict::kBadRank;
  } else if (seen_[static_cast<size_t>(hello.rank)]) {
    reply.verdict = Verdict::kRankTaken;
  }
  bool welcome = reply.verdict == Verdict::kWelcome;
  if (SendReply(fd, reply, welcome ? area_.fd() : -1) && welcome)
    seen_[static_cast<size_t>(hello.rank)] = true;
  return true;
}

Progress Rendezvous::Connect() {
  sockaddr_un address;
  socklen_t length = AddressOf(kMeeting, key_, &address);
  int fd = OpenSocket();
  if (fd < 0)
    return Fail(Report(ncclSystemError, "rank %d: no socket for the rendezvous: %s", rank_,
                       std::strerror(errno)));
  Hello hello{kHelloMagic, rank_, nranks_};
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      send(fd, &hello, sizeof hello, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof hello)) {
    socket_ = fd;
    connected_ = true;
    return Progress::kMoved;
  }
  int error = errno;
  close(fd);
  if (MonotonicNanos() < deadline_) return Progress::kBlocked;
  if (MakerLives(key_)) {
    deadline_ = MonotonicNanos() + 1000000000;  // asks again in a second
    return Progress::kBlocked;
  }
  return Fail(Report(ncclRemoteError,
                     "rank %d of %d: rank 0 of this communicator did not appear in time: %s. "
                     "Do all ranks use the same ncclUniqueId, on the same machine?",
                     rank_, nranks_, std::strerror(error)));
}

Progress Rendezvous::AwaitArea() {
  Reply reply{};
  int area_fd = -1;
  ssize_t got = ReceiveReply(socket_, &reply, &area_fd);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Progress::kBlocked;
  close(socket_);
  socket_ = -1;
  connected_ = false;
  if (got != static_cast<ssize_t>(sizeof reply)) {
    // Rank 0 went away between our connecting and its answer. Another rank 0 may come.
    if (area_fd >= 0) close(area_fd);
    return Progress::kBlocked;
  }
  switch (reply.verdict) {
    case Verdict::kOtherSize:
      return Fail(Report(ncclInvalidUsage,
                         "rank %d says that the communicator has %d ranks, rank 0 says %d", rank_,
                         nranks_, reply.nranks));
    case Verdict::kRankTaken:
      return Fail(Report(ncclInvalidUsage, "two processes are rank %d of one communicator", rank_));
    case Verdict::kBadRank:
      return Fail(Report(ncclInvalidUsage, "rank %d is not in a communicator of %d ranks", rank_,
                         reply.nranks));
    case Verdict::kWelcome:
      break;
  }
  if (area_fd < 0)
    return Fail(Report(ncclSystemError,
                       "rank %d: rank 0's shared memory did not arrive: out of file descriptors?",
                       rank_));
  Result<SharedArea> area = SharedArea::Map(area_fd, nranks_);
  if (!area)
    return Fail(Report(ncclSystemError, "rank %d: %s", rank_, area.error().message.c_str()));
  area_ = std::move(*area);
  return Join();
}

Progress Rendezvous::Join() {
  joined_ = true;
  RankCell& cell = area_.cell(rank_);
  ProcessId self = ThisProcess();
  cell.pid = self.pid;
  cell.start_time = self.start_time;
  cell.pid_namespace = self.pid_namespace;
  cell.protocol.store(ProtocolHash(), std::memory_order_relaxed);
  cell.state.store(static_cast<uint32_t>(RankState::kJoined), std::memory_order_release);
  uint32_t joined = area_.header().joined.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (joined == static_cast<uint32_t>(nranks_)) area_.RingAll();
  return Progress::kMoved;
}

}  // namespace deja::loopback
