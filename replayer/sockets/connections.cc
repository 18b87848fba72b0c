#include "replayer/sockets/connections.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <utility>

#include "common/runtime/clock_ns.h"
#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "preload/process/process_lineage.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_sockets.h"
#include "replayer/core/ending.h"
#include "replayer/meet/stillness.h"
#include "replayer/process/busy_threads.h"
#include "replayer/process/held_at_forks.h"
#include "replayer/process/own_thread.h"
#include "replayer/sockets/family_sockets.h"
#include "replayer/sockets/heir_names.h"
#include "replayer/sockets/served_socket.h"

namespace deja::replayer {

using preload::ConnectionName;
using preload::Guard;
namespace real = preload::real;

namespace {

constexpr int kFirstInner = 600;

bool IsServedDomain(int domain) {
  return domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX;
}

// The descriptor that a recorded inherited connection was; -1: none.
int DescriptorOf(const PlannedConnection& connection) {
  if (connection.name == "stdin" || connection.name.rfind("stdin from ", 0) == 0)
    return STDIN_FILENO;
  if (connection.name.rfind("fd ", 0) != 0) return -1;
  const long fd = strtol(connection.name.c_str() + 3, nullptr, 10);
  return fd > STDERR_FILENO && fd < kFirstInner ? static_cast<int>(fd) : -1;
}

// Recordings are looked at when the first such connection asks.
ConnectionScript::IsFamilyPeer FamilyPeers(const Session& session, const std::string& rank) {
  return [&session, &rank, recorded = std::map<int, uint64_t>()](const std::string& lineage,
                                                                 uint64_t time_ns) mutable {
    if (!preload::LineageHas(lineage, session.rank_pid())) return false;
    if (recorded.empty()) recorded = RecordedProcesses(rank, session.options().scratch);
    const auto peer = recorded.find(atoi(lineage.c_str()));
    return peer != recorded.end() && time_ns <= peer->second;
  };
}

}  // namespace

ServedConnections::ServedConnections(Session& session, MayConnect may_connect, void* engine,
                                     const Fifos& fifos, std::string rank,
                                     preload::PipeTable* pipes)
    : session_(session),
      may_connect_(may_connect),
      engine_(engine),
      fifos_(fifos),
      rank_(std::move(rank)),
      pipes_(pipes),
      script_(session.plan(), FamilyPeers(session, rank_), fifos_),
      family_order_(session.plan(),
                    [this](uint32_t c) {
                      return script_.IsFamily(c) && !fifos_.IsLive(script_.Info(c).name);
                    }),
      by_connection_(session.plan().connections().size()),
      is_taken_(session.plan().connections().size()) {
  HoldAtForks(mutex_);
  if (session.progress().SetTransfersLeft(script_.left())) OnAllEventsMade(session);
}

int ServedConnections::MoveUp(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstInner);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

ServedSocket* ServedConnections::NewSocket(int type, int& fd) {
  int ends[2];
  const int marks = type & (SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socketpair(AF_UNIX, SOCK_STREAM | marks, 0, ends) != 0) {
    fd = -1;
    return nullptr;
  }
  const int inner = MoveUp(ends[1]);
  fcntl(inner, F_SETFL, O_NONBLOCK);
  fd = ends[0];
  return new ServedSocket(*this, AF_UNIX, SOCK_STREAM, 0, inner);
}

int ServedConnections::OnSocket(int domain, int type, int protocol) {
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (!IsServedDomain(domain) ||
      (kind != SOCK_STREAM && kind != SOCK_DGRAM && kind != SOCK_SEQPACKET))
    return real::Socket(domain, type, protocol);
  Guard guard;
  std::lock_guard<std::mutex> lock(mutex_);
  int fd = -1;
  ServedSocket* made = NewSocket(type, fd);
  if (made == nullptr) return -1;
  made->domain_ = domain;
  made->type_ = kind;
  if (protocol == 0 && domain != AF_UNIX)
    protocol = kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
  made->protocol_ = protocol;
  preload::WatchStreams();
  preload::FdTable::Set(fd, made);
  return fd;
}

// A bind has the address that it asked for where others have the other end's.
uint64_t ServedConnections::HeirKeyOf(const PlannedConnection& connection) const {
  const bool listens = connection.kind == format::ConnectionKind::kBound;
  return HeirKey(session_.options().scratch, connection.local,
                 listens ? std::string_view() : connection.remote);
}

void ServedConnections::NameForHeirs(int fd, const ServedSocket& socket) {
  const uint32_t planned = socket.listening_ ? socket.bound_ : socket.connection_;
  if (planned == kNone || socket.is_pipe_) return;
  replayer::NameForHeirs(fd, HeirKeyOf(script_.Info(planned)));
}

int ServedConnections::FindInherited(const PlannedConnection& connection) const {
  const int recorded = DescriptorOf(connection);
  if (recorded <= STDERR_FILENO || connection.local.empty()) return recorded;
  const uint64_t key = HeirKeyOf(connection);
  const auto is_here = [key](int fd) {
    return preload::FdTable::Find(fd) == nullptr && IsNamedForHeirs(fd, key);
  };
  if (is_here(recorded)) return recorded;
  for (int fd = STDERR_FILENO + 1; fd < kFirstInner; ++fd)
    if (is_here(fd)) return fd;
  return recorded;
}

// Standard input was a regular file: one with what was read of it.
void ServedConnections::InstallFile(uint32_t c) {
  const int file = memfd_create("stdin", MFD_CLOEXEC);
  if (file < 0) return;
  off_t first = -1;
  for (const PlannedTransfer& transfer : session_.plan().transfers()) {
    if (transfer.connection != c || transfer.kind != format::TransferKind::kReceived) continue;
    std::string_view bytes = session_.plan().Bytes(transfer.data);
    std::vector<std::byte> large;
    if (!transfer.hash.IsZero()) {
      const uint64_t size = session_.payloads().SizeOf(transfer.hash).value_or(0);
      large = session_.payloads().Read(transfer.hash, size).value_or(std::vector<std::byte>());
      bytes = {reinterpret_cast<const char*>(large.data()), large.size()};
    }
    const auto at = static_cast<off_t>(transfer.position);
    if (bytes.empty()) continue;
    if (first < 0) first = at;
    [[maybe_unused]] const ssize_t n = pwrite(file, bytes.data(), bytes.size(), at);
  }
  const auto size = static_cast<off_t>(script_.Info(c).file_size);
  struct stat st;
  if (fstat(file, &st) == 0 && st.st_size < size && ftruncate(file, size) != 0) return;
  lseek(file, std::max<off_t>(first, 0), SEEK_SET);
  dup2(file, STDIN_FILENO);
  close(file);
}

// A socket that listened when the program was born with it.
void ServedConnections::InstallListener(uint32_t c, int wanted) {
  const PlannedConnection& info = script_.Info(c);
  int fd = -1;
  ServedSocket* made = NewSocket(0, fd);
  if (made == nullptr) return;
  if (fd != wanted) {
    dup2(fd, wanted);
    close(fd);
  }
  made->local_.Set(info.local);
  made->domain_ = made->local_.family();
  made->type_ = static_cast<int>(info.type);
  made->protocol_ = made->type_ == SOCK_STREAM ? IPPROTO_TCP : 0;
  made->bound_ = c;
  made->listening_ = true;
  by_connection_[c] = made;
  listeners_.push_back(made);
  made->ListenForFamily();
  NameForHeirs(wanted, *made);
  preload::FdTable::Set(wanted, made);
  Refresh(*made);
}

uint32_t ServedConnections::FindParents(const ServedSocket& socket, uint32_t theirs) const {
  ConnectionName name;
  const std::string& known = socket.layer_.script_.Info(theirs).name;
  known.copy(name.text, sizeof name.text - 1);
  return script_.Find(ConnectionName::OfParent(name).text);
}

// The descriptor stays as it is. What this process sends and receives there is its own.
void ServedConnections::AdoptLive(int fd, const ServedSocket& parents) {
  const uint32_t planned = parents.family_ == kNone ? kNone : FindParents(parents, parents.family_);
  if (planned == kNone || !script_.IsFamily(planned)) return;
  auto* made = new ServedSocket(*this, parents.domain_, parents.type_, parents.protocol_, -1);
  made->live_ = true;
  made->family_ = planned;
  made->local_ = parents.local_;
  made->remote_ = parents.remote_;
  preload::FdTable::Set(fd, made);
}

// A forked child's descriptors lead to objects of its parent; what the child's own recording has of
// them takes their places.
void ServedConnections::AdoptFromParent() {
  constexpr int kMost = 4096;
  std::map<const ServedSocket*, int> adopted;
  for (int fd = 0; fd < kMost; ++fd) {
    preload::FdObject* object = preload::FdTable::Find(fd);
    if (object == nullptr || object->kind() != preload::FdObject::Kind::kConnection) continue;
    const auto* parents = static_cast<ServedSocket*>(object);
    if (&parents->layer_ == this) continue;
    if (parents->live_) {
      const auto [it, is_new] = adopted.try_emplace(parents, fd);
      if (is_new)
        AdoptLive(fd, *parents);
      else
        preload::FdTable::Copy(it->second, fd);
      continue;
    }
    const bool listens = parents->listening_;
    const uint32_t theirs = listens ? parents->bound_ : parents->connection_;
    if (theirs == kNone) continue;
    auto [it, is_new] = adopted.try_emplace(parents, fd);
    if (!is_new) {
      PutAt(fcntl(it->second, F_DUPFD_CLOEXEC, kFirstInner), fd);
      preload::FdTable::Copy(it->second, fd);
      continue;
    }
    const uint32_t planned = FindParents(*parents, theirs);
    int made_fd = -1;
    ServedSocket* made = planned == kNone    ? nullptr
                         : parents->is_pipe_ ? NewPipe(fcntl(fd, F_GETFL) & O_ACCMODE, made_fd)
                                             : NewSocket(0, made_fd);
    if (made == nullptr || !PutAt(made_fd, fd)) continue;
    made->domain_ = parents->domain_;
    made->type_ = parents->type_;
    made->protocol_ = parents->protocol_;
    made->local_ = parents->local_;
    made->remote_ = parents->remote_;
    if (listens) {
      made->bound_ = planned;
      made->listening_ = true;
      by_connection_[planned] = made;
      listeners_.push_back(made);
      made->ListenForFamily();
      Refresh(*made);
    } else {
      made->Lead(planned);
    }
    NameForHeirs(fd, *made);
    preload::FdTable::Set(fd, made);
  }
}

void ServedConnections::InstallInherited() {
  std::lock_guard<std::mutex> lock(mutex_);
  AdoptFromParent();
  for (uint32_t c = 0; c < session_.plan().connections().size(); ++c) {
    const PlannedConnection& info = script_.Info(c);
    const bool listens = info.kind == format::ConnectionKind::kBound;
    const bool inherited = listens || info.kind == format::ConnectionKind::kInherited;
    const int wanted = inherited ? FindInherited(info) : -1;
    if (wanted < 0) continue;
    if (listens) {
      InstallListener(c, wanted);
      continue;
    }
    if (info.type == S_IFREG) {
      InstallFile(c);
      continue;
    }
    if (script_.IsFamily(c)) continue;
    int fd = -1;
    ServedSocket* made = info.type == S_IFSOCK ? NewSocket(0, fd)
                                               : NewPipe(script_.Sends(c) ? O_RDWR : O_RDONLY, fd);
    if (made == nullptr) return;
    made->domain_ = 0;
    if (fd != wanted) {
      dup2(fd, wanted);
      close(fd);
    }
    preload::WatchStreams();
    made->Lead(c);
    made->domain_ = made->local_.family();
    NameForHeirs(wanted, *made);
    preload::FdTable::Set(wanted, made);
  }
}

ServedSocket* ServedConnections::ListenerAt(const preload::SocketAddress& target) {
  for (ServedSocket* socket : listeners_)
    if (preload::Reaches(target, socket->local_)) return socket;
  return nullptr;
}

void ServedConnections::Refresh(ServedSocket& socket) {
  if (socket.live_ || socket.token_ || socket.ended_ || socket.inner_ < 0) return;
  if (!socket.listening_ && socket.AtEnd()) {
    socket.ShowEnd();
    return;
  }
  if (!socket.IsReady()) return;
  socket.token_ = socket.ShowByte();
}

void ServedConnections::Refresh() {
  const ErrnoKeeper keep;
  for (uint32_t c : script_.TakeReleased())
    if (ServedSocket* socket = by_connection_[c]; socket != nullptr) Refresh(*socket);
  if (session_.progress().SetTransfersLeft(script_.left())) OnAllEventsMade(session_);
}

void ServedConnections::FindMissing(std::vector<std::string>& problems) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (uint32_t c = 0; c < by_connection_.size(); ++c) {
    const PlannedConnection& info = script_.Info(c);
    const bool opened_later = session_.plan().IsAhead(info.thread, info.seq, info.time_ns);
    if (opened_later || by_connection_[c] != nullptr || script_.IsFamily(c) ||
        info.kind == format::ConnectionKind::kInherited || !script_.CrossesStart(c))
      continue;
    problems.push_back("connection '" + info.name +
                       "' was opened after the first step and is still used");
  }
}

void ServedConnections::StartLate(const LateStart& /*start*/) {
  std::lock_guard<std::mutex> lock(mutex_);
  script_.StartLate();
  Refresh();
}

void ServedConnections::Moved() {
  moves_.fetch_add(1, std::memory_order_relaxed);
  session_.progress().CountActivity();
}

void ServedConnections::Tell(const std::string& difference) {
  if (difference.empty()) return;
  session_.divergences().ReportSent(difference);
}

bool ServedConnections::IsAcceptedInRank(const std::string& address) {
  const auto [it, is_new] = accepted_in_rank_.try_emplace(address, false);
  if (is_new) it->second = AnyoneAccepts(rank_, session_.options().scratch, address);
  return it->second;
}

bool ServedConnections::IsNeverTaken(uint32_t connection) const {
  return (family_order_.IsNeverAnswered(connection) || family_order_.EndsUnanswered(connection)) &&
         IsNotAccepted(connection);
}

// A listener takes connections in the order in which they were made. So the last one is missing
// among those that were taken.
bool ServedConnections::IsNotAccepted(uint32_t connection) const {
  const ReplayPlan& plan = session_.plan();
  const PlannedConnection& ours = plan.connections()[connection];
  const auto made = std::count_if(plan.connections().begin(), plan.connections().end(),
                                  [&](const PlannedConnection& other) {
                                    return other.kind == ours.kind && other.remote == ours.remote &&
                                           other.result >= 0 && other.time_ns <= ours.time_ns;
                                  });
  return CountAccepted(rank_, session_.options().scratch, ours.remote, plan.pid) <
         static_cast<size_t>(made);
}

bool ServedConnections::WasReset(uint32_t connection) const {
  const auto& transfers = session_.plan().transfers();
  return std::any_of(transfers.begin(), transfers.end(), [&](const PlannedTransfer& transfer) {
    return transfer.connection == connection && transfer.error == ECONNRESET;
  });
}

void ServedConnections::AwaitAnswers(uint32_t connection, uint64_t received,
                                     std::unique_lock<std::mutex>& lock) {
  // Longer after a while: threads that wait use too little time to be taken for something that
  // moves.
  constexpr timespec kShortPause{0, 1'000'000};
  constexpr timespec kPause{0, 10'000'000};
  constexpr int kShortPauses = 50;
  constexpr uint64_t kQuietNs = 300'000'000;     // nothing moves in the rank
  constexpr uint64_t kAloneNs = 10'000'000'000;  // or in this process
  // What a client gets is an answer itself. Its next request may need what others do with it.
  if (preload::IsNameOfClient(script_.Info(connection).name)) return;
  const ThreadState& thread = session_.Thread();
  const uint64_t before = family_order_.AnswerTo(connection, received);
  if (before == 0 || thread.recorded == kNone || session_.options().is_late) return;
  Stillness still(session_);
  uint64_t moved_ns = ClockNs(CLOCK_MONOTONIC);
  uint64_t activity = session_.progress().activity();
  // A thread that waits for this thread's turn at a lock did so in the recording, too. So this
  // thread did not wait for that one's answer there.
  const Progress::Held held(session_.progress(), thread.recorded);
  for (int pauses = 0; !family_order_.MayGoOn(thread.recorded, before) && !held.IsWanted();
       ++pauses) {
    lock.unlock();
    nanosleep(pauses < kShortPauses ? &kShortPause : &kPause, nullptr);
    bool gives_way = false;
    if (still.IsTimeToLook()) {
      const uint64_t now = ClockNs(CLOCK_MONOTONIC);
      if (session_.progress().activity() != activity || IsAnotherThreadBusy()) moved_ns = now;
      activity = session_.progress().activity();
      gives_way = still.ns() >= kQuietNs || now - moved_ns >= kAloneNs;
    }
    lock.lock();
    if (gives_way) family_order_.GiveWay(before);
  }
}

void ServedConnections::CountCalls(uint32_t c, size_t calls) {
  if (!session_.plan().connections()[c].IsUnix()) return;
  const ErrnoKeeper keep;
  for (; calls != 0; --calls) session_.progress().CountTransfer(session_.Thread().recorded);
}

bool ServedConnections::AreAnswersGiven(uint32_t thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return family_order_.MayGoOn(thread, UINT64_MAX) && !AreToAccept(thread);
}

bool ServedConnections::AreToAccept(uint32_t thread) const {
  const auto& connections = session_.plan().connections();
  for (uint32_t c = 0; c < connections.size(); ++c)
    if (connections[c].kind == format::ConnectionKind::kAccepted && script_.IsFamily(c) &&
        connections[c].thread != thread && !is_taken_[c])
      return true;
  return false;
}

bool ServedConnections::IsFamilyServed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return family_order_.IsAllReceived() && family_order_.MayGoOn(kNone, UINT64_MAX) &&
         !AreToAccept(kNone);
}

void ServedConnections::StartPacer() {
  if (pacing_ || script_.left() == 0) return;
  pacing_ = true;
  StartOwnThread([this] { Pace(); });
}

// Where the replay hangs, order gives way. Lives as long as there is something to receive.
void ServedConnections::Pace() {
  constexpr timespec kTick{0, 50'000'000};
  constexpr uint64_t kRelaxNs = 300'000'000;
  constexpr uint64_t kForceNs = 5'000'000'000;
  uint64_t seen = 0;
  uint64_t quiet_since = ClockNs(CLOCK_MONOTONIC);
  uint64_t cpu_before = 0;
  for (;;) {
    nanosleep(&kTick, nullptr);
    if (abandoned()) return;
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t now = ClockNs(CLOCK_MONOTONIC);
    const uint64_t cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t moves = moves_.load(std::memory_order_relaxed);
    constexpr uint64_t kBusyNs = 10'000'000;
    if (moves != seen || cpu - cpu_before > kBusyNs) quiet_since = now;
    seen = moves;
    cpu_before = cpu;
    if (script_.left() == 0) {
      pacing_ = false;
      return;
    }
    for (ServedSocket* listener : listeners_) Refresh(*listener);
    // A thread may be busy though it uses little time: a loaded machine does not let it run.
    if (now - quiet_since < kRelaxNs || IsAnotherThreadBusy()) continue;
    if (script_.Relax()) {
      quiet_since = now;
    } else if (now - quiet_since >= kForceNs) {
      for (ServedSocket* socket : by_connection_)
        if (socket != nullptr && socket->waiting_ != 0 && socket->connection_ != kNone)
          Tell(script_.Force(socket->connection_));
    }
    Refresh();
  }
}

}  // namespace deja::replayer
