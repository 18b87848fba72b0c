#include "preload/process/process_name.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/env_vars.h"
#include "common/runtime/errno_keeper.h"
#include "common/runtime/raw_syscall.h"
#include "preload/process/child_padding.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/process/threads.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

// Past a hook of another library of ours, for which this would be the program's.
constinit RealFn<ssize_t (*)(void*, size_t, unsigned)> real_getrandom{"getrandom"};

constexpr const char* kChildVariable = env::kChild.prefix;
constexpr char kPreloadVariable[] = "LD_PRELOAD=";
constexpr const char* kInherited = env::kInherited.prefix;
constexpr int kMostInherited = 256;

constinit ProcessName g_name;
constinit std::atomic<uint32_t> g_state{0};  // 0 unmade, 1 being made, 2 made

char g_inherited[2048];  // whole entry: inodes between commas
constinit std::atomic<bool> g_passes_on{true};

int OwnPid() {
  return static_cast<int>(syscall(SYS_getpid));
}

bool StartsWith(const char* entry, std::string_view prefix) {
  return std::strncmp(entry, prefix.data(), prefix.size()) == 0;
}

// "<root> <root's pid> <s|p><pid> <recorded pid> <recorded parent> <path>": s: for the process with
// this id, p: for a child of it.
bool ParseOwn(const char* value, ProcessName& name) {
  char root[33] = {};
  char whose = 0;
  int pid = 0;
  int at = 0;
  if (sscanf(value, "%32[0-9a-f] %d %c%d %d %d %n", root, &name.root_pid, &whose, &pid,
             &name.recorded_pid, &name.recorded_parent, &at) < 6)
    return false;
  const std::string_view path = value + at;
  if (std::strlen(root) != 32 || path.size() >= sizeof name.path) return false;
  const int mine = whose == 's' ? OwnPid() : static_cast<int>(syscall(SYS_getppid));
  if (pid != mine) return false;  // inherited by a process that another tool made
  for (size_t i = 0; i < sizeof name.root; ++i) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    name.root[i] = static_cast<uint8_t>(digit(root[2 * i]) << 4 | digit(root[2 * i + 1]));
  }
  path.copy(name.path, path.size());
  return true;
}

const char* ValueOf(char* const* env, std::string_view prefix) {
  for (char* const* entry = env; entry != nullptr && *entry != nullptr; ++entry)
    if (StartsWith(*entry, prefix)) return *entry + prefix.size();
  return nullptr;
}

// In the first process: remembers what it was born with, for itself and those that come.
void ListInherited() {
  size_t size = static_cast<size_t>(snprintf(g_inherited, sizeof g_inherited, "%s", kInherited));
  for (int fd = 0; fd < kMostInherited; ++fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0 || (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))) continue;
    const int n = snprintf(g_inherited + size, sizeof g_inherited - size, ",%llu,",
                           static_cast<unsigned long long>(st.st_ino));
    if (n > 0 && size + static_cast<size_t>(n) < sizeof g_inherited) size += static_cast<size_t>(n);
  }
  g_inherited[size] = '\0';
  AddOwnVariable(g_inherited);
}

void Make() {
  const ErrnoKeeper keep;
  Guard guard;
  const char* own = ValueOf(environ, kChildVariable);
  const bool on = ValueOf(environ, env::kOut.prefix) != nullptr ||
                  ValueOf(environ, env::kReplay.prefix) != nullptr;
  if (on) {
    KeepOwnVariables(kChildVariable);
    if (own == nullptr) {
      ListInherited();
      g_name.is_known = real_getrandom(g_name.root, sizeof g_name.root, GRND_NONBLOCK) ==
                        static_cast<ssize_t>(sizeof g_name.root);
      g_name.root_pid = OwnPid();
    } else {
      if (const char* listed = ValueOf(environ, kInherited))
        snprintf(g_inherited, sizeof g_inherited, "%s%s", kInherited, listed);
      g_name.is_known = ParseOwn(own, g_name);
    }
    g_name.pid = OwnPid();
  }
}

// Appends to a path; false, and nothing is changed, if it gets too long.
bool Join(char* path, const char* thread, uint32_t number) {
  const size_t size = std::strlen(path);
  const int n = snprintf(path + size, kMaxProcessPath - size, "%s%s/%u", size == 0 ? "" : "/",
                         thread, number);
  if (n > 0 && size + static_cast<size_t>(n) < kMaxProcessPath) return true;
  path[size] = '\0';
  return false;
}

// One more image: "0/1" -> "0/1+1" -> "0/1+2".
bool NextImageOf(char* path) {
  char* plus = std::strrchr(path, '+');
  const char* slash = std::strrchr(path, '/');
  unsigned images = 0;
  if (plus != nullptr && (slash == nullptr || plus > slash)) {
    images = static_cast<unsigned>(std::strtoul(plus + 1, nullptr, 10));
    *plus = '\0';
  }
  const size_t size = std::strlen(path);
  const int n = snprintf(path + size, kMaxProcessPath - size, "+%u", images + 1);
  return n > 0 && size + static_cast<size_t>(n) < kMaxProcessPath;
}

// The value of DEJA_CHILD for `next`; a value without a name if it cannot be named.
size_t WriteChildVariable(const NextProcess& next, std::span<char> out) {
  char path[kMaxProcessPath];
  std::memcpy(path, g_name.path, sizeof path);
  bool good = g_name.is_known;
  int recorded = next.recorded_pid;
  int parent = g_name.recorded_pid;
  if (next.image == NextImage::kOwn) {
    good = good && OwnPid() == g_name.pid;
    recorded = g_name.recorded_pid;
    parent = g_name.recorded_parent;
  } else {
    good = good && next.number != 0 && Join(path, Self().name, next.number);
  }
  if (!good || !NextImageOf(path))
    return static_cast<size_t>(snprintf(out.data(), out.size(), "%s-", kChildVariable)) + 1;
  char root[33];
  for (size_t i = 0; i < sizeof g_name.root; ++i) snprintf(root + 2 * i, 3, "%02x", g_name.root[i]);
  const bool spawned = next.image == NextImage::kSpawned;
  const int n = snprintf(out.data(), out.size(), "%s%s %d %c%d %d %d %s", kChildVariable, root,
                         g_name.root_pid, spawned ? 'p' : 's', OwnPid(), recorded, parent, path);
  return static_cast<size_t>(n) + 1;
}

constexpr size_t kChildText = kMaxProcessPath + 128;

// The environment of another session: a recording or a replay inside this one.
bool IsForeign(char* const* env) {
  for (const char* name : {env::kOut.prefix, env::kReplay.prefix}) {
    const char* passed = ValueOf(env, name);
    if (passed == nullptr) continue;
    bool ours = false;
    for (const char* entry : OwnVariables())
      ours |= StartsWith(entry, name) && std::strcmp(entry + std::strlen(name), passed) == 0;
    if (!ours) return true;
  }
  return false;
}

// Once in a process; in a vfork child, too.
void SayUnrecorded(std::atomic<bool>& said, std::string_view line) {
  if (said.exchange(true)) return;
  RawSyscall(SYS_write, STDERR_FILENO, reinterpret_cast<long>(line.data()),
             static_cast<long>(line.size()));
}

// False below another root folder, and for a user who cannot read it: the loader would complain.
bool LibraryIsThere() {
  if (OwnLibrary().empty()) return true;
  const auto path = reinterpret_cast<long>(OwnLibrary().data());
  if (RawSyscall(SYS_access, path, R_OK) == 0) return true;
  static constinit std::atomic<bool> said{false};
  SayUnrecorded(said,
                "deja: not recorded: programs that a process execs where Deja's library cannot be "
                "read (below another root folder, or as another user)\n");
  return false;
}

bool IsOfAnotherSession(char* const* env) {
  if (!IsForeign(env)) return false;
  static constinit std::atomic<bool> said{false};
  SayUnrecorded(said, "deja: not recorded: processes of a recording or a replay inside this one\n");
  return true;
}

}  // namespace

const ProcessName& OwnProcessName() {
  while (g_state.load(std::memory_order_acquire) != 2) {
    uint32_t expected = 0;
    if (environ == nullptr) break;
    if (g_state.compare_exchange_strong(expected, 1)) {
      Make();
      g_state.store(2, std::memory_order_release);
    } else if (expected == 1) {
      sched_yield();
    }
  }
  return g_name;
}

bool CameFromOutside(uint64_t inode) {
  if (!OwnProcessName().is_known) return true;
  char text[32];
  snprintf(text, sizeof text, ",%llu,", static_cast<unsigned long long>(inode));
  return std::strstr(g_inherited, text) != nullptr;
}

bool HasProcessName() {
  const ProcessName& name = OwnProcessName();
  return name.is_known && name.pid == OwnPid();
}

void SetRecordedPids(int pid, int parent) {
  (void)OwnProcessName();
  g_name.recorded_pid = pid;
  g_name.recorded_parent = parent;
}

std::string_view WriteChildPath(uint32_t number, std::span<char, kMaxProcessPath> out) {
  std::memcpy(out.data(), g_name.path, kMaxProcessPath);
  if (!g_name.is_known || !Join(out.data(), Self().name, number)) return {};
  return out.data();
}

void EnterForkChild(uint32_t number, int recorded_pid) {
  ThreadRecord& self = Self();
  g_name.is_known = g_name.is_known && Join(g_name.path, self.name, number);
  g_name.recorded_parent = g_name.recorded_pid;
  g_name.recorded_pid = recorded_pid;
  g_name.pid = OwnPid();
  // It is the first thread of its process.
  std::strcpy(self.name, "0");
  self.children = 0;
  self.processes = 0;
}

void ForgetProcessName() {
  g_name.is_known = false;
}

void StopPassingOn() {
  g_passes_on.store(false);
}

EnvironmentSize SizeOfEnvironment(char* const* env) {
  EnvironmentSize size{1, 1};
  (void)OwnProcessName();
  if (OwnVariables().empty()) return size;
  for (char* const* entry = env; entry != nullptr && *entry != nullptr; ++entry) ++size.slots;
  size.slots += OwnVariables().size() + 2;
  const char* preload = ValueOf(env, kPreloadVariable);
  size.text = kChildText + sizeof kPreloadVariable + OwnLibrary().size() + 2 +
              (preload == nullptr ? 0 : std::strlen(preload));
  return size;
}

char* const* FillEnvironment(char* const* env, const NextProcess& next, std::span<char*> slots,
                             std::span<char> text) {
  if (OwnVariables().empty() || InsideDeja() || !g_passes_on.load()) return env;
  if (IsOfAnotherSession(env) || !LibraryIsThere()) return env;
  size_t count = 0;
  char* preload = nullptr;
  size_t preload_slot = 0;
  for (char* const* entry = env; entry != nullptr && *entry != nullptr; ++entry) {
    if (StartsWith(*entry, kChildVariable) || StartsWith(*entry, kInherited)) continue;
    if (StartsWith(*entry, kPreloadVariable)) {
      preload = *entry;
      preload_slot = count;
    }
    slots[count++] = *entry;
  }
  for (const char* own : OwnVariables()) {
    const std::string_view entry = own;
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    if (name == kInherited || ValueOf(env, name) == nullptr)
      slots[count++] = const_cast<char*>(own);
  }
  const size_t used = WriteChildVariable(next, text.first(kChildText));
  slots[count++] = text.data();
  if (preload == nullptr || std::strstr(preload, OwnLibrary().data()) == nullptr) {
    char* const written = text.data() + used;
    const char* rest = preload == nullptr ? "" : preload + sizeof kPreloadVariable - 1;
    snprintf(written, text.size() - used, "%s%s%s%s", kPreloadVariable, OwnLibrary().data(),
             preload == nullptr ? "" : ":", rest);
    // Where the program has it: what it sees keeps its order.
    slots[preload == nullptr ? count++ : preload_slot] = written;
  }
  PadChildVariables(slots.first(count));
  slots[count] = nullptr;
  return slots.data();
}

}  // namespace deja::preload
