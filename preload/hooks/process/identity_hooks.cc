// The identity of the process and the machine that it sees: these set seeds, thread counts and with
// them sums.
//
// std::thread::hardware_concurrency asks get_nprocs, OpenMP the affinity mask.
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "common/runtime/errno_keeper.h"
#include "preload/calls/input_calls.h"
#include "preload/calls/process_calls.h"
#include "preload/engine/signals.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/process/process_name.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<pid_t (*)()> real_getpid{"getpid"};
constinit RealFn<pid_t (*)()> real_getppid{"getppid"};
constinit RealFn<pid_t (*)()> real_gettid{"gettid"};
constinit RealFn<int (*)(char*, size_t)> real_gethostname{"gethostname"};
constinit RealFn<int (*)(utsname*)> real_uname{"uname"};
constinit RealFn<long (*)(int)> real_sysconf{"sysconf"};
constinit RealFn<int (*)()> real_get_nprocs{"get_nprocs"};
constinit RealFn<int (*)()> real_get_nprocs_conf{"get_nprocs_conf"};
constinit RealFn<int (*)(pid_t, size_t, cpu_set_t*)> real_sched_getaffinity{"sched_getaffinity"};
constinit RealFn<int (*)(pthread_t, size_t, cpu_set_t*)> real_pthread_getaffinity_np{
    "pthread_getaffinity_np"};
constinit RealFn<int (*)(pid_t, size_t, const cpu_set_t*)> real_sched_setaffinity{
    "sched_setaffinity"};
constinit RealFn<int (*)(pthread_t, size_t, const cpu_set_t*)> real_pthread_setaffinity_np{
    "pthread_setaffinity_np"};
constinit RealFn<int (*)(pthread_attr_t*, size_t, const cpu_set_t*)>
    real_pthread_attr_setaffinity_np{"pthread_attr_setaffinity_np"};
constinit RealFn<long (*)()> real_gethostid{"gethostid"};
constinit RealFn<int (*)(char*, size_t)> real_getdomainname{"getdomainname"};
constinit RealFn<int (*)(struct sysinfo*)> real_sysinfo{"sysinfo"};
constinit RealFn<long (*)()> real_get_phys_pages{"get_phys_pages"};
constinit RealFn<long (*)()> real_get_avphys_pages{"get_avphys_pages"};
constinit RealFn<int (*)(double*, int)> real_getloadavg{"getloadavg"};
constinit RealFn<int (*)(int, rlimit*)> real_getrlimit{"getrlimit"};
constinit RealFn<int (*)(int, rlimit64*)> real_getrlimit64{"getrlimit64"};
constinit RealFn<int (*)(int)> real_isatty{"isatty"};
constinit RealFn<unsigned long (*)(unsigned long)> real_getauxval{"getauxval"};

// For functions that return the value.
template <typename Real>
int64_t TakeValue(api::LibcApi api, uint64_t key, Real real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  return TakeInput(*engine, api, key, {}, [&](InputCall& call) { call.result = real(); });
}

// What a handler gets that came in the middle of one of Deja's calls. In a replay it compares that
// with a sender that has its recorded pid.
int PidInHandler(int ProcessName::*recorded, int live) {
  if (!InProgramHandler() || !HasProcessName()) return live;
  const int known = OwnProcessName().*recorded;
  return known != 0 ? known : live;
}

// For functions that fill a name, and end it if it fits.
int TakeName(api::LibcApi api, char* name, size_t size, RealFn<int (*)(char*, size_t)>& real) {
  Engine* engine = name != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real(name, size);
  return static_cast<int>(TakeInput(*engine, api, 0, BytesOf(name, size), [&](InputCall& call) {
    char* out = reinterpret_cast<char*>(call.out.data());
    call.result = real(out, size);
    if (call.result != 0) return;
    size_t length = strnlen(out, size);
    call.produced = length < size ? length + 1 : size;
  }));
}

// For functions that fill one structure and return 0.
template <typename T, typename Real>
int TakeStruct(api::LibcApi api, uint64_t key, T* out, Real real) {
  Engine* engine = out != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real(out);
  return static_cast<int>(TakeInput(*engine, api, key, BytesOf(out), [&](InputCall& call) {
    T live{};
    call.result = real(&live);
    if (call.result != 0) return;
    memcpy(call.out.data(), &live, sizeof live);
    call.produced = sizeof live;
  }));
}

// What depends on the machine; the rest of sysconf's names are the same everywhere or must be the
// live ones (the sizes of signal stacks).
bool IsShape(int name) {
  switch (name) {
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF:
    case _SC_PHYS_PAGES:
    case _SC_OPEN_MAX:
    case _SC_CHILD_MAX:
    case _SC_NGROUPS_MAX:
      return true;
    default:
      return name >= _SC_LEVEL1_ICACHE_SIZE && name <= _SC_LEVEL4_CACHE_LINESIZE;
  }
}

// A mask of CPUs that the program sets: counted, since what it reads back is another one then.
std::atomic<uint32_t> g_masks_set{0};

uint64_t KeyOfAffinity(size_t size) {
  return static_cast<uint64_t>(g_masks_set.load(std::memory_order_relaxed)) << 32 |
         static_cast<uint32_t>(size);
}

// A replay may have fewer CPUs: it says what the recorded call said, and leaves its threads where
// they are.
template <typename Real>
int TakeSetting(api::LibcApi api, const cpu_set_t* mask, size_t size, Real real) {
  Engine* engine = mask != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real();
  const auto* bytes = reinterpret_cast<const char*>(mask);
  while (size > 0 && bytes[size - 1] == 0) --size;
  const auto result = static_cast<int>(TakeInput(*engine, api, HashOf({bytes, size}), {},
                                                 [&](InputCall& call) { call.result = real(); }));
  if (result == 0) g_masks_set.fetch_add(1, std::memory_order_relaxed);
  return result;
}

bool IsOwnThread(pid_t tid) {
  const ErrnoKeeper keep;
  const bool own = syscall(SYS_tgkill, syscall(SYS_getpid), tid, 0) == 0;
  return own;
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT pid_t getpid() noexcept {
  return static_cast<pid_t>(TakeValue(deja::api::LibcApi::kgetpid, 0, [] {
    return PidInHandler(&ProcessName::recorded_pid, real_getpid());
  }));
}

DEJA_EXPORT pid_t getppid() noexcept {
  return static_cast<pid_t>(TakeValue(deja::api::LibcApi::kgetppid, 0, [] {
    return PidInHandler(&ProcessName::recorded_parent, real_getppid());
  }));
}

// Programs find out whether they are on the main thread by comparing the two.
DEJA_EXPORT pid_t gettid() noexcept {
  pid_t tid = real_gettid();
  if (tid != static_cast<pid_t>(syscall(SYS_getpid))) return tid;
  return static_cast<pid_t>(TakeValue(deja::api::LibcApi::kgettid, 0, [tid] { return tid; }));
}

DEJA_EXPORT int gethostname(char* name, size_t size) noexcept {
  return TakeName(deja::api::LibcApi::kgethostname, name, size, real_gethostname);
}

DEJA_EXPORT int getdomainname(char* name, size_t size) noexcept {
  return TakeName(deja::api::LibcApi::kgetdomainname, name, size, real_getdomainname);
}

DEJA_EXPORT long gethostid() {
  return TakeValue(deja::api::LibcApi::kgethostid, 0, [] { return real_gethostid(); });
}

DEJA_EXPORT int uname(utsname* out) noexcept {
  Engine* engine = out != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_uname(out);
  return static_cast<int>(
      TakeInput(*engine, deja::api::LibcApi::kuname, 0, BytesOf(out), [](InputCall& call) {
        call.result = real_uname(reinterpret_cast<utsname*>(call.out.data()));
        call.produced = call.result == 0 ? sizeof(utsname) : 0;
      }));
}

DEJA_EXPORT long sysconf(int name) noexcept {
  if (name == _SC_AVPHYS_PAGES) return get_avphys_pages();
  if (!IsShape(name)) return real_sysconf(name);
  return TakeValue(deja::api::LibcApi::ksysconf, static_cast<uint64_t>(name),
                   [name] { return real_sysconf(name); });
}

DEJA_EXPORT long get_phys_pages() noexcept {
  return TakeValue(deja::api::LibcApi::kget_phys_pages, 0, [] { return real_get_phys_pages(); });
}

DEJA_EXPORT long get_avphys_pages() noexcept {
  return TakeValue(deja::api::LibcApi::kget_avphys_pages, 0,
                   [] { return real_get_avphys_pages(); });
}

DEJA_EXPORT int sysinfo(struct sysinfo* out) noexcept {
  return TakeStruct(deja::api::LibcApi::ksysinfo, 0, out,
                    [](struct sysinfo* o) { return real_sysinfo(o); });
}

DEJA_EXPORT int getloadavg(double* loads, int count) noexcept {
  Engine* engine = loads != nullptr && count > 0 ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getloadavg(loads, count);
  const std::span<std::byte> out = BytesOf(loads, static_cast<size_t>(count) * sizeof *loads);
  return static_cast<int>(TakeInput(
      *engine, deja::api::LibcApi::kgetloadavg, static_cast<uint64_t>(count), out,
      [count](InputCall& call) {
        call.result = real_getloadavg(reinterpret_cast<double*>(call.out.data()), count);
        call.produced = call.result > 0 ? static_cast<size_t>(call.result) * sizeof(double) : 0;
      }));
}

DEJA_EXPORT int getrlimit(__rlimit_resource_t resource, rlimit* out) noexcept {
  return TakeStruct(deja::api::LibcApi::kgetrlimit, static_cast<uint64_t>(resource), out,
                    [resource](rlimit* o) { return real_getrlimit(resource, o); });
}

DEJA_EXPORT int getrlimit64(__rlimit_resource_t resource, rlimit64* out) noexcept {
  return TakeStruct(deja::api::LibcApi::kgetrlimit, static_cast<uint64_t>(resource), out,
                    [resource](rlimit64* o) { return real_getrlimit64(resource, o); });
}

// A program that writes to a terminal writes colours and progress bars.
DEJA_EXPORT int isatty(int fd) noexcept {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_isatty(fd);
  const auto result = static_cast<int>(TakeInput(
      *engine, deja::api::LibcApi::kisatty, static_cast<uint64_t>(fd), {}, [fd](InputCall& call) {
        const int is = real_isatty(fd);
        call.result = is == 0 ? -1 : is;
      }));
  return result < 0 ? 0 : result;
}

// The kernel's 16 random bytes, from which programs make seeds (the C library's own canaries are
// older than this library).
DEJA_EXPORT unsigned long getauxval(unsigned long type) noexcept {
  constexpr size_t kBytes = 16;
  static std::byte bytes[kBytes];
  const unsigned long live = real_getauxval(type);
  Engine* engine = type == AT_RANDOM && live != 0 ? EngineForHook() : nullptr;
  if (engine == nullptr) return live;
  std::byte drawn[kBytes];
  TakeInput(*engine, deja::api::LibcApi::kgetauxval, type, BytesOf(drawn, kBytes),
            [live](InputCall& call) {
              memcpy(call.out.data(), reinterpret_cast<const void*>(live), kBytes);
              call.produced = kBytes;
              call.result = 0;
            });
  memcpy(bytes, drawn, kBytes);  // the same bytes each time
  return reinterpret_cast<unsigned long>(bytes);
}

DEJA_EXPORT int get_nprocs() noexcept {
  return static_cast<int>(
      TakeValue(deja::api::LibcApi::kget_nprocs, 0, [] { return real_get_nprocs(); }));
}

DEJA_EXPORT int get_nprocs_conf() noexcept {
  return static_cast<int>(
      TakeValue(deja::api::LibcApi::kget_nprocs_conf, 0, [] { return real_get_nprocs_conf(); }));
}

DEJA_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t* mask) noexcept {
  Engine* engine = mask != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_sched_getaffinity(pid, size, mask);
  pid_t live = engine->processes->MapPid(pid);
  if (pid != 0 && !IsOwnThread(live)) return real_sched_getaffinity(live, size, mask);
  return static_cast<int>(TakeInput(*engine, deja::api::LibcApi::ksched_getaffinity,
                                    KeyOfAffinity(size), BytesOf(mask, size),
                                    [live, size](InputCall& call) {
                                      auto* out = reinterpret_cast<cpu_set_t*>(call.out.data());
                                      call.result = real_sched_getaffinity(live, size, out);
                                      call.produced = call.result == 0 ? size : 0;
                                    }));
}

DEJA_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t* mask) noexcept {
  Engine* engine = mask != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_pthread_getaffinity_np(thread, size, mask);
  return static_cast<int>(TakeInput(*engine, deja::api::LibcApi::kpthread_getaffinity_np,
                                    KeyOfAffinity(size), BytesOf(mask, size),
                                    [thread, size](InputCall& call) {
                                      auto* out = reinterpret_cast<cpu_set_t*>(call.out.data());
                                      call.result = real_pthread_getaffinity_np(thread, size, out);
                                      call.produced = call.result == 0 ? size : 0;
                                    }));
}

DEJA_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t* mask) noexcept {
  Engine* engine = EngineForHook();
  pid_t live = engine != nullptr ? engine->processes->MapPid(pid) : pid;
  return TakeSetting(deja::api::LibcApi::ksched_setaffinity, mask, size,
                     [=] { return real_sched_setaffinity(live, size, mask); });
}

DEJA_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size,
                                       const cpu_set_t* mask) noexcept {
  return TakeSetting(deja::api::LibcApi::kpthread_setaffinity_np, mask, size,
                     [=] { return real_pthread_setaffinity_np(thread, size, mask); });
}

// A thread that is created with a mask that this machine does not have would not be created.
DEJA_EXPORT int pthread_attr_setaffinity_np(pthread_attr_t* attributes, size_t size,
                                            const cpu_set_t* mask) noexcept {
  return TakeSetting(deja::api::LibcApi::kpthread_attr_setaffinity_np, mask, size,
                     [=] { return real_pthread_attr_setaffinity_np(attributes, size, mask); });
}
