// That a stack which is recalled is the one that a walk would find, whatever the program did in
// between.
#include "preload/stack/stack_memo.h"

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>

#include "preload/stack/python_stack.h"
#include "tests/unit/preload/stack/stack_test_support.h"

namespace deja::preload {
namespace {

using Then = std::function<void()>;

uint64_t g_checked = 0;

// The addresses behind those of `function`, the innermost that has that name.
std::vector<uint64_t> Above(const Frames& frames, const std::string& function) {
  std::vector<uint64_t> pcs = Pcs(frames);
  size_t i = 0;
  while (i < pcs.size() && FunctionAt(pcs[i] - 1) != function) ++i;
  pcs.erase(pcs.begin(), pcs.begin() + static_cast<ptrdiff_t>(std::min(i + 1, pcs.size())));
  return pcs;
}

}  // namespace

// The stack as the trace gets it, twice, and as a walk finds it, which remembers nothing.
TEST_FUNCTION void deja_test_check() {
  Frames reference;
  WalkInputs unused;
  RefreshModules();
  WalkFrom(Here(), reference, unused);
  const std::vector<uint64_t> wanted = Above(reference, "deja_test_check");
  for (int i = 0; i < 2; ++i) {
    const std::vector<uint64_t> got = Above(Captured(), "deja_test_check");
    ASSERT_GT(got.size(), 2u);
    // They have room for this many frames, and their own functions take some of it.
    const size_t n = std::min(std::max(got.size(), wanted.size()), size_t{50});
    for (size_t k = 0; k < n; ++k) {
      ASSERT_LT(k, std::min(got.size(), wanted.size()))
          << "ends early: " << FunctionAt((k < got.size() ? got : wanted)[k] - 1);
      ASSERT_EQ(got[k], wanted[k])
          << "frame " << k << ": " << FunctionAt(got[k] - 1) << ", " << FunctionAt(wanted[k] - 1);
    }
    ++g_checked;
  }
}

TEST_FUNCTION int deja_test_memo_plain(const Then& then) {
  then();
  asm volatile("" ::: "memory");
  return 1;
}

// Two calls with the same frame below and above. What differs on both sides of them keeps compilers
// from making one of them.
TEST_FUNCTION int deja_test_memo_two_sites(bool first, const Then& then) {
  int n = 0;
  if (first) {
    asm volatile("nop" ::: "memory");
    n += deja_test_memo_plain(then);
    asm volatile("nop" ::: "memory");
  } else {
    asm volatile("nop; nop" ::: "memory");
    n += deja_test_memo_plain(then);
    asm volatile("nop; nop" ::: "memory");
  }
  return n;
}

TEST_FUNCTION int deja_test_memo_alloca(int bytes, const Then& then) {
  volatile char* room = static_cast<char*>(alloca(static_cast<size_t>(bytes)));
  room[0] = 1;
  then();
  return room[0];
}

TEST_FUNCTION int deja_test_memo_realigned(const Then& then) {
  alignas(128) volatile char room[256];
  room[0] = 1;
  then();
  return room[0];
}

#if defined(__clang__)
#define DEJA_TAIL_CALLS
#else
#define DEJA_TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#endif
TEST_FUNCTION DEJA_TAIL_CALLS int deja_test_memo_tail(const Then& then) {
  return deja_test_memo_plain(then);
}

namespace {

// One more frame of a random kind, and at last `then`.
void RandomPath(std::mt19937& rng, int depth, const Then& then) {
  if (depth == 0) return then();
  const Then inner = [&rng, depth, &then] { RandomPath(rng, depth - 1, then); };
  switch (rng() % 7) {
    case 0:
      deja_test_memo_plain(inner);
      return;
    case 1:
      deja_test_memo_two_sites(rng() % 2 == 0, inner);
      return;
    case 2:
      deja_test_memo_alloca(static_cast<int>(16 + 16 * (rng() % 3)), inner);
      return;
    case 3:
      deja_test_memo_realigned(inner);
      return;
    case 4:
      deja_test_memo_tail(inner);
      return;
    case 5: {
      static thread_local const Then* current;
      const Then* before = current;
      current = &inner;
      int two[2] = {2, 1};
      std::qsort(two, 2, sizeof two[0], [](const void* a, const void* b) {
        (*current)();
        return *static_cast<const int*>(a) - *static_cast<const int*>(b);
      });
      current = before;
      return;
    }
    default: {
      jmp_buf back;
      if (setjmp(back) == 0) deja_test_memo_plain([&back] { longjmp(back, 1); });
      deja_test_memo_plain(inner);
      return;
    }
  }
}

TEST(StackMemo, APathThatWasWalkedIsRecalled) {
  StackId ids[3] = {};
  for (StackId& id : ids) {
    const Registers here = Here();
    id = RecallStack(here, 0);
    if (id != 0) continue;
    RefreshModules();
    const uint32_t version = ModuleVersion();
    Frames frames;
    WalkInputs inputs;
    WalkFrom(here, frames, inputs);
    if (!inputs.complete) GTEST_SKIP() << "no walk by rules here";
    EXPECT_GT(inputs.count, 3u);
    RememberStack(here, 0, version, inputs, 77);
  }
  EXPECT_EQ(ids[0], 0u);
  EXPECT_EQ(ids[1], 77u);
  EXPECT_EQ(ids[2], 77u);
}

TEST(StackMemo, RandomPathsAreSeenAsTheyAre) {
  std::mt19937 rng(1);
  g_checked = 0;
  for (int i = 0; i < 3000 && !::testing::Test::HasFailure(); ++i)
    RandomPath(rng, static_cast<int>(rng() % 6), &deja_test_check);
  EXPECT_GE(g_checked, 3000u);
}

TEST(StackMemo, CallersThatDifferFurtherOutAreDistinguished) {
  std::vector<StackId> ids;
  for (int i = 0; i < 12; ++i) {
    deja_test_memo_two_sites(i % 3 == 0, [&ids] { ids.push_back(CaptureStack(Sink())); });
  }
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], ids[i % 3 == 0 ? 0 : 1]) << i;
  EXPECT_NE(ids[0], ids[1]);
}

TEST(StackMemo, ThePythonStackIsPartOfIt) {
  uint32_t python[3] = {};
  for (uint64_t line = 1; line < 3; ++line) {
    const format::StackFrame frames[] = {{PythonModule("step", "/x/memo.py"), line}};
    python[line] = InternPythonStack(frames);
  }
  for (int i = 0; i < 9; ++i) {
    EnterPythonStack(python[i % 3]);
    const StackId id = CaptureStack(Sink());
    EnterPythonStack(0);
    const format::StackFrame& first = Sink().stacks[id][0];
    EXPECT_EQ(first.module >= kFirstPythonModule, i % 3 != 0) << i;
    if (i % 3 != 0) {
      EXPECT_EQ(first.offset, static_cast<uint64_t>(i % 3));
    }
  }
}

TEST(StackMemo, TheFrameOfASignalIsPartOfIt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the handler allocates";
#endif
  static char alternate[64 << 10];
  for (bool on_alternate : {false, true}) {
    stack_t stack{};
    stack.ss_sp = alternate;
    stack.ss_size = sizeof alternate;
    ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
    struct sigaction action {};
    struct sigaction before {};
    action.sa_handler = [](int) { deja_test_check(); };
    action.sa_flags = on_alternate ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &action, &before);
    g_checked = 0;
    for (int i = 0; i < 8; ++i) {
      deja_test_memo_two_sites(i % 2 == 0, [] { raise(SIGUSR1); });
      deja_test_memo_alloca(16 + 16 * (i % 2), [] { raise(SIGUSR1); });
    }
    EXPECT_EQ(g_checked, 32u);
    sigaction(SIGUSR1, &before, nullptr);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
  }
}

TEST(StackMemo, CoroutinesTakeTurnsOnTheirStacks) {
  static ucontext_t home;
  static ucontext_t others[2];
  // One on the heap, and one inside of this thread's own stack. They go on at other depths each
  // time.
  std::vector<char> heap(256 << 10);
  auto* own = static_cast<char*>(alloca(256 << 10));
  g_checked = 0;
  for (int i = 0; i < 2; ++i) {
    getcontext(&others[i]);
    others[i].uc_stack.ss_sp = i == 0 ? heap.data() : own;
    others[i].uc_stack.ss_size = 256 << 10;
    others[i].uc_link = &home;
  }
  static int turn;
  auto body = [](int which) {
    for (int k = 0; k < 6; ++k) {
      deja_test_memo_two_sites((k + which) % 2 == 0, [which] {
        deja_test_check();
        swapcontext(&others[which], &home);
        deja_test_check();
      });
    }
  };
  static void (*run)(int) = body;
  makecontext(
      &others[0], [] { run(0); }, 0);
  makecontext(
      &others[1], [] { run(1); }, 0);
  for (turn = 0; turn < 12; ++turn) {
    swapcontext(&home, &others[turn % 2]);
    deja_test_memo_plain(&deja_test_check);
  }
  EXPECT_GE(g_checked, 36u);
}

#if defined(__x86_64__)
// Code without a file, which calls what it is given: at other places, and where other code was.
TEST(StackMemo, CodeThatTheProgramMade) {
  const unsigned char code[] = {0x53,              // push rbx
                                0xff, 0xd7,        // call rdi
                                0x90, 0x5b, 0xc3,  // nop; pop rbx; ret
                                0x53, 0xff, 0xd7, 0x5b, 0xc3};
  constexpr size_t kSecond = 6;
  for (int round = 0; round < 3; ++round) {
    void* page =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    std::copy_n(code, sizeof code, static_cast<unsigned char*>(page));
    const auto base = reinterpret_cast<uint64_t>(page);
    for (int i = 0; i < 6; ++i) {
      static Frames frames;
      const uint64_t entry = base + (i % 2 == 0 ? 0 : kSecond);
      reinterpret_cast<void (*)(void (*)())>(entry)([] { frames = Captured(); });
      ASSERT_FALSE(frames.empty());
      EXPECT_EQ(frames.back().module, 0u);
      EXPECT_EQ(frames.back().offset, entry + 3) << "behind its call";
    }
    munmap(page, 4096);
  }
}
#endif

TEST(StackMemo, ThreadsComeAndGo) {
  g_checked = 0;
  for (int i = 0; i < 40; ++i) {
    std::thread([i] {
      std::mt19937 rng(static_cast<uint32_t>(i % 5));
      for (int k = 0; k < 10; ++k) RandomPath(rng, 3, &deja_test_check);
      EndThreadStacks();
    }).join();
  }
  EXPECT_GE(g_checked, 400u);
}

}  // namespace
}  // namespace deja::preload
