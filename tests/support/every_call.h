// EveryCall: an engine's concerns together, for engines of tests that are one object.
#ifndef DEJA_TESTS_SUPPORT_EVERY_CALL_H_
#define DEJA_TESTS_SUPPORT_EVERY_CALL_H_

#include "preload/calls/clock_calls.h"
#include "preload/calls/file_calls.h"
#include "preload/calls/group_calls.h"
#include "preload/calls/input_calls.h"
#include "preload/calls/life_calls.h"
#include "preload/calls/lock_calls.h"
#include "preload/calls/meeting_calls.h"
#include "preload/calls/mpi_calls.h"
#include "preload/calls/nccl_calls.h"
#include "preload/calls/process_calls.h"
#include "preload/calls/socket_calls.h"
#include "preload/calls/step_calls.h"

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
