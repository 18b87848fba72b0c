// How nondeterministic inputs of the C library are served. Any thread, within the guard.
#ifndef DEJA_REPLAYER_INPUTS_SERVE_INPUTS_H_
#define DEJA_REPLAYER_INPUTS_SERVE_INPUTS_H_

#include "preload/calls/input_calls.h"
#include "replayer/core/session.h"

namespace deja::replayer {

void ServeInput(Session& session, ThreadState& thread, preload::InputCall& call);
// Only what is one value for each question; false if the recording does not have it.
bool ServeIdentity(const ReplayPlan& plan, preload::InputCall& call);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_INPUTS_SERVE_INPUTS_H_
