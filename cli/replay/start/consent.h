// Consent: whether what a trace would have run may be run.
//
// A trace that this user has recorded or packed here, or agreed to before, is run as it is
// (cli/fence/trust_store.h). For any other trace, the user sees what would run, and is asked.
//
// Main thread.
#ifndef DEJA_CLI_REPLAY_START_CONSENT_H_
#define DEJA_CLI_REPLAY_START_CONSENT_H_

#include <string>
#include <vector>

#include "cli/replay/start/child_programs.h"
#include "cli/replay/start/replay_launch.h"
#include "cli/replay/watch/replay_processes.h"
#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

// What the user is asked about: lines, of which each is plain text when it is shown.
// `children`: programs that they have started.
std::vector<std::string> DescribeStart(const std::vector<const ReplayTarget*>& targets,
                                       const ChildPrograms& children);

// Shows on stderr what `targets`, of `trace`, would run; `trust`: the user has agreed on the
// command line; else asks, if there is a terminal to ask on. Remembers a yes. kForeign: it is not
// to be run.
Status AskConsent(const std::string& trace, const std::vector<const ReplayTarget*>& targets,
                  const ChildPrograms& children, bool trust);

// The same of what is about to run, unless it is the user's own. Nothing of a trace is run before.
// `path`: of the trace, as the user named it.
Status CheckConsent(const std::string& path, format::Trace& trace,
                    const std::vector<Replayed>& replays, int attempt, bool trust);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_CONSENT_H_
