// Where the library begins and ends in a process.
#include <pthread.h>
#include <stdlib.h>

#include <new>

#include "common/env_vars.h"
#include "format/log/rank_log.h"
#include "preload/cuda/device.h"
#include "preload/engine/engine.h"
#include "preload/meet/lock_order.h"
#include "preload/process/guard.h"
#include "preload/process/own_variables.h"
#include "preload/process/process_name.h"
#include "recorder/assembly/recorder_engine.h"
#include "recorder/files/folders.h"
#include "recorder/files/opened_input.h"
#include "recorder/sockets/connections.h"

namespace deja::preload {
namespace {

std::atomic<recorder::RecorderEngine*> g_engine{nullptr};

// It is registered from a constructor of a preloaded library, and without a handle of it. So it
// runs after the destructors of all libraries, and what they still call is recorded, too.
void FinishAtExit(int code, void*) {
  Guard guard;
  recorder::RecorderEngine* engine = g_engine.load(std::memory_order_acquire);
  if (engine == nullptr || IsEngineSwitchedOff()) return;
  engine->OnExit(code, ExitHow::kExit);
  engine->Finish();
}

recorder::RecorderEngine* FindEngine() {
  return GetEngine() == nullptr ? nullptr : g_engine.load(std::memory_order_acquire);
}

// Not within the guard where there may be no engine yet: it makes none.
recorder::Recording* FindRecording() {
  recorder::RecorderEngine* engine = FindEngine();
  if (engine == nullptr) return nullptr;
  const Guard guard;
  return engine->Active();
}

__attribute__((constructor)) void RegisterExit() {
  {
    Guard guard;
    format::RankLog::BeforeThreads();
    recorder::RecorderEngine::WatchForks();
    on_exit(FinishAtExit, nullptr);
    recorder::RecordConnections(&FindRecording);
    recorder::OpenedInput::SetFinder(&FindRecording);
    (void)OwnProcessName();
    HideOwnVariables();
    if (OwnVariable(env::kOut) != nullptr) recorder::RecordInheritedConnections();
  }
  if (recorder::HasInheritedPipes() && GetEngine() != nullptr) {  // within the guard none is made
    const Guard guard;
    recorder::RecordInheritedPipes(g_engine.load(std::memory_order_acquire)->Pipes());
  }
  // Others wait for their first event: most processes of a job have none that matters.
  if (OwnVariable(env::kSingle) == nullptr || GetEngine() == nullptr) return;
  Guard guard;
  if (auto* engine = g_engine.load(std::memory_order_acquire)) engine->BeginSingle();
}

}  // namespace

bool CreateEngine(Engine& engine) {
  alignas(recorder::RecorderEngine) static char memory[sizeof(recorder::RecorderEngine)];
  recorder::Config config;
  if (!recorder::ReadConfig(config)) return false;
  UseDeviceDigests(config.device_digests);
  WantLockOrder(config.order_locks);
  auto* made = new (memory) recorder::RecorderEngine(config, &format::RankLog::Create);
  static constinit recorder::RecordedFolders folders(&FindRecording);
  made->SetFolders(&folders);
  made->SetConnections(&recorder::RecordConnections(&FindRecording));
  g_engine.store(made, std::memory_order_release);
  engine = EngineOf(*made);
  return true;
}

}  // namespace deja::preload
