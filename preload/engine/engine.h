// Engine: what the hooks call. The recorder's engine makes the real call and writes down what
// happened; the replayer's answers from a trace and checks. Exactly one exists per process; the
// library that is loaded decides which (CreateEngine is defined once in recorder/ and once in
// replayer/).
//
// Rules for every engine (recorder/README.md). It never throws, aborts, exits or blocks for its own
// sake, and holds none of its locks across a real call. It allocates nothing on the path of an
// event, and leaves errno as the real call left it. Any thread may call all functions at any time,
// before main and after exit handlers included. They are never called while the calling thread is
// inside Deja or inside the real library (guard.h sees to it).
#ifndef DEJA_PRELOAD_ENGINE_ENGINE_H_
#define DEJA_PRELOAD_ENGINE_ENGINE_H_

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"
#include "format/tail/clock_run.h"
#include "format/tail/lock_reading.h"
#include "preload/engine/fd_table.h"

namespace deja::preload {

// One call of a table-described function. Lives on the caller's stack.
struct Call {
  const api::ApiInfo* info = nullptr;
  // Arguments in the table's order, widened to 64 bits. Pointers as addresses. A ncclUniqueId that
  // is passed by value is a pointer to the caller's copy.
  uint64_t args[api::kMaxArgs] = {};
  // The return value: ncclResult_t, or a const char*.
  uint64_t result = 0;
  // Makes the real call with `args`, sets `result` and errno. Runs with the in-library guard held.
  // If no real library is there it sets ncclSystemError.
  void (*invoke)(Call& call) = nullptr;

  template <typename T>
  [[nodiscard]] T Arg(int i) const {
    return (T)(args[i]);
  }  // NOLINT: words of an ABI
  // The argument with that role; 0 if the function has none.
  [[nodiscard]] uint64_t ArgOf(api::Role role) const {
    int i = info->Find(role);
    return i < 0 ? 0 : args[i];
  }
};

// What the engine does with process groups; the numbers are deja_impl_mode's.
enum class GroupMode : uint8_t { kOff = 0, kRecording = 1, kReplaying = 2 };

// How an operation of a process group ended, as far as a recording knows.
// kFailed: Work.wait raises; kRaised: the call itself did.
enum class GroupState : uint8_t { kUnknown = 0, kDone = 1, kFailed = 2, kRaised = 3 };

// An operation of a process group (c10d.def). What is there when `invoke` returns is its issue; its
// end comes with OnGroupDone.
struct GroupCall : Call {
  uint64_t identity = 0;   // of the group that is made: the same number in all its ranks
  uint64_t operation = 0;  // out: its number in the group, from 1; 0: it has none
  bool served = false;     // out: `invoke` was not called
  GroupState state = GroupState::kUnknown;  // out, served
  int src = -1;                             // out, served
  std::string_view error;                   // what it raised, or, served, raises; stays valid
};

// The end of an operation of a process group.
struct GroupEnd {
  uint64_t group = 0;
  uint64_t operation = 0;
  uint32_t dtype = 0;
  std::span<const std::byte> output;
  int src = -1;  // of whom a recv_anysource has received
  bool failed = false;
  std::string_view error;
};

// The source of an answer: the real function; the recording; or none, because the recording does
// not have the call.
enum class AnswerFrom : uint8_t { kReal, kServed, kNone };

// A call of a store of c10d's. `result` is 1 if it raised `value`.
struct StoreCall : Call {
  std::string_view key;
  std::string_view value;  // out
  AnswerFrom answer = AnswerFrom::kReal;
};

// A nondeterministic input. `Real` of OnInput fills `out`, `produced`, `result` and `error`.
struct InputCall {
  uint32_t api = 0;          // id in libc.def, or of MPI's clock
  uint64_t key = 0;          // what was asked for: clock id, sysconf name …
  std::span<std::byte> out;  // where the bytes go (the caller's buffer)
  size_t produced = 0;       // how many of them the call wrote
  int64_t result = 0;        // return value
  int error = 0;             // errno, when the call failed
  void (*real)(InputCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

// A snapshot by deja_tensor / deja_state.
struct SnapshotCall {
  std::string_view name;
  const void* data = nullptr;
  size_t bytes = 0;
  uint32_t dtype = 0;  // ncclDataType_t, or format::kRawBytes
  std::span<const int64_t> shape;
  bool opaque = false;
};

// OnExit comes from a destructor, and the exit code is not known.
inline constexpr int kExitCodeUnknown = INT32_MIN;

class ConnectionLayer;
class FolderLayer;
class OwnPipe;
class PipeTable;

enum class ExitHow : uint32_t { kExit = 0, kUnderscoreExit = 1, kExec = 2 };

// A wait for processes. Before it `pid` and `options` are as in waitpid (waitid's P_ALL is -1, its
// P_PGID a negative number); after it `result` is the process or 0 or -1, and `status` is encoded
// as waitpid's.
struct WaitCall {
  int pid = -1;
  int options = 0;  // waitpid's and waitid's; WNOWAIT: the process can be waited for again
  int result = 0;
  int status = 0;
};

// The program takes a semaphore or a mutex that processes share (shared_semaphores.h,
// shared_mutexes.h). `Real` makes the call: it sets `result`, 0 or -1, and `error`.
struct AcquireCall {
  uint64_t key = 0;  // of what is taken, the same in every run
  sem_t* semaphore = nullptr;
  pthread_mutex_t* mutex = nullptr;        // one of both
  std::atomic<uint32_t>* order = nullptr;  // how often it has been taken, by all processes
  bool tries = false;       // sem_trywait and the like: the program does not want to wait
  bool gives_back = false;  // a wait for a condition variable: it has the mutex
  int result = 0;
  int error = 0;  // an errno; also of a wait whose time was over, which has the mutex
  void (*real)(AcquireCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

// A call by which a thread of the program takes a lock or waits for another thread (lock_order.h).
// Results are as the call returns them; those of semaphores are 0 or an errno.
struct LockCall {
  format::LockUse use = format::LockUse::kMutex;
  const void* lock = nullptr;  // whose turn it is; of a condition variable's wait, the mutex
  int timed_out = 0;           // what a wait for a condition variable returns when its time is over
  bool runs = false;           // a routine that runs once: it has begun on this thread
  int result = 0;
  // The call as the program made it: sets `result`.
  void (*real)(LockCall& call) = nullptr;
  // Takes the lock, however long that lasts: sets `result`.
  void (*take)(LockCall& call) = nullptr;
  // Before a condition variable's wait: gives the mutex back.
  void (*give_back)(LockCall& call) = nullptr;
};

// The program waits for descriptors that only its own processes have (hooks/own_pipes.h), by
// whichever function. `Real` makes the call as the program made it; `Look` waits for `timeout_ms`
// with poll, which changes nothing that the program could see. Both set `result`, errno, and
// `revents` of each descriptor.
inline constexpr uint8_t kUnknownDescriptor = 0xff;
struct PollCall {
  pollfd* descriptors = nullptr;
  nfds_t count = 0;
  int timeout_ms = 0;
  // The key of the only pipe that is asked for by poll, the same in every run; 0: there are
  // several, or the pipe has no entry.
  uint64_t key = 0;
  int result = 0;
  // For epoll: positions of the `result` descriptors that the program gets, in their order
  // (kUnknownDescriptor: of none of these). Null: there is no such order.
  uint8_t* told = nullptr;
  void (*real)(PollCall& call, void* context) = nullptr;
  void (*look)(PollCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
  void Look() { look(*this, context); }
};

// The program reads an eventfd. `Real` sets `value`, or `error` if it fails.
struct CountCall {
  int fd = -1;
  uint64_t value = 0;
  int error = 0;
  void (*real)(CountCall& call, void* context) = nullptr;
  void* context = nullptr;
  void Real() { real(*this, context); }
};

// What a file-system call is about to do; a replay sends writes to its overlay. Use kLook asks
// about a name without opening it; kLookAtLink about a symbolic link itself. kResolve asks where
// all links on its way lead; kMetadata changes mode, owner or times.
enum class FileUse : uint8_t {
  kRead,
  kWrite,
  kCreate,
  kRemove,
  kMakeDir,
  kMetadata,
  kLook,
  kLookAtLink,
  kResolve,
};

// The name is about to be opened, or what opens as little as that does.
constexpr bool Opens(FileUse use) {
  return use == FileUse::kRead || use == FileUse::kWrite || use == FileUse::kCreate;
}

class Engine {
 public:
  virtual ~Engine() = default;

  // A call of the NCCL API. Sets call.result.
  virtual void OnNcclCall(Call& call) = 0;
  // A call of the MPI API. Sets call.result. MPI_Wtime and MPI_Wtick are inputs.
  virtual void OnMpiCall(Call& call) { call.invoke(call); }
  // A call of the host API of cuRAND. Sets call.result.
  virtual void OnCurandCall(Call& call) { call.invoke(call); }
  // A function of MPI's that no table has, in a replay. Need not return.
  virtual void OnUnknownMpiCall(const char* /*name*/, const char* /*because*/) {}
  // Process groups and stores of PyTorch, which come from any thread, also from the library's own.
  [[nodiscard]] virtual GroupMode ModeOfGroups() const { return GroupMode::kOff; }
  virtual void OnGroupCall(GroupCall& call) { call.invoke(call); }
  virtual void OnGroupDone(const GroupEnd& /*end*/) {}
  virtual void OnStoreCall(StoreCall& call) { call.invoke(call); }
  // The program does something of torch.distributed that is not recorded; `what` says it with what
  // to do. A replay ends there, unless there only may be such a thing.
  virtual void OnNotRecorded(std::string_view what, bool may_be) { (void)what, (void)may_be; }
  // A nondeterministic input.
  virtual void OnInput(InputCall& call) = 0;

  // The program reads a clock, which says `live_ns`. Returns what the program gets. errno is kept.
  virtual int64_t OnClock(format::ClockSource source, int64_t live_ns) {
    (void)source;
    return live_ns;
  }

  // A step begins. Returns the step that the program goes on with. Called without the guard: it may
  // save and load the program's state, which is code of the program.
  virtual uint64_t OnStep(uint64_t step) = 0;
  // The next step takes a checkpoint.
  virtual void OnCheckpointWanted() {}
  virtual void OnNote(std::string_view text) = 0;
  virtual void OnSnapshot(const SnapshotCall& call) = 0;
  // The program's optimizer makes an update. A replay has nothing to do with it.
  virtual void OnUpdate(const format::OptimizerUpdate& update) { (void)update; }

  // On the new thread, before the program's start routine / after it (also when it is cancelled).
  virtual void OnThreadStart() = 0;
  virtual void OnThreadEnd() = 0;

  // A fatal signal arrived on this thread. Async-signal-safe. The handler chains afterwards.
  virtual void OnCrash(int signal, const siginfo_t* info, void* ucontext) = 0;
  // The process is about to end in an orderly way, or to be replaced. May be called more than once.
  virtual void OnExit(int code, ExitHow how) = 0;
  // In the child after any kind of fork, before the child's first event.
  virtual void OnForkChild() = 0;

  // The path to use instead of `path` (relative to `dirfd`, as in openat), written to `buffer`; or
  // `path` itself when the call may go ahead as it is; or null with errno set when it may not. The
  // recorder returns `path`; a replay sends writes to its overlay.
  virtual const char* MapPath(int dirfd, const char* path, FileUse use, std::span<char> buffer) = 0;
  // The program has opened `path`, relative to `dirfd`, as `fd` with open's `flags`. What the
  // descriptor leads to (hooks/fd_table.h); null: nothing that must be watched.
  virtual FdObject* OnOpened(int dirfd, const char* path, int fd, int flags) {
    return (void)dirfd, (void)path, (void)fd, (void)flags, nullptr;
  }
  // The system has refused to open `path` (EACCES). A new descriptor to use in its place, or -1.
  virtual int OnOpenRefused(int dirfd, const char* path, int flags) {
    (void)dirfd, (void)path, (void)flags;
    return -1;
  }
  // The program would have made `path`, relative to `dirfd`, but it was there (O_EXCL).
  virtual void OnTaken(int dirfd, const char* path) { (void)dirfd, (void)path; }
  // The answer to the program about the file `mapped`, a result of MapPath, or, if that is null,
  // about the file of `fd`; `info` is the real answer.
  virtual void OnStat([[maybe_unused]] const char* mapped, [[maybe_unused]] int fd,
                      [[maybe_unused]] struct stat& info) {}
  // MapPath's result is not needed any more.
  virtual void ReleasePath(const char* mapped) { (void)mapped; }
  // The answer to the program instead of `path`, an absolute path of `size` bytes (no terminator)
  // that the kernel gave. It is written over `path` and not longer. Returns its size.
  virtual size_t UnmapPath(char* path, size_t size) { return (void)path, size; }
  // False, with errno set, when a connection to `address` must not be made.
  virtual bool MayConnect(int fd, const void* address, uint32_t length) = 0;
  // False, with errno set, when a signal must not be sent to `pid`.
  virtual bool MayKill(int pid, int signal) = 0;

  // The live process (or process group) that the program means by `pid`. A replay serves the
  // recorded pid, so kill, waitpid and sched_* translate it back. Ask before MayKill.
  virtual int MapPid(int pid) { return pid; }
  // The calling thread has made process `pid`, its `number`-th. Returns the pid that the program
  // gets.
  virtual int OnChildMade([[maybe_unused]] uint32_t number, int pid) { return pid; }
  // The calling thread is about to fork its `number`-th process. If the result is not 0, it does
  // not fork, and the program gets this pid.
  virtual int SkippedChild([[maybe_unused]] uint32_t number) { return 0; }
  // The pid that the process which the calling thread makes next believes to have; 0: its real one.
  // Changes nothing; also called in a vfork child.
  virtual int RecordedChildPid([[maybe_unused]] uint32_t number) { return 0; }
  // Around a wait for processes: the first may change `pid`, the second `result` and `status`.
  virtual void BeforeWait([[maybe_unused]] WaitCall& call) {}
  virtual void AfterWait([[maybe_unused]] WaitCall& call) {}

  // Calls by which processes of a rank meet. Without the guard: they may block, and be left by
  // cancellation.
  virtual void OnAcquire(AcquireCall& call) { call.Real(); }
  virtual void OnPoll(PollCall& call) { call.Real(); }
  virtual void OnCount(CountCall& call) { call.Real(); }
  // Reads and writes of pipes of the rank's own (hooks/own_pipes.h). They make the real call.
  virtual void OnPipeRead(OwnPipe& pipe, Transfer& transfer) {
    (void)pipe;
    transfer.Real();
  }
  virtual void OnPipeWrite(OwnPipe& pipe, Transfer& transfer) {
    (void)pipe;
    transfer.Real();
  }
  // The table of these; null: they are not followed. Within the guard.
  virtual PipeTable* Pipes() { return nullptr; }
  // While locks are ordered. Programs' exceptions pass through it.
  virtual void OnLock(LockCall& call) { call.real(call); }
  // Within OnLock: the calling thread is the one that runs the routine, and is about to.
  virtual void OnOnceBegins(LockCall& call) { call.runs = true; }

  // Nanoseconds to add to a deadline of the program, a time by `clock`, before the wait
  // (pthread_cond_timedwait, sem_timedwait, clock_nanosleep with TIMER_ABSTIME …). A replay gives
  // recorded times, and waits run on the live clock. errno need not be kept.
  virtual int64_t DeadlineOffsetNs(int clock, int64_t deadline_ns) {
    (void)clock;
    (void)deadline_ns;
    return 0;
  }
  // The part that lists folders (folders.h); null: the C library does.
  virtual FolderLayer* Folders() { return nullptr; }
  // The program is about to install a seccomp filter that refuses `call`, one that Deja makes on
  // the program's threads. This is the engine's last call. `for_all`: the filter is for all
  // threads; the engine may make it one for the calling thread alone, or ends its own.
  virtual void OnFilter(const char* call, bool& for_all) { (void)call, (void)for_all; }
  // Memory is about to be unmapped, while there are mappings of input files (mapped_inputs.h).
  virtual void BeforeUnmap(void* memory, size_t size) { (void)memory, (void)size; }
  // The threads of this process, which has one yet, meet at locks: their order counts, whether it
  // was asked for or not.
  virtual void OnThreadsMeet() {}
  // The part that makes sockets (connections.h); null: they are the kernel's, as if we were not
  // there.
  virtual ConnectionLayer* Connections() { return nullptr; }
};

// The engine of this library, made on first use (before main, possibly). Defined in recorder/ or
// replayer/.
Engine* CreateEngine();

// The process's engine; null while it is being made or when the library is switched off by the
// environment.
Engine* GetEngine();

// The engine, if it has been made and is this process's. Null in a child that has not called
// GetEngine yet, and in a vfork child, which only borrows the parent's memory. Makes nothing;
// async-signal-safe.
Engine* EngineOfThisProcess();

// From now on this process has no engine, for good, and its forked children neither. Threads that
// are inside it complete their calls.
void SwitchEngineOff();
// True after that.
bool IsEngineSwitchedOff();

// True in a vfork child, which runs in its parent's memory: nothing of ours may be changed there.
// Async-signal-safe.
bool IsBorrowedMemory();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_ENGINE_H_
