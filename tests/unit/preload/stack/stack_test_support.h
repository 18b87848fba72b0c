// Shared by the tests of stacks. A sink gets stacks once a process, so there is one for all tests.
#ifndef DEJA_TESTS_UNIT_PRELOAD_STACK_STACK_TEST_SUPPORT_H_
#define DEJA_TESTS_UNIT_PRELOAD_STACK_STACK_TEST_SUPPORT_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "preload/stack/modules.h"
#include "preload/stack/stack.h"

// Exported, so that dladdr knows their names.
#define TEST_FUNCTION extern "C" __attribute__((noinline, visibility("default"), used))

namespace deja::preload {

struct Collector : StackSink {
  void OnModule(const format::ModuleLoaded& m) override { modules[m.module] = std::string(m.path); }
  void OnStack(const format::StackDefined& s) override {
    for (const format::StackFrame& f : s.frames) {
      EXPECT_TRUE(f.module == 0 || modules.count(f.module) == 1) << "told after the stack";
    }
    stacks[s.stack] = s.frames;
  }
  std::map<uint32_t, std::string> modules;
  std::map<uint32_t, Frames> stacks;
};

inline Collector& Sink() {
  static Collector collector;
  return collector;
}

inline Frames Captured() {
  StackId id = CaptureStack(Sink());
  EXPECT_NE(id, 0u);
  return Sink().stacks[id];
}

// Absolute addresses, for comparing.
inline std::vector<uint64_t> Pcs(const Frames& frames) {
  std::vector<uint64_t> pcs;
  for (const format::StackFrame& f : frames)
    pcs.push_back(f.offset + (f.module != 0 ? ModuleAt(f.module).base : 0));
  return pcs;
}

inline std::string FunctionAt(uint64_t pc) {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(pc), &info) != 0 && info.dli_sname != nullptr
             ? info.dli_sname
             : "?";
}

}  // namespace deja::preload

#endif  // DEJA_TESTS_UNIT_PRELOAD_STACK_STACK_TEST_SUPPORT_H_
