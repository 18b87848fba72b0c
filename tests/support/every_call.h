// EveryCall: an engine's concerns together, for engines of tests that are one object.
#ifndef DEJA_TESTS_SUPPORT_EVERY_CALL_H_
#define DEJA_TESTS_SUPPORT_EVERY_CALL_H_

#include "preload/engine/clock_calls.h"
#include "preload/engine/file_calls.h"
#include "preload/engine/group_calls.h"
#include "preload/engine/input_calls.h"
#include "preload/engine/life_calls.h"
#include "preload/engine/lock_calls.h"
#include "preload/engine/meeting_calls.h"
#include "preload/engine/mpi_calls.h"
#include "preload/engine/nccl_calls.h"
#include "preload/engine/process_calls.h"
#include "preload/engine/socket_calls.h"
#include "preload/engine/step_calls.h"

namespace deja::preload {

class EveryCall : public NcclCalls,
                  public CurandCalls,
                  public MpiCalls,
                  public GroupCalls,
                  public InputCalls,
                  public ClockCalls,
                  public StepCalls,
                  public LifeCalls,
                  public ProcessCalls,
                  public FileCalls,
                  public SocketCalls,
                  public MeetingCalls,
                  public LockCalls {};

}  // namespace deja::preload

#endif  // DEJA_TESTS_SUPPORT_EVERY_CALL_H_
