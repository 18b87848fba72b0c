// How the engine is made. That happens once a process, so each test runs in a child.
#include "preload/engine/engine.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "preload/hooks/loading/driver_libraries.h"
#include "preload/process/guard.h"
#include "tests/support/every_call.h"

namespace deja::preload {
namespace {

std::atomic<int> g_made{0};
std::atomic<int> g_children{0};
bool g_make_null = false;
bool g_saw_itself = false;
bool g_was_inside = false;

class CountingEngine final : public EveryCall {
 public:
  void OnNcclCall(Call&) override {}
  void OnInput(InputCall&) override {}
  uint64_t OnStep(uint64_t step) override { return step; }
  void OnNote(std::string_view) override {}
  void OnSnapshot(const SnapshotCall&) override {}
  void OnThreadStart() override {}
  void OnThreadEnd() override {}
  void OnCrash(int, const siginfo_t*, void*) override {}
  void OnExit(int, ExitHow) override {}
  void OnForkChild() override {
    ++g_children;
    g_was_inside = InsideDeja();
  }
  const char* MapPath(int, const char* path, FileUse, std::span<char>) override { return path; }
  bool MayConnect(int, const void*, uint32_t) override { return true; }
  bool MayKill(int, int) override { return true; }
};

CountingEngine g_engine;

// The test framework looks at clocks, through the hooks that are linked in here. That makes no
// engine, so that each child has its first look before it.
const Guard g_framework;

// True if `body` returned true in a child process that did not crash.
template <typename Body>
bool InChild(const char* variable, Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    t_guard_depth = 0;
    unsetenv("DEJA_OUT");
    unsetenv("DEJA_REPLAY");
    if (variable != nullptr) setenv(variable, "/somewhere", 1);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool IsTheEngine(const Engine* engine) {
  return engine != nullptr && engine->nccl == &g_engine && engine->locks == &g_engine;
}

}  // namespace

bool CreateEngine(Engine& engine) {
  ++g_made;
  g_saw_itself = GetEngine() != nullptr;
  g_was_inside = InsideDeja();
  usleep(20000);  // long enough for others to come and wait
  engine = EngineOf(g_engine);
  return !g_make_null;
}

namespace {

TEST(EngineTest, IsMadeForRecordingAndForReplay) {
  for (const char* variable : {"DEJA_OUT", "DEJA_REPLAY"})
    EXPECT_TRUE(InChild(variable, [] { return IsTheEngine(GetEngine()) && !InsideDeja(); }))
        << variable;
}

TEST(EngineTest, IsNotMadeWithoutARequest) {
  EXPECT_TRUE(InChild(nullptr, [] { return GetEngine() == nullptr && g_made == 0; }));
}

TEST(EngineTest, StaysOffWhatTheProgramDoesToItsEnvironment) {
  EXPECT_TRUE(InChild(nullptr, [] {
    GetEngine();
    setenv("DEJA_OUT", "/somewhere", 1);
    return GetEngine() == nullptr && g_made == 0;
  }));
}

TEST(EngineTest, MayRefuseToBeMade) {
  EXPECT_TRUE(InChild("DEJA_OUT", [] {
    g_make_null = true;
    return GetEngine() == nullptr && GetEngine() == nullptr && g_made == 1;
  }));
}

TEST(EngineTest, IsNotSeenWhileItIsBeingMade) {
  EXPECT_TRUE(
      InChild("DEJA_OUT", [] { return GetEngine() != nullptr && !g_saw_itself && g_was_inside; }));
}

TEST(EngineTest, IsNotMadeByDejasOwnCalls) {
  EXPECT_TRUE(InChild("DEJA_OUT", [] {
    {
      Guard guard;
      if (GetEngine() != nullptr || g_made != 0) return false;
    }
    return GetEngine() != nullptr;
  }));
}

TEST(EngineTest, IsMadeOnceByManyThreads) {
  EXPECT_TRUE(InChild("DEJA_OUT", [] {
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) threads.emplace_back([&] { got += IsTheEngine(GetEngine()); });
    for (std::thread& thread : threads) thread.join();
    return got == 16 && g_made == 1;
  }));
}

TEST(EngineTest, KeepsErrno) {
  EXPECT_TRUE(InChild("DEJA_OUT", [] {
    errno = 55;
    GetEngine();
    return errno == 55;
  }));
}

TEST(EngineTest, HearsOnceOfEachChild) {
  for (bool by_clone : {false, true}) {
    EXPECT_TRUE(InChild("DEJA_OUT", [by_clone] {
      GetEngine();
      g_was_inside = false;
      pid_t child = by_clone ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
      if (child == 0) {
        GetEngine();
        GetEngine();
        _exit(g_children == 1 && g_was_inside && g_made == 1 ? 0 : 1);
      }
      int status = 1;
      waitpid(child, &status, 0);
      GetEngine();
      return status == 0 && g_children == 0;
    })) << by_clone;
  }
}

TEST(EngineTest, HearsOfGrandchildren) {
  EXPECT_TRUE(InChild("DEJA_OUT", [] {
    GetEngine();
    pid_t child = fork();
    if (child == 0) {
      GetEngine();
      pid_t grandchild = fork();
      if (grandchild == 0) {
        GetEngine();
        _exit(g_children == 2 ? 0 : 1);
      }
      int status = 1;
      waitpid(grandchild, &status, 0);
      _exit(status == 0 && g_children == 1 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
  }));
}

TEST(DriverLibrariesTest, ByTheirNames) {
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1.1",
        "libcuda.so.570.86.10", "/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/libnvidia-ptxjitcompiler.so.570.86.10", "/opt/cuda/lib64/libcupti.so.12"})
    EXPECT_TRUE(IsDriverLibrary(path)) << path;
  // The program's own, wherever they run.
  for (const char* path : {"", "/usr/local/cuda/lib64/libcudart.so.12", "libcublas.so.12",
                           "/usr/lib/libcudnn.so.9", "libnccl.so.2", "/libcuda.so.1/lib.so"})
    EXPECT_FALSE(IsDriverLibrary(path)) << path;
}

TEST(DriverLibrariesTest, HooksOfTheWholeProcessAreForDriversToo) {
  for (const char* name : {"fork", "waitpid", "execve", "sigaction", "dlsym", "_exit"})
    EXPECT_TRUE(IsForDriversToo(name)) << name;
  for (const char* name : {"clock_gettime", "getpid", "open", "pthread_create", "bind", "read", ""})
    EXPECT_FALSE(IsForDriversToo(name)) << name;
}

}  // namespace
}  // namespace deja::preload
