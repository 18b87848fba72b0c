#include "tests/fakes/cuda/nccl/profiler_host.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>

#include "recorder/nccl/nccl_profiler_abi.h"

namespace {

namespace profiler = deja::recorder::profiler;

constexpr int kNewest = 7;

void* OpenPlugin() {
  const char* name = std::getenv("NCCL_PROFILER_PLUGIN");
  if (name == nullptr) return dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
  if (strcasecmp(name, "none") == 0) return nullptr;
  if (strcasecmp(name, "STATIC_PLUGIN") == 0) return dlopen(nullptr, RTLD_NOW | RTLD_LOCAL);
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

// Version 1 says it in numbers.
template <typename Word>
Word Say(const char* text, const char* const* words, size_t count) {
  if constexpr (std::is_same_v<Word, const char*>) {
    return text;
  } else {
    for (size_t i = 0; i < count; ++i)
      if (std::string(words[i]) == text) return static_cast<Word>(i);
    return static_cast<Word>(count);
  }
}

}  // namespace

ProfilerHost& ProfilerHost::Get() {
  static ProfilerHost host;
  return host;
}

ProfilerHost::ProfilerHost() {
  const char* known = std::getenv("DEJA_FAKE_NCCL_PROFILER");
  own_thread_ = std::getenv("DEJA_FAKE_NCCL_PROFILER_THREAD") != nullptr;
  void* library = known == nullptr ? nullptr : OpenPlugin();
  if (library == nullptr) return;
  for (int version = std::min(std::atoi(known), kNewest); version > 0; --version) {
    plugin_ = dlsym(library, ("ncclProfiler_v" + std::to_string(version)).c_str());
    if (plugin_ == nullptr) continue;
    version_ = version;
    return;
  }
}

void ProfilerHost::OnCommunicator() {
  void* context = nullptr;
  int mask = 0;
  if (version_ >= 5)
    static_cast<profiler::PluginV5*>(plugin_)->init(&context, 7, &mask, "comm", 1, 2, 0, nullptr);
  else if (version_ == 4)
    static_cast<profiler::PluginV4*>(plugin_)->init(&context, &mask, "comm", 7, 1, 2, 0, nullptr);
  else if (version_ != 0)
    static_cast<profiler::PluginV1*>(plugin_)->init(&context, &mask);
}

void ProfilerHost::OnCall(ProfiledCollective& collective) {
  if (version_ < 5) return;
  // What is behind the head is another structure, which the plugin must not read as a collective.
  profiler::EventV5 event{};
  event.type = profiler::kCollectiveApi;
  event.rank = collective.rank;
  static_cast<profiler::PluginV5*>(plugin_)->start(nullptr, &collective.call, &event);
}

void ProfilerHost::OnLaunch(const ProfiledCollective& collective) {
  if (version_ == 0) return;
  if (!own_thread_) return TellHere(collective);
  std::thread([&] { TellHere(collective); }).join();
}

void ProfilerHost::TellHere(const ProfiledCollective& collective) {
  switch (version_) {
    case 1:
      return Tell<profiler::PluginV1, profiler::EventV1>(collective);
    case 2:
      return Tell<profiler::PluginV2, profiler::EventV2>(collective);
    case 3:
      return Tell<profiler::PluginV3, profiler::EventV3>(collective);
    case 4:
      return Tell<profiler::PluginV4, profiler::EventV4>(collective);
    default:
      return Tell<profiler::PluginV5, profiler::EventV5>(collective);
  }
}

template <typename Plugin, typename Event>
void ProfilerHost::Tell(const ProfiledCollective& collective) {
  auto* plugin = static_cast<Plugin*>(plugin_);
  Event event{};
  event.type = profiler::kCollective;
  event.parent = collective.call;
  event.rank = collective.rank;
  auto& told = event.collective;
  told.func = Say<decltype(told.func)>(collective.func, profiler::kFunctionNames,
                                       std::size(profiler::kFunctionNames));
  told.send = collective.send;
  told.recv = collective.recv;
  told.count = collective.count;
  told.root = collective.root;
  told.channels = collective.small() ? 1 : 2;
  told.warps = 4;
  told.algorithm =
      Say<decltype(told.algorithm)>(collective.small() ? "TREE" : "RING", profiler::kAlgorithmNames,
                                    std::size(profiler::kAlgorithmNames));
  told.protocol =
      Say<decltype(told.protocol)>(collective.small() ? "LL" : "LL128", profiler::kProtocolNames,
                                   std::size(profiler::kProtocolNames));
  void* handle = nullptr;
  plugin->start(nullptr, &handle, &event);
  plugin->stop(handle);
}
