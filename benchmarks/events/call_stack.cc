// What it costs to know where a call comes from, where that was seen before: the stack that each
// recorded call has, beside what other unwinders take, in turns. Two programs are made of this, one
// compiled with frame pointers; README.md has the figures.
//
//     call_stack_omit-frame-pointer [ROUNDS]
#include <dlfcn.h>
#include <execinfo.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "preload/stack/modules.h"
#include "preload/stack/stack.h"
#include "preload/stack/stack_walk.h"

namespace {

using namespace deja::preload;

struct NullSink : StackSink {
  void OnModule(const deja::format::ModuleLoaded&) override {}
  void OnStack(const deja::format::StackDefined&) override {}
};
NullSink g_sink;

template <typename T>
void Use(T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

double ThreadNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Short enough to be left alone by other work now and then.
constexpr double kBatchNs = 40000;

// Calls itself, and at the end `one` again and again: nanoseconds a call.
__attribute__((noinline)) double AtDepth(int depth, int calls, void (*one)()) {
  if (depth > 0) {
    const double ns = AtDepth(depth - 1, calls, one);
    asm volatile("" ::: "memory");
    return ns;
  }
  const double begin = ThreadNs();
  for (int i = 0; i < calls; ++i) one();
  return (ThreadNs() - begin) / calls;
}

void Deja() {
  deja::StackId id = CaptureStack(g_sink);
  Use(id);
}

// A path through a library that could be unloaded: the loader is asked as well.
void DejaUnloadable() {
  bool same = RefreshModules();
  Use(same);
  Deja();
}

void DejaWalk() {
  Frames frames;
  WalkInputs inputs;
  WalkFrom(Here(), frames, inputs);
  Use(frames);
}

void LlvmLibunwind() {
  Frames frames;
  WalkByLibunwind(nullptr, frames);
  Use(frames);
}

// The signature of backtrace(), which nongnu libunwind's has, too.
using Backtrace = int(void** frames, int most);
Backtrace* g_nongnu = nullptr;

void NongnuLibunwind() {
  void* frames[deja::format::kMaxStackFrames];
  g_nongnu(frames, deja::format::kMaxStackFrames);
  Use(frames);
}

void CLibrary() {
  void* frames[deja::format::kMaxStackFrames];
  backtrace(frames, deja::format::kMaxStackFrames);
  Use(frames);
}

struct Row {
  const char* name;
  void (*one)();
  std::vector<double> took{};
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  RefreshModules();
  std::vector<Row> rows = {{"Deja, a path that is known", &Deja},
                           {"the same through a library that was opened", &DejaUnloadable},
                           {"Deja, walking", &DejaWalk},
                           {"backtrace of the C library", &CLibrary},
                           {"LLVM libunwind", &LlvmLibunwind}};
  if (void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL)) {
    g_nongnu = reinterpret_cast<Backtrace*>(dlsym(library, "unw_backtrace"));
    if (g_nongnu != nullptr) rows.push_back({"nongnu libunwind's unw_backtrace", &NongnuLibunwind});
  }
  std::printf("| | depth | least | median |\n| --- | --- | --- | --- |\n");
  for (int depth : {5, 10, 20}) {
    for (int round = -1; round < rounds; ++round) {
      for (Row& row : rows) {
        const double first = AtDepth(depth, 4, row.one);
        const int calls = std::max(4, static_cast<int>(kBatchNs / std::max(first, 1.0)));
        const double ns = AtDepth(depth, calls, row.one);
        if (round >= 0) row.took.push_back(ns);
      }
    }
    for (Row& row : rows) {
      std::sort(row.took.begin(), row.took.end());
      if (!row.took.empty())
        std::printf("| %s | %d | %.0f ns | %.0f ns |\n", row.name, depth, row.took.front(),
                    row.took[row.took.size() / 2]);
      row.took.clear();
    }
  }
  return 0;
}
