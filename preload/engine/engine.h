// Engine: what the hooks call, by concern: each has an interface of its own in *_calls.h, and a
// hook includes the one that it needs. The recorder's engine makes the real call and writes down
// what happened; the replayer's answers from a trace and checks. Exactly one exists per process;
// the library that is loaded decides which (CreateEngine is defined once in recorder/ and once in
// replayer/).
//
// Rules for every engine (recorder/README.md). It never throws, aborts, exits or blocks for its own
// sake, and holds none of its locks across a real call. It allocates nothing on the path of an
// event, and leaves errno as the real call left it. Any thread may call all functions at any time,
// before main and after exit handlers included. They are never called while the calling thread is
// inside Deja or inside the real library (guard.h sees to it).
#ifndef DEJA_PRELOAD_ENGINE_ENGINE_H_
#define DEJA_PRELOAD_ENGINE_ENGINE_H_

namespace deja::preload {

class ClockCalls;
class CurandCalls;
class FileCalls;
class GroupCalls;
class InputCalls;
class LifeCalls;
class LockCalls;
class MeetingCalls;
class MpiCalls;
class NcclCalls;
class ProcessCalls;
class SocketCalls;
class StepCalls;

// Which object has which concern. None is null.
struct Engine {
  NcclCalls* nccl;
  CurandCalls* curand;
  MpiCalls* mpi;
  GroupCalls* groups;
  InputCalls* inputs;
  ClockCalls* clocks;
  StepCalls* steps;
  LifeCalls* life;
  ProcessCalls* processes;
  FileCalls* files;
  SocketCalls* sockets;
  MeetingCalls* meetings;
  LockCalls* locks;
};

// The engine of one object that has all concerns.
template <typename All>
constexpr Engine EngineOf(All& all) {
  return {.nccl = &all,
          .curand = &all,
          .mpi = &all,
          .groups = &all,
          .inputs = &all,
          .clocks = &all,
          .steps = &all,
          .life = &all,
          .processes = &all,
          .files = &all,
          .sockets = &all,
          .meetings = &all,
          .locks = &all};
}

// Makes the engine of this library, on first use (before main, possibly): false if there is none.
// Defined in recorder/ or replayer/.
bool CreateEngine(Engine& engine);

// The process's engine; null while it is being made or when the library is switched off by the
// environment.
Engine* GetEngine();

// The engine, if it has been made and is this process's. Null in a child that has not called
// GetEngine yet, and in a vfork child, which only borrows the parent's memory. Makes nothing;
// async-signal-safe.
Engine* EngineOfThisProcess();

// From now on this process has no engine, for good, and its forked children neither. Threads that
// are inside it complete their calls.
void SwitchEngineOff();
// True after that.
bool IsEngineSwitchedOff();

// True in a vfork child, which runs in its parent's memory: nothing of ours may be changed there.
// Async-signal-safe.
bool IsBorrowedMemory();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_ENGINE_H_
