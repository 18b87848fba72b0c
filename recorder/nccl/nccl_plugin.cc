// The profiler plugin itself: NCCL's descriptions, in the form of each version, made one.
#include <array>
#include <span>
#include <type_traits>

#include "recorder/nccl/nccl_choices.h"
#include "recorder/nccl/nccl_profiler_abi.h"

namespace deja::recorder {
namespace {

// Handles must not be null: until 2.26 NCCL reports collectives only in groups that have one.
char g_handle;

template <typename Word>
auto Said(Word word, std::span<const char* const> words) {
  if constexpr (std::is_same_v<Word, const char*>)
    return word;
  else
    return word < words.size() ? words[word] : nullptr;
}

template <typename Event>
int Start(void* /*context*/, void** handle, Event* event) {
  *handle = &g_handle;
  const uint64_t type = event->type;
  if (type == profiler::kCollectiveApi) {
    if (void* operation = NcclChoices::OnCall()) *handle = operation;
  }
  if (type != profiler::kCollective) return 0;
  const auto& told = event->collective;
  NcclChoices::Collective collective;
  collective.parent = event->parent;
  collective.rank = event->rank;
  const char* func = Said(told.func, profiler::kFunctionNames);
  collective.func = func == nullptr ? "" : func;
  collective.send = told.send;
  collective.recv = told.recv;
  collective.count = told.count;
  collective.root = told.root;
  collective.algorithm = Said(told.algorithm, profiler::kAlgorithmNames);
  collective.protocol = Said(told.protocol, profiler::kProtocolNames);
  collective.channels = told.channels;
  collective.warps = told.warps;
  NcclChoices::OnCollective(collective);
  return 0;
}

int Stop(void* /*handle*/) {
  return 0;
}
int Record(void* /*handle*/, int /*state*/, void* /*arguments*/) {
  return 0;
}
int Finalize(void* /*context*/) {
  return 0;
}

int Begin(void** context, int* mask, int kinds) {
  *context = &g_handle;
  *mask = kinds;
  NcclChoices::OnInit();
  return 0;
}
int Init(void** context, int* mask) {
  return Begin(context, mask, profiler::kGroup | profiler::kCollective);
}
int InitNamed(void** context, int* mask, const char*, uint64_t, int, int, int, void*) {
  return Init(context, mask);
}
int InitWithCalls(void** context, uint64_t, int* mask, const char*, int, int, int, void*) {
  return Begin(context, mask, profiler::kGroup | profiler::kCollective | profiler::kCollectiveApi);
}

constinit profiler::PluginV1 g_v1{"deja", &Init,   &Start<profiler::EventV1>,
                                  &Stop,  &Record, &Finalize};
constinit profiler::PluginV2 g_v2{"deja", &Init,   &Start<profiler::EventV2>,
                                  &Stop,  &Record, &Finalize};
constinit profiler::PluginV3 g_v3{"deja", &Init,   &Start<profiler::EventV3>,
                                  &Stop,  &Record, &Finalize};
constinit profiler::PluginV4 g_v4{"deja", &InitNamed, &Start<profiler::EventV4>,
                                  &Stop,  &Record,    &Finalize};
// Versions 6 and 7 add events that we do not ask for; 7 adds to the end of collectives, too.
constinit profiler::PluginV5 g_v5{"deja", &InitWithCalls, &Start<profiler::EventV5>,
                                  &Stop,  &Record,        &Finalize};

struct Version {
  std::string_view name;
  void* plugin;
};
constexpr std::array kVersions = {
    Version{"ncclProfiler_v1", &g_v1}, Version{"ncclProfiler_v2", &g_v2},
    Version{"ncclProfiler_v3", &g_v3}, Version{"ncclProfiler_v4", &g_v4},
    Version{"ncclProfiler_v5", &g_v5}, Version{"ncclProfiler_v6", &g_v5},
    Version{"ncclProfiler_v7", &g_v5},
};

}  // namespace

void* NcclChoices::Plugin(std::string_view name) {
  for (const Version& version : kVersions)
    if (version.name == name) return version.plugin;
  return nullptr;
}

}  // namespace deja::recorder
