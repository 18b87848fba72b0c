// What the dlsym hook (dl_hooks_x86_64.S) does before it jumps on.
//
// Programs that open NCCL, MPI or cuRAND by themselves (ctypes, JAX, XGBoost, CuPy) bind its
// functions with dlsym on a handle. No preloaded symbol can come before that. So a look-up of a
// name in the table, through any handle, gets our hook, if the real look-up would have found
// something.
//
// RTLD_NEXT is left alone (but for functions that only we have), and so is everything else. It is
// passed on by a jump, with the program's return address: the C library knows the caller by it. A
// hook of dlvsym is not needed: NCCL's symbols have no versions, and dlvsym finds only symbols that
// have one. Nor does dlopen: whatever is opened, the names are bound by the global scope (us) or by
// dlsym. (A library that stands in for NCCL hooks dlopen, too, because the file may not be there:
// nccl_standin.cc. So does the recorder, to be NCCL's profiler plugin: nccl_plugin_loading.cc.)
#include <dlfcn.h>

#include <cstdint>
#include <string_view>

#include "api/curand_table.h"
#include "api/mpi_table.h"
#include "api/nccl_table.h"
#include "preload/hooks/cuda/graph_hooks.h"
#include "preload/hooks/curand/curand_hooks.h"
#include "preload/hooks/loading/driver_libraries.h"
#include "preload/hooks/mpi/mpi_hooks.h"
#include "preload/hooks/nccl/nccl_hooks.h"
#include "preload/hooks/nccl/newer_calls.h"
#include "preload/process/guard.h"
#include "preload/symbols/curand_library.h"
#include "preload/symbols/mpi_library.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {

// A replay on fewer devices answers for some functions of the CUDA driver
// (replayer/devices/device_map.cc).
__attribute__((weak)) void* DriverHook(const char*) {
  return nullptr;
}

// A replay library exports functions of the CUDA driver. Whether `name` is one that the driver of
// this machine lacks, or that has no driver behind it.
__attribute__((weak)) bool IsMissingInDriver(const char*) {
  return false;
}

// What NCCL finds as the profiler plugin `name` through `handle`, from wherever it looks, if it is
// the recorder's (recorder/nccl/nccl_plugin_loading.cc).
__attribute__((weak)) void* ProfilerPlugin(void*, const char*) {
  return nullptr;
}

namespace {

using DlsymFn = void* (*)(void*, const char*);

enum class Library : uint8_t { kNccl, kMpi, kCurand };

// A function that we hook, by any of its names.
struct Hooked {
  const api::ApiInfo* info = nullptr;
  Library library = Library::kNccl;
  bool second = false;  // PMPI_X

  [[nodiscard]] void* Address() const {
    switch (library) {
      case Library::kMpi:
        return MpiHookAddress(*info, second);
      case Library::kCurand:
        return CurandHookAddress(*info);
      default:
        return NcclHookAddress(*info);
    }
  }
};

Hooked FindHooked(const char* name) {
  if (name == nullptr) return {};
  const std::string_view text(name);
  if (text.starts_with("nccl")) return {api::FindNccl(text), Library::kNccl, false};
  if (text.starts_with("curand")) return {api::FindCurand(text), Library::kCurand, false};
  const bool second = text.starts_with("PMPI_");
  if (!second && !text.starts_with("MPI_")) return {};
  return {api::FindMpi(text.substr(second ? 1 : 0)), Library::kMpi, second};
}

// The program asks whether there is an NCCL (an MPI …), or whether it is new enough, and found our
// hook. Without a real function behind it the answer is no, with an error for dlerror as the C
// library words it.
bool HookIsBacked(const Hooked& hooked, const char* name) {
  if (hooked.library == Library::kMpi) return RealMpi(name) != nullptr;
  if (hooked.library == Library::kCurand) return RealCurand(name) != nullptr;
  return StandsInForNccl() || RealNccl(name) != nullptr;
}

// True if what the program found through `handle` by itself is from now on behind the hooks.
bool Remember(const Hooked& hooked, void* handle, const char* name) {
  if (hooked.library == Library::kNccl) return RememberNcclHandle(handle, name);
  if (hooked.library == Library::kMpi)
    RememberMpiHandle(handle, name);
  else
    RememberCurandHandle(handle, name);
  return true;
}

// A function of a newer NCCL: the stub that notes its call; in a replay the one that ends it, which
// no handle of the program's leads to. Null: there is none.
void* FindNewer(DlsymFn look_up, void* handle, const char* name) {
  if (StandsInForNccl()) return TryDlsym(RTLD_DEFAULT, name);
  void* found = look_up(handle, name);
  return found == nullptr ? nullptr : NewerCallFor(name, found);
}

void* Refuse(const char* name) {
  void* libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  dlclose(libc);  // is never unloaded; and the last error must be the look-up's
  return RealDlsym(libc, name);
}

}  // namespace
}  // namespace deja::preload

// Returns the dlsym to jump to, or null when `*answer` is what dlsym returns. `caller`: an address
// in the code that asks.
extern "C" __attribute__((visibility("hidden"))) void* deja_dlsym_decide(void* handle,
                                                                         const char* name,
                                                                         void** answer,
                                                                         const void* caller) {
  namespace dp = deja::preload;
  void* next = dp::NextDlsym();
  if (name != nullptr && std::string_view(name).starts_with("ncclProfiler_v")) {
    *answer = dp::ProfilerPlugin(handle, name);
    return *answer != nullptr ? nullptr : next;
  }
  const dp::Hooked hooked = dp::FindHooked(name);
  if (dp::InsideDeja()) return next;
  if (handle == RTLD_NEXT) {
    if (!dp::IsMissingInDriver(name)) return next;
    *answer = dp::Refuse(name);
    return nullptr;
  }
  {
    // A program that opens a driver looks for its functions before there is a call.
    const dp::Guard guard;
    dp::SetDriversApart();
  }
  auto look_up = reinterpret_cast<dp::DlsymFn>(next);
  if (dp::IsNewerNcclName(name)) {
    *answer = dp::FindNewer(look_up, handle, name);
    return *answer != nullptr ? nullptr : next;
  }
  if (hooked.info == nullptr) {
    void* hook = dp::DriverHook(name);
    const bool maybe_ours = name != nullptr && std::string_view(name).starts_with("cu");
    void* found = maybe_ours ? look_up(handle, name) : nullptr;
    if (found == nullptr) return next;  // once more, for the program, so that it gets the error
    if (dp::IsOwnAddress(found) && dp::IsMissingInDriver(name))
      *answer = dp::Refuse(name);
    else if (hook != nullptr)
      *answer = hook;
    else if (void* graph_hook = dp::GraphHook(name, found))
      *answer = graph_hook;
    else
      return next;
    return nullptr;
  }

  void* found = look_up(handle, name);
  if (found == nullptr) return next;  // once more, for the program, so that it gets the error
  if (dp::IsOwnAddress(found)) {
    *answer = dp::HookIsBacked(hooked, name) ? found : dp::Refuse(name);
    return nullptr;
  }
  *answer = found;
  // A definition that comes before ours for everybody: the program's own, or a tool's that was
  // loaded earlier and calls on to us.
  if (handle == RTLD_DEFAULT || look_up(RTLD_DEFAULT, name) == found) return next;
  // A tool that was loaded after us and wraps this function looks for the real one: we call it, so
  // it must not call us.
  if (dp::IsNextDefinedBy(name, caller)) return nullptr;
  if (dp::Remember(hooked, handle, name)) *answer = hooked.Address();
  return nullptr;
}
