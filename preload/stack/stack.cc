#include "preload/stack/stack.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "common/runtime/spin_lock.h"
#include "digest/digest.h"
#include "preload/stack/modules.h"
#include "preload/stack/python_stack.h"
#include "preload/stack/stack_memo.h"
#include "preload/stack/stack_walk.h"

namespace deja::preload {
namespace {

// Known stacks by the hash of their frames. A slot is free while its id is 0; ids are published
// after the sink has the definition. Filled to three quarters at most, so that probing ends.
constexpr uint32_t kSlots = 1u << 15;
constexpr uint32_t kMaxStacks = kSlots / 4 * 3;

struct KnownStack {
  std::atomic<StackId> id{0};
  Hash128 hash;
};

KnownStack g_stacks[kSlots];
std::atomic<uint32_t> g_stack_count{0};
SpinLock g_stacks_lock;

Hash128 HashOf(const Frames& frames) {
  uint64_t words[format::kMaxStackFrames];
  size_t n = 0;
  for (const format::StackFrame& f : frames)
    words[n++] = static_cast<uint64_t>(f.module) << 50 ^ f.offset;
  return digest::HashBytes(std::as_bytes(std::span(words, n)));
}

// The slot of `hash`, or the free one where it belongs.
KnownStack& SlotOf(const Hash128& hash) {
  for (uint64_t i = hash.Prefix();; ++i) {
    KnownStack& slot = g_stacks[i % kSlots];
    if (slot.id.load(std::memory_order_acquire) == 0 || slot.hash == hash) return slot;
  }
}

void ReportModulesLocked(StackSink& sink) {
  uint32_t count = ModuleCount();
  for (uint32_t number = 1; number <= count; ++number) {
    Module& m = ModuleAt(number);
    if (m.reported.exchange(true, std::memory_order_relaxed)) continue;
    format::ModuleLoaded event;
    event.module = number;
    event.path = m.path;
    event.build_id = {reinterpret_cast<const char*>(m.build_id), m.build_id_size};
    event.base = m.base;
    event.end = m.end;
    sink.OnModule(event);
  }
  TellPythonModules(
      [](uint32_t module, std::string_view path, void* context) {
        format::ModuleLoaded event;
        event.module = module;
        event.path = path;
        static_cast<StackSink*>(context)->OnModule(event);
      },
      &sink);
}

StackId Define(const Frames& frames, const Hash128& hash, StackSink& sink) {
  g_stacks_lock.Lock();
  KnownStack& slot = SlotOf(hash);
  StackId id = slot.id.load(std::memory_order_relaxed);
  uint32_t count = g_stack_count.load(std::memory_order_relaxed);
  if (id == 0 && count < kMaxStacks) {
    ReportModulesLocked(sink);
    format::StackDefined event;
    id = event.stack = count + 1;
    event.frames = frames;
    sink.OnStack(event);
    slot.hash = hash;
    slot.id.store(id, std::memory_order_release);
    g_stack_count.store(count + 1, std::memory_order_relaxed);
  }
  g_stacks_lock.Unlock();
  return id;
}

void PutInFront(std::span<const format::StackFrame> python, Frames& frames) {
  if (python.empty()) return;
  const Frames native = frames;
  frames.clear();
  for (const format::StackFrame& frame : python) frames.push_back(frame);
  for (const format::StackFrame& frame : native) frames.push_back(frame);
}

__attribute__((noinline)) StackId CaptureByWalking(const Registers& here, uint32_t python,
                                                   StackSink& sink) {
  const bool up_to_date = RefreshModules();
  const uint32_t version = ModuleVersion();
  Frames frames;
  WalkInputs inputs;
  WalkFrom(here, frames, inputs);
  PutInFront(PythonStack(python), frames);
  if (frames.empty()) return 0;
  Hash128 hash = HashOf(frames);
  StackId id = SlotOf(hash).id.load(std::memory_order_acquire);
  if (id == 0) id = Define(frames, hash, sink);
  if (up_to_date && inputs.complete && id != 0) RememberStack(here, python, version, inputs, id);
  return id;
}

}  // namespace

StackId CaptureStack(StackSink& sink) {
  const Registers here = Here();
  const uint32_t python = FindPythonStack();
  StackId id = RecallStack(here, python);
  if (id == 0) id = CaptureByWalking(here, python, sink);
  // No call of those may be the last thing here: this frame is the one that they start from.
  asm volatile("" : "+r"(id));
  return id;
}

void CaptureStackInSignal(void* ucontext, Frames& frames) {
  frames.clear();
  RefreshModules();
  WalkFromSignal(ucontext, frames);
}

void AddPythonFramesInSignal(Frames& frames) {
  PythonFrames python;
  PythonFramesInSignal(python);
  if (python.empty()) return;
  const Frames native = frames;
  frames.clear();
  const size_t room = Frames::kCapacity - std::min(python.size(), Frames::kCapacity / 2);
  for (size_t i = 0; i < std::min(native.size(), room); ++i) frames.push_back(native[i]);
  for (const format::StackFrame& frame : python) frames.push_back(frame);
}

void ReportModules(StackSink& sink) {
  RefreshModules();
  // In a signal handler this thread itself may hold the lock; then all but the newest are reported.
  if (!g_stacks_lock.LockBriefly()) return;
  ReportModulesLocked(sink);
  g_stacks_lock.Unlock();
}

void ResetStacksInChild() {
  ForgetStacks();
  for (KnownStack& slot : g_stacks) slot.id.store(0, std::memory_order_relaxed);
  g_stack_count.store(0, std::memory_order_relaxed);
  ResetModulesInChild();
  ResetPythonStacksInChild();
}

}  // namespace deja::preload
