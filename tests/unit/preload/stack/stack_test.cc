#include "preload/stack/stack.h"

#include <alloca.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "preload/stack/modules.h"
#include "preload/stack/python_stack.h"
#include "preload/stack/stack_walk.h"
#include "tests/unit/preload/stack/stack_test_support.h"

namespace deja::preload {
namespace {

size_t CountOf(const Frames& frames, const std::string& function) {
  size_t n = 0;
  for (uint64_t pc : Pcs(frames)) n += FunctionAt(pc - 1) == function;
  return n;
}

}  // namespace

// Frames of both ways of walking, taken in one function. Its own frame differs (two calls).
TEST_FUNCTION void deja_test_expect_same(const char* what) {
  RefreshModules();
  Frames rules;
  WalkInputs inputs;
  WalkFrom(Here(), rules, inputs);
  Frames reference;
  WalkByLibunwind(nullptr, reference);
  std::vector<uint64_t> a = Pcs(rules);
  std::vector<uint64_t> b = Pcs(reference);
  // From the outside in: everything but the walking functions themselves and this one.
  auto self = [](const std::vector<uint64_t>& pcs) {
    size_t i = 0;
    while (i < pcs.size() &&
           FunctionAt(pcs[i] - 1).find("deja_test_expect_same") == std::string::npos)
      ++i;
    return std::vector<uint64_t>(pcs.begin() + static_cast<ptrdiff_t>(std::min(i + 1, pcs.size())),
                                 pcs.end());
  };
  a = self(a);
  b = self(b);
  size_t n = std::min(a.size(), b.size());
  EXPECT_TRUE(a.size() == b.size() || std::min(a.size(), b.size()) > 50)
      << what << ": " << a.size() << " " << b.size();
  ASSERT_GT(n, 3u) << what;
  for (size_t i = 0; i < n; ++i)
    EXPECT_EQ(a[i], b[i]) << what << ": frame " << i << " " << FunctionAt(b[i]);
}

TEST_FUNCTION void deja_test_recurse(int depth, Frames& frames) {
  if (depth == 0) {
    frames = Captured();
  } else {
    deja_test_recurse(depth - 1, frames);
  }
  asm volatile("" ::: "memory");
}

Frames CapturedAtDepth(int depth) {
  Frames frames;
  deja_test_recurse(depth, frames);
  return frames;
}

TEST_FUNCTION int deja_test_alloca(int bytes, const std::function<void()>& then) {
  volatile char* room = static_cast<char*>(alloca(static_cast<size_t>(bytes)));
  room[0] = 1;
  then();
  return room[0];
}

TEST_FUNCTION int deja_test_realigned(const std::function<void()>& then) {
  alignas(128) volatile char room[256];
  room[0] = 1;
  then();
  return room[0];
}

TEST_FUNCTION int deja_test_realigned_alloca(int bytes, const std::function<void()>& then) {
  alignas(64) volatile char room[64];
  volatile char* more = static_cast<char*>(alloca(static_cast<size_t>(bytes)));
  room[0] = 1;
  more[0] = 1;
  then();
  return room[0] + more[0];
}

namespace {

TEST(Stack, RecursionIsWalkedFrameByFrame) {
  for (int depth : {0, 1, 2, 5, 20}) {
    Frames frames = CapturedAtDepth(depth);
    EXPECT_EQ(CountOf(frames, "deja_test_recurse"), static_cast<size_t>(depth) + 1);
    EXPECT_GE(CountOf(frames, "main"), 1u);
  }
}

TEST(Stack, DeepStacksKeepTheInnermostFrames) {
  Frames frames = CapturedAtDepth(500);
  EXPECT_EQ(frames.size(), format::kMaxStackFrames);
  EXPECT_EQ(CountOf(frames, "main"), 0u);
}

TEST(Stack, TheSamePathHasTheSameNumberAndAnotherPathAnother) {
  std::vector<StackId> ids;
  ids.reserve(3);
  for (int i = 0; i < 3; ++i) ids.push_back(CaptureStack(Sink()));
  StackId elsewhere = CaptureStack(Sink());
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[1], ids[2]);
  EXPECT_NE(ids[0], elsewhere);
}

TEST(Stack, FramesThatFindTheirCallerInUnusualWays) {
  auto check = [] { deja_test_expect_same("inner"); };
  deja_test_expect_same("plain");
  for (int bytes : {16, 160, 4000, 100000}) deja_test_alloca(bytes, check);
  deja_test_realigned(check);
  for (int bytes : {16, 4000}) deja_test_realigned_alloca(bytes, check);
  deja_test_realigned([&] { deja_test_alloca(32, [&] { deja_test_realigned(check); }); });
}

int CompareAndLook(const void* a, const void* b) {
  deja_test_expect_same("from qsort");
  return std::memcmp(a, b, 1);
}

TEST(Stack, ThroughTheCLibrary) {
  char letters[] = "hgfedcba";
  qsort(letters, 8, 1, &CompareAndLook);
  EXPECT_STREQ(letters, "abcdefgh");
}

TEST(Stack, AFrameThatMovedItsStackPointerIsNotMistakenForThePreviousOne) {
  // The same call with another alloca leaves the old return address where it was.
  std::vector<Frames> seen;
  std::vector<int> sizes = {64, 1024, 64, 512, 64};
  asm volatile("" : : "r"(sizes.data()) : "memory");  // one call in a loop, not five calls
#if defined(__clang__)
#pragma clang loop unroll(disable)
#endif
  for (int bytes : sizes) deja_test_alloca(bytes, [&] { seen.push_back(Captured()); });
  for (const Frames& f : seen) {
    EXPECT_EQ(Pcs(f), Pcs(seen[0]));
    EXPECT_EQ(CountOf(f, "deja_test_alloca"), 1u);
  }
}

TEST(Stack, ManyThreadsAgree) {
  constexpr int kThreads = 8;
  std::vector<std::vector<StackId>> ids(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&ids, t] {
      for (int i = 0; i < 2000; ++i) {
        StackId id = 0;
        std::function<void(int)> nest = [&](int depth) {
          if (depth == 0) {
            id = CaptureStack(Sink());
          } else {
            nest(depth - 1);
          }
        };
        nest(i % 7);
        ids[static_cast<size_t>(t)].push_back(id);
      }
    });
  }
  for (auto& t : threads) t.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[static_cast<size_t>(t)], ids[0]);
  std::vector<StackId> distinct = ids[0];
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_EQ(distinct.size(), 7u);
}

TEST(Stack, ModulesAreReportedWithTheirBuildIds) {
  (void)Captured();
  char self[512] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  bool found_self = false;
  bool found_libc = false;
  for (auto& [number, path] : Sink().modules) {
    const Module& m = ModuleAt(number);
    found_self |= path == self;
    if (path.find("libc.so.6") != std::string::npos) {
      found_libc = true;
      EXPECT_EQ(m.build_id_size, 20u);
      auto pc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "getppid"));
      EXPECT_GE(pc, m.start);
      EXPECT_LT(pc, m.end);
    }
  }
  EXPECT_TRUE(found_self);
  EXPECT_TRUE(found_libc);
}

TEST(Stack, LibrariesThatComeAndGoLater) {
  using Call = void (*)(void (*)());
  static std::vector<Frames> seen;
  seen.clear();
  for (int round = 0; round < 3; ++round) {
    void* handle = dlopen(DEJA_TEST_CALLER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    auto call = reinterpret_cast<Call>(dlsym(handle, "deja_test_call"));
    ASSERT_NE(call, nullptr);
    call([] {
      seen.push_back(Captured());
      deja_test_expect_same("through a library");
      EXPECT_EQ(CountOf(seen.back(), "deja_test_call"), 1u);
    });
    uint32_t module = 0;
    for (const format::StackFrame& f : seen.back())
      if (Sink().modules[f.module].find("stack_test_caller") != std::string::npos)
        module = f.module;
    ASSERT_NE(module, 0u);
    EXPECT_TRUE(ModuleAt(module).loaded.load());
    dlclose(handle);
    RefreshModules();
    EXPECT_FALSE(ModuleAt(module).loaded.load());
  }
}

TEST(Stack, OnACoroutinesStack) {
  static ucontext_t main_context, other;
  std::vector<char> room(256 << 10);
  getcontext(&other);
  other.uc_stack.ss_sp = room.data();
  other.uc_stack.ss_size = room.size();
  other.uc_link = &main_context;
  static Frames frames;
  makecontext(
      &other, [] { frames = CapturedAtDepth(3); }, 0);
  swapcontext(&main_context, &other);
  EXPECT_EQ(CountOf(frames, "deja_test_recurse"), 4u);
}

// What a signal handler saw.
Frames g_signal_frames;
Frames g_handler_frames;
sigjmp_buf g_back;
uint64_t g_fault_pc;

void OnSignal(int, siginfo_t*, void* context) {
  CaptureStackInSignal(context, g_signal_frames);
  g_handler_frames.clear();
  WalkInputs inputs;
  WalkFrom(Here(), g_handler_frames, inputs);
#if defined(__x86_64__)
  g_fault_pc = static_cast<uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#endif
  siglongjmp(g_back, 1);
}

// Runs `crash` with handlers installed, on an alternate stack or not.
void Caught(bool alternate, const std::function<void()>& crash) {
  static char alternate_stack[64 << 10];
  stack_t stack{};
  stack.ss_sp = alternate_stack;
  stack.ss_size = sizeof alternate_stack;
  ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
  struct sigaction action {};
  action.sa_sigaction = &OnSignal;
  action.sa_flags = SA_SIGINFO | (alternate ? SA_ONSTACK : 0);
  struct sigaction old_segv {
  }, old_ill{};
  sigaction(SIGSEGV, &action, &old_segv);
  sigaction(SIGILL, &action, &old_ill);
  g_signal_frames.clear();
  if (sigsetjmp(g_back, 1) == 0) crash();
  sigaction(SIGSEGV, &old_segv, nullptr);
  sigaction(SIGILL, &old_ill, nullptr);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

}  // namespace

// What goes wrong in these is meant to.
#define DEJA_UNCHECKED __attribute__((no_sanitize("undefined"), no_sanitize("address")))

TEST_FUNCTION DEJA_UNCHECKED int deja_test_fault(volatile int* p) {
  return *p + 1;
}

TEST_FUNCTION int deja_test_fault_deeper(volatile int* p) {
  int v = deja_test_fault(p);
  asm volatile("" ::: "memory");
  return v + 1;
}

TEST_FUNCTION DEJA_UNCHECKED void deja_test_call_pointer(void (*f)()) {
  asm volatile("" : "+r"(f));
  f();
  asm volatile("" ::: "memory");
}

namespace {

TEST(StackInSignal, FrameZeroIsTheFaultingInstruction) {
  for (bool alternate : {false, true}) {
    Caught(alternate, [] { deja_test_fault_deeper(nullptr); });
    std::vector<uint64_t> pcs = Pcs(g_signal_frames);
    ASSERT_GT(pcs.size(), 3u);
    EXPECT_EQ(pcs[0], g_fault_pc);
    EXPECT_EQ(FunctionAt(pcs[0]), "deja_test_fault");
    EXPECT_EQ(FunctionAt(pcs[1] - 1), "deja_test_fault_deeper");
    EXPECT_EQ(CountOf(g_signal_frames, "main"), 1u);
  }
}

TEST(StackInSignal, AWalkInTheHandlerGoesThroughToTheProgram) {
  for (bool alternate : {false, true}) {
    Caught(alternate, [] { deja_test_fault_deeper(nullptr); });
    EXPECT_EQ(CountOf(g_handler_frames, "deja_test_fault_deeper"), 1u);
    EXPECT_EQ(CountOf(g_handler_frames, "main"), 1u);
  }
}

TEST(StackInSignal, ACallToNowhereShowsItsCaller) {
  Caught(true, [] { deja_test_call_pointer(nullptr); });
  std::vector<uint64_t> pcs = Pcs(g_signal_frames);
  ASSERT_GT(pcs.size(), 2u);
  EXPECT_EQ(pcs[0], 0u);
  EXPECT_EQ(FunctionAt(pcs[1] - 1), "deja_test_call_pointer");
}

TEST(StackInSignal, GarbageOnTheStackEndsTheWalk) {
  for (int64_t fp :
       {int64_t{0}, int64_t{8}, int64_t{0x1238}, int64_t{-16}, int64_t{0x7ffffffff000}}) {
    ucontext_t context{};
#if defined(__x86_64__)
    context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(&deja_test_fault);
    context.uc_mcontext.gregs[REG_RSP] = fp + 0x1000;
    context.uc_mcontext.gregs[REG_RBP] = fp;
#endif
    CaptureStackInSignal(&context, g_signal_frames);
    EXPECT_EQ(g_signal_frames.size(), 1u);
  }
}

TEST(Stack, AForkChildReportsEverythingAgain) {
  (void)Captured();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ResetStacksInChild();
    Collector fresh;
    StackId id = CaptureStack(fresh);
    bool good = id == 1 && fresh.stacks.size() == 1 && !fresh.modules.empty();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Stack, PythonFramesStandInFront) {
  const uint32_t function = PythonModule("train_step", "/x/train.py");
  ASSERT_GE(function, kFirstPythonModule);
  EXPECT_EQ(PythonModule("train_step", "/x/train.py"), function);
  EXPECT_NE(PythonModule("train_step", "/x/other.py"), function);
  const format::StackFrame frames[] = {{function, 88}};
  const uint32_t stack = InternPythonStack(frames);
  EXPECT_EQ(InternPythonStack(frames), stack);
  EXPECT_EQ(EnterPythonStack(stack), 0u);
  const Frames captured = Captured();
  EXPECT_EQ(EnterPythonStack(0), stack);
  EXPECT_EQ(captured[0].module, function);
  EXPECT_EQ(captured[0].offset, 88u);
  EXPECT_GT(captured.size(), 1u);
  EXPECT_EQ(Sink().modules[function], "python:train_step:/x/train.py");
  EXPECT_NE(Captured()[0].module, function);
}

int g_interpreter = 0;

// What _Py_DumpTraceback writes; its second argument is what the other function returns.
void Dump(int fd, void* state) {
  EXPECT_EQ(state, &g_interpreter);
  const char text[] =
      "Stack (most recent call first):\n"
      "  File \"/x/train.py\", line 88 in train_step\n"
      "  File \"/x/train.py\", line 101 in <module>\n"
      "  ...\n";
  EXPECT_GT(write(fd, text, sizeof text - 1), 0);
}

TEST(Stack, TheInterpreterIsAskedWhereItIs) {
  PythonFrames frames;
  PythonFramesInSignal(frames);
  EXPECT_TRUE(frames.empty()) << "nobody has told who to ask";
  SetInterpreter(Dump, [] { return static_cast<void*>(&g_interpreter); });
  PythonFramesInSignal(frames);
  SetInterpreter(nullptr, nullptr);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_STREQ(PathOfPythonModule(frames[0].module), "python:train_step:/x/train.py");
  EXPECT_EQ(frames[0].offset, 88u);
  EXPECT_STREQ(PathOfPythonModule(frames[1].module), "python:<module>:/x/train.py");
  EXPECT_EQ(frames[1].offset, 101u);
}

}  // namespace
}  // namespace deja::preload
