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
#include "recorder/core/recorder_engine.h"
#include "recorder/files/folders.h"
#include "recorder/files/opened_input.h"
#include "recorder/sockets/connections.h"

namespace deja::preload {
namespace {

std::atomic<recorder::RecorderEngine*> g_engine{nullptr};

// Registered from a constructor of a preloaded library, and without a handle of it, this runs after
// the destructors of all libraries: what they still call is recorded, too.
void FinishAtExit(int code, void*) {
  Guard guard;
  recorder::RecorderEngine* engine = g_engine.load(std::memory_order_acquire);
  if (engine == nullptr || IsEngineSwitchedOff()) return;
  engine->OnExit(code, ExitHow::kExit);
  engine->Finish();
}

recorder::RecorderEngine* FindEngine() {
  return static_cast<recorder::RecorderEngine*>(GetEngine());
}

recorder::Recording* FindRecording() {
  recorder::RecorderEngine* engine = FindEngine();
  return engine == nullptr ? nullptr : engine->Active();
}

__attribute__((constructor)) void RegisterExit() {
  {
    Guard guard;
    recorder::RecorderEngine::WatchForks();
    on_exit(FinishAtExit, nullptr);
    recorder::RecordConnections(&FindEngine);
    recorder::OpenedInput::SetFinder(&FindRecording);
    (void)OwnProcessName();
    HideOwnVariables();
    if (OwnVariable(env::kOut) != nullptr) recorder::RecordInheritedConnections();
  }
  recorder::RecordInheritedPipes();
  // Others wait for their first event: most processes of a job have none that matters.
  if (OwnVariable(env::kSingle) == nullptr || GetEngine() == nullptr) return;
  Guard guard;
  if (auto* engine = g_engine.load(std::memory_order_acquire)) engine->BeginSingle();
}

}  // namespace

Engine* CreateEngine() {
  alignas(recorder::RecorderEngine) static char memory[sizeof(recorder::RecorderEngine)];
  recorder::Config config;
  if (!recorder::ReadConfig(config)) return nullptr;
  UseDeviceDigests(config.device_digests);
  WantLockOrder(config.order_locks);
  auto* engine = new (memory) recorder::RecorderEngine(config, &format::RankLog::Create);
  static constinit recorder::RecordedFolders folders(&FindRecording);
  engine->SetFolders(&folders);
  engine->SetConnections(&recorder::RecordConnections(&FindEngine));
  g_engine.store(engine, std::memory_order_release);
  return engine;
}

}  // namespace deja::preload
