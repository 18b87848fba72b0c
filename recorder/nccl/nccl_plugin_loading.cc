// How NCCL finds our profiler plugin (recorder/nccl/nccl_choices.h).
//
// NCCL opens the plugin that NCCL_PROFILER_PLUGIN names, or else "libnccl-profiler.so", and looks
// for ncclProfiler_v7 and older ones in it. Where nothing is named and there is no such file, it
// gets this library instead. The names are found by the handle alone. They are not exported, or a
// program that brings a plugin of its own (STATIC_PLUGIN) would have ours, too. So nothing in the
// environment says anything about us, and whatever the program has set still holds.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "preload/engine/engine.h"
#include "preload/symbols/real_symbols.h"
#include "recorder/nccl/nccl_choices.h"

namespace deja::preload {
namespace {

constexpr char kDefaultPlugin[] = "libnccl-profiler.so";

using DlopenFn = void* (*)(const char*, int);

void* RealDlopen() {
  static constinit std::atomic<void*> next{nullptr};
  void* target = next.load(std::memory_order_acquire);
  if (target == nullptr) {
    target = RealNext("dlopen");
    next.store(target, std::memory_order_release);
  }
  return target;
}

// The file of this library; null if it has none.
const char* OwnFile() {
  static constinit char anchor = 0;
  Dl_info info;
  return dladdr(&anchor, &info) != 0 ? info.dli_fname : nullptr;
}

// A plugin in a folder that is searched, or beside NCCL, where its own search path may lead.
bool HasDefaultPlugin() {
  auto open = reinterpret_cast<DlopenFn>(RealDlopen());
  if (void* found = open(kDefaultPlugin, RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(found);
    return true;
  }
  dlerror();
  char path[4096];
  RealNcclPath(path, sizeof path - sizeof kDefaultPlugin);
  char* slash = std::strrchr(path, '/');
  if (slash == nullptr) return false;
  std::memcpy(slash + 1, kDefaultPlugin, sizeof kDefaultPlugin);
  return access(path, F_OK) == 0;
}

bool IsOwnHandle(void* handle) {
  const char* file = OwnFile();
  if (file == nullptr || handle == nullptr) return false;
  auto open = reinterpret_cast<DlopenFn>(RealDlopen());
  void* own = open(file, RTLD_LAZY | RTLD_NOLOAD);
  if (own == nullptr) {
    dlerror();
    return false;
  }
  dlclose(own);
  return own == handle;
}

}  // namespace

void* ProfilerPlugin(void* handle, const char* name) {
  void* plugin = recorder::NcclChoices::Plugin(name);
  if (plugin == nullptr) return nullptr;
  if (IsOwnHandle(handle)) return plugin;
  if (RealDlsym(handle, name) != nullptr)
    recorder::NcclChoices::FoundOther();
  else
    dlerror();
  return nullptr;
}

}  // namespace deja::preload

// Returns the dlopen to jump to, with the file that it is to open in `*file`.
extern "C" __attribute__((visibility("hidden"))) void* deja_dlopen_decide(const char** file) {
  namespace dp = deja::preload;
  if (*file != nullptr && std::strcmp(*file, dp::kDefaultPlugin) == 0 &&
      dp::EngineOfThisProcess() != nullptr && !dp::HasDefaultPlugin()) {
    if (const char* own = dp::OwnFile()) *file = own;
  }
  return dp::RealDlopen();
}
