#include "preload/hooks/process/unrecorded_hooks.h"

#include "common/runtime/errno_keeper.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/process/guard.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(const char*)> real_chroot{"chroot"};

}  // namespace

void NoteUnrecorded(std::string_view what) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  const Guard guard;
  engine->life->OnNotRecorded(what, true, "");
}

}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int chroot(const char* path) noexcept {
  const int result = real_chroot(path);
  if (result == 0) NoteUnrecorded(kChroot);
  return result;
}

// The address sanitizer's runtime asks for it while it starts. Where that is a library (gcc's way)
// it ends the program unless it is the first one that was loaded, which Deja's is. A program with
// options of its own is asked instead.
DEJA_EXPORT const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
