// FrameRule: how to get from one frame to its caller at one code address, in eight bytes.
//
// Derived from the call frame information (.eh_frame) of the module. Covers what compilers emit for
// functions; anything else (hand-written DWARF expressions) is kComplex and left to libunwind.
// x86-64 only; elsewhere every address is kComplex. Async-signal-safe; no allocation; reads only
// the mapped unwind tables.
#ifndef DEJA_PRELOAD_STACK_FRAME_RULES_H_
#define DEJA_PRELOAD_STACK_FRAME_RULES_H_

#include <cstdint>

#include "preload/stack/modules.h"

namespace deja::preload {

enum class FrameKind : uint8_t {
  kNormal,   // return address just below the CFA
  kEnd,      // outermost frame, or an address without unwind information
  kSignal,   // the trampoline below a signal handler: the registers are in the signal context
  kComplex,  // ask libunwind
};

enum class CfaFrom : uint8_t { kSp, kFp, kAtFp };      // sp+x, fp+x, *(fp+x)
enum class FpFrom : uint8_t { kSame, kAtCfa, kAtFp };  // unchanged, *(CFA+x), *(fp+x)

struct FrameRule {
  FrameKind kind = FrameKind::kEnd;
  CfaFrom cfa_from = CfaFrom::kSp;
  FpFrom fp_from = FpFrom::kSame;
  int32_t cfa_offset = 0;
  int32_t fp_offset = 0;
  uint32_t module = 0;  // number of the module that contains the address; 0: none

  // Complex when an offset does not fit.
  [[nodiscard]] uint64_t Pack() const;
  static FrameRule Unpack(uint64_t packed);
};

// The rule for a frame that is about to execute, or was interrupted at, `pc`. For a return address
// ask for the byte before it.
FrameRule FindFrameRule(const Module& module, uint64_t pc);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_STACK_FRAME_RULES_H_
