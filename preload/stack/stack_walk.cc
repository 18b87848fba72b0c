#include "preload/stack/stack_walk.h"

#include <errno.h>
#include <libunwind.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/stack/frame_rules.h"
#include "preload/stack/modules.h"

extern "C" void* __libc_stack_end;  // of the main thread; ld.so

namespace deja::preload {
namespace {

// Reading words of the thread's stack, and saying which were read.
class StackMemory {
 public:
  StackMemory(uint64_t sp, bool careful, WalkInputs* inputs) : start_(sp), inputs_(inputs) {
    if (careful) return;
    // glibc keeps the thread's control block at the upper end of its stack; the main thread's is
    // elsewhere, and ld.so knows where its stack ends. On any other stack every read is checked.
    constexpr uint64_t kLargestStack = uint64_t{1} << 30;
    auto thread_end = reinterpret_cast<uint64_t>(pthread_self());
    auto main_end = reinterpret_cast<uint64_t>(__libc_stack_end);
    uint64_t end = 0;
    if (sp < thread_end && thread_end - sp < kLargestStack) {
      end = thread_end;
    } else if (sp < main_end && main_end - sp < kLargestStack) {
      end = main_end;
    }
    low_ = sp;
    high_ = end;
  }

  bool Read(uint64_t address, uint64_t& value) const {
    if (!Peek(address, value)) return false;
    DependOn(address, value);
    return true;
  }
  // The same for a word of which it is not clear yet whether anything depends on it.
  bool Peek(uint64_t address, uint64_t& value) const {
    if (!IsKnown(address)) {
      if (inputs_ != nullptr) inputs_->complete = false;
      if (!Readable(address)) return false;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(address), 8);
    return true;
  }
  void DependOn(uint64_t address, uint64_t value) const {
    if (inputs_ == nullptr) return;
    const uint64_t offset = address - start_;
    if (inputs_->count == WalkInputs::kMaxWords || offset > UINT32_MAX) {
      inputs_->complete = false;
      return;
    }
    inputs_->offsets[inputs_->count] = static_cast<uint32_t>(offset);
    inputs_->values[inputs_->count++] = value;
  }
  void DependOnStartsFp() const {
    if (inputs_ != nullptr) inputs_->uses_fp = true;
  }

 private:
  // The kernel copies the set before it finds out that `how` is nonsense.
  static bool Readable(uint64_t address) {
    if (address < 4096 || (address & 7) != 0) return false;
    const ErrnoKeeper keep;
    long rc = syscall(SYS_rt_sigprocmask, ~0L, address, nullptr, 8);
    return rc == 0 || errno != EFAULT;
  }
  [[nodiscard]] bool IsKnown(uint64_t address) const {
    return address >= low_ && address + 8 <= high_;
  }
  uint64_t low_ = 0;
  uint64_t high_ = 0;
  uint64_t start_;
  WalkInputs* inputs_;
};

// Rules by code address. The key is the address with the module generation above it; a slot that is
// being written has the key kBusy. A rule never changes for one key. So a reader that finds its key
// before and after the rule has the right one.
constexpr uint64_t kBusy = 1;
constexpr uint32_t kSlotBits = 13;

struct Slot {
  std::atomic<uint64_t> key{0};
  std::atomic<uint64_t> rule{0};
};
Slot g_slots[1u << kSlotBits];

FrameRule FreshRule(uint64_t lookup) {
  const Module* module = FindModule(lookup);
  return module != nullptr ? FindFrameRule(*module, lookup) : FrameRule{};
}

FrameRule RuleAt(uint64_t lookup, uint32_t generation) {
  uint64_t key = (lookup & 0xffffffffffffu) | static_cast<uint64_t>(generation & 0xffff) << 48;
  if (key <= kBusy || lookup >> 47 != 0) return FrameRule{};
  Slot& slot = g_slots[(lookup * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits)];
  uint64_t seen = slot.key.load(std::memory_order_acquire);
  if (seen == key) {
    uint64_t rule = slot.rule.load(std::memory_order_acquire);
    if (slot.key.load(std::memory_order_relaxed) == key) return FrameRule::Unpack(rule);
  }
  // Packed also when it is not remembered: what does not fit is complex either way.
  uint64_t packed = FreshRule(lookup).Pack();
  FrameRule rule = FrameRule::Unpack(packed);
  // An address outside all modules may be inside one that is loaded later.
  if (rule.module == 0) return rule;
  if (seen != kBusy && slot.key.compare_exchange_strong(seen, kBusy, std::memory_order_acquire)) {
    slot.rule.store(packed, std::memory_order_release);
    slot.key.store(key, std::memory_order_release);
  }
  return rule;
}

// False when `frames` is full.
bool AddFrame(uint64_t pc, uint32_t module, Frames& frames) {
  if (module == 0) return frames.push_back({0, pc});
  const Module& m = ModuleAt(module);
  return m.own || frames.push_back({module, pc - m.base});
}

#if defined(__x86_64__)

// True if `pc` follows an indirect call: then the function that was called is what does not exist.
bool FollowsIndirectCall(uint64_t pc) {
  const auto* code = reinterpret_cast<const uint8_t*>(pc);
  auto is_call = [code](int back) {  // FF /2
    return code[-back] == 0xff && (code[-back + 1] & 0x38) == 0x10;
  };
  return is_call(2) || is_call(3) || is_call(4) || is_call(6) || is_call(7);
}

// The program called or jumped to an address where no code is. If it was a call, the caller's
// address is on top of the stack.
bool StepFromNowhere(const StackMemory& memory, Registers& r) {
  uint64_t caller = 0;
  if (!memory.Read(r.sp, caller)) return false;
  const Module* module = FindModule(caller);
  if (module == nullptr || caller - module->start < 8 || !FollowsIndirectCall(caller)) return false;
  r.pc = caller;
  r.sp += 8;
  return true;
}

// A frame's registers, and where its fp came from. The fp of most frames is never looked at.
struct Frame : Registers {
  explicit Frame(const Registers& start) : Registers(start) {}
  static constexpr uint64_t kStart = 0;
  uint64_t fp_at = kStart;
  bool fp_used = false;

  uint64_t UseFp(const StackMemory& memory) {
    if (!fp_used && fp_at == kStart) memory.DependOnStartsFp();
    if (!fp_used && fp_at != kStart) memory.DependOn(fp_at, fp);
    fp_used = true;
    return fp;
  }
  bool LoadFp(const StackMemory& memory, uint64_t address) {
    fp_at = address;
    fp_used = false;
    return memory.Peek(address, fp);
  }
};

bool StepOverSignal(const StackMemory& memory, Frame& r) {
  auto at = [&](int reg) {
    return r.sp + offsetof(ucontext_t, uc_mcontext.gregs) +
           sizeof(greg_t) * static_cast<size_t>(reg);
  };
  Frame next = r;
  if (!memory.Read(at(REG_RIP), next.pc) || !memory.Read(at(REG_RSP), next.sp) ||
      !next.LoadFp(memory, at(REG_RBP)))
    return false;
  r = next;
  return true;
}

bool Step(const StackMemory& memory, const FrameRule& rule, Frame& r) {
  uint64_t cfa = 0;
  auto offset = static_cast<uint64_t>(static_cast<int64_t>(rule.cfa_offset));
  switch (rule.cfa_from) {
    case CfaFrom::kSp:
      cfa = r.sp + offset;
      break;
    case CfaFrom::kFp:
      cfa = r.UseFp(memory) + offset;
      break;
    case CfaFrom::kAtFp:
      if (!memory.Read(r.UseFp(memory) + offset, cfa)) return false;
      break;
  }
  // A caller's frame is above its callee's.
  if (cfa <= r.sp || (cfa & 7) != 0) return false;
  auto fp_offset = static_cast<uint64_t>(static_cast<int64_t>(rule.fp_offset));
  Frame next = r;
  next.sp = cfa;
  if (!memory.Read(cfa - 8, next.pc)) return false;
  if (rule.fp_from == FpFrom::kAtCfa && !next.LoadFp(memory, cfa + fp_offset)) return false;
  if (rule.fp_from == FpFrom::kAtFp && !next.LoadFp(memory, next.UseFp(memory) + fp_offset))
    return false;
  r = next;
  return true;
}

#endif

}  // namespace

#if defined(__x86_64__)

bool WalkByRules(const Registers& start, bool exact, bool careful, Frames& frames,
                 WalkInputs* inputs) {
  constexpr int kMaxSteps = 1024;  // own frames and the like are stepped over, but not without end
  uint32_t generation = ModuleGeneration();
  Frame r(start);
  StackMemory memory(r.sp, careful, inputs);
  for (int i = 0; i < kMaxSteps; ++i) {
    if (r.pc == 0 && i != 0) return true;
    FrameRule rule = RuleAt(exact ? r.pc : r.pc - 1, generation);
    if (inputs != nullptr && (rule.module == 0 || !ModuleAt(rule.module).lasting))
      inputs->lasting = false;
    if (rule.kind == FrameKind::kComplex) return false;
    if (!AddFrame(r.pc, rule.module, frames)) return true;
    if (rule.module == 0 && i == 0 && exact) {
      if (!StepFromNowhere(memory, r)) return true;
      exact = false;
      continue;
    }
    if (rule.kind == FrameKind::kEnd) return true;
    exact = rule.kind == FrameKind::kSignal;
    if (exact) {
      if (!StepOverSignal(memory, r)) return true;
    } else if (!Step(memory, rule, r)) {
      return true;
    }
  }
  return true;
}

#else

bool WalkByRules(const Registers&, bool, bool, Frames&, WalkInputs*) {
  return false;
}

#endif

void WalkByLibunwind(const void* ucontext, Frames& frames) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
#if defined(__x86_64__)
  if (ucontext != nullptr) {
    // Registers in the order of libunwind's Registers_x86_64.
    const greg_t* g = static_cast<const ucontext_t*>(ucontext)->uc_mcontext.gregs;
    const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RDI, REG_RSI,
                         REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                         REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    auto* words = reinterpret_cast<uint64_t*>(&context);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i)
      words[i] = static_cast<uint64_t>(g[order[i]]);
  }
#else
  (void)ucontext;
#endif
  if (unw_init_local(&cursor, &context) != UNW_ESUCCESS) return;
  bool exact = ucontext != nullptr;
  do {
    unw_word_t pc = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &pc) != UNW_ESUCCESS || pc == 0) return;
    const Module* module = FindModule(exact ? pc : pc - 1);
    if (!AddFrame(pc, module != nullptr ? module->number : 0, frames)) return;
    exact = unw_is_signal_frame(&cursor) > 0;
  } while (unw_step(&cursor) > 0);
}

void WalkFrom(const Registers& start, Frames& frames, WalkInputs& inputs) {
  if (WalkByRules(start, true, false, frames, &inputs)) return;
  frames.clear();
  inputs.complete = false;
  WalkByLibunwind(nullptr, frames);
}

void WalkFromSignal(const void* ucontext, Frames& frames) {
#if defined(__x86_64__)
  const greg_t* g = static_cast<const ucontext_t*>(ucontext)->uc_mcontext.gregs;
  Registers start{static_cast<uint64_t>(g[REG_RIP]), static_cast<uint64_t>(g[REG_RSP]),
                  static_cast<uint64_t>(g[REG_RBP])};
  if (WalkByRules(start, true, true, frames)) return;
  frames.clear();
#endif
  WalkByLibunwind(ucontext, frames);
}

}  // namespace deja::preload
