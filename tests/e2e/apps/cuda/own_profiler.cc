// A profiler plugin of a program's own, of version 4: writes on stderr what NCCL tells it.
#include <cstdint>
#include <cstdio>

#include "recorder/nccl/nccl_profiler_abi.h"

namespace {

namespace profiler = deja::recorder::profiler;

int Init(void** context, int* mask, const char*, uint64_t, int, int, int, void*) {
  static char self;
  *context = &self;
  *mask = profiler::kCollective;
  std::fprintf(stderr, "own plugin: begins\n");
  return 0;
}
int Start(void*, void** handle, profiler::EventV4* event) {
  *handle = nullptr;
  if (event->type == profiler::kCollective)
    std::fprintf(stderr, "own plugin: %s by %s\n", event->collective.func,
                 event->collective.algorithm);
  return 0;
}
int Stop(void*) {
  return 0;
}
int Record(void*, int, void*) {
  return 0;
}
int Finalize(void*) {
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) profiler::PluginV4 ncclProfiler_v4;
profiler::PluginV4 ncclProfiler_v4{"own", &Init, &Start, &Stop, &Record, &Finalize};
