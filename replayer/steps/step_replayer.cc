#include "replayer/steps/step_replayer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/runtime/errno_keeper.h"
#include "preload/engine/fd_table.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "replayer/core/ending.h"
#include "replayer/core/ordered.h"
#include "replayer/report/live_trace.h"
#include "replayer/steps/restore.h"
#include "replayer/steps/serve_steps.h"

namespace deja::replayer {

using preload::Guard;

namespace {

// Where the program stood in files that it read; the descriptors are the same ones, if they were
// open at the first step.
void RestoreFiles(const format::RecordedCheckpoint& checkpoint) {
  const ErrnoKeeper keep;
  for (const auto& [number, position] : checkpoint.files) {
    const auto fd = static_cast<int>(number);
    struct stat info;
    const int flags = fcntl(fd, F_GETFL);
    const bool reads = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
    if (!reads || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      Say("descriptor " + std::to_string(number) +
          " read a file at the checkpoint and does not here; if the program goes on reading it, "
          "replay from the start or from an earlier checkpoint");
      continue;
    }
    if (lseek(fd, static_cast<off_t>(position), SEEK_SET) < 0) continue;
    if (preload::FdObject* object = preload::FdTable::Find(fd);
        object != nullptr && object->kind() == preload::FdObject::Kind::kFile)
      object->AfterSeek(static_cast<int64_t>(position), static_cast<int64_t>(position), SEEK_SET);
  }
}

[[noreturn]] void FailStart(Session& session, uint64_t step,
                            const std::vector<std::string>& problems) {
  constexpr size_t kShown = 8;
  std::string text = "the replay cannot start at the checkpoint of step " + std::to_string(step);
  for (size_t i = 0; i < std::min(problems.size(), kShown); ++i)
    text += (i == 0 ? ": " : "; ") + problems[i];
  if (problems.size() > kShown)
    text += "; and " + std::to_string(problems.size() - kShown) + " more";
  text +=
      "; nothing was restored; replay from the start or from another checkpoint, with the recorded "
      "program";
  FailReplay(session, session.Thread(), text, 0);
}

}  // namespace

void StepReplayer::StartLate() {
  const LateStart& start = *replayer_.session->plan().start();
  const format::RecordedCheckpoint& checkpoint = start.checkpoint();
  std::vector<RestoredObject> objects;
  {
    const Guard guard;
    std::vector<std::string> problems;
    objects = MatchRegistered(checkpoint, problems);
    FindMissing(*replayer_.session, replayer_.session->Thread(), problems);
    for (LateStarter* starter : replayer_.session->late_starters()) starter->FindMissing(problems);
    if (!problems.empty()) FailStart(*replayer_.session, checkpoint.step, problems);
  }
  for (const RestoredObject& object : objects) {
    const std::string problem = RestoreObject(*replayer_.session, object);
    const Guard guard;
    if (!problem.empty())
      FailReplay(
          *replayer_.session, replayer_.session->Thread(),
          "restoring the checkpoint of step " + std::to_string(checkpoint.step) + ": " + problem,
          0);
  }
  const Guard guard;
  replayer_.session->StartLate();
  RestoreFiles(checkpoint);
  preload::ThreadRecord& self = preload::Self();
  self.children = std::max(self.children, checkpoint.threads_made);
  self.processes = std::max(self.processes, checkpoint.processes_made);
  replayer_.report.Write(CheckpointLine{.number = checkpoint.number,
                                        .step = checkpoint.step,
                                        .items = checkpoint.items.size(),
                                        .bytes = checkpoint.bytes});
  deja_replay_state.start_step = checkpoint.step + 1;
}

uint64_t StepReplayer::OnStep(uint64_t step) {
  if (replayer_.session == nullptr) return step;
  const LateStart* start = replayer_.session->plan().start();
  if (start != nullptr && !std::exchange(at_first_step_, true)) {
    StartLate();
    step = start->checkpoint().step;
  }
  const Guard guard;
  replayer_.session->progress().CountActivity();
  deja_replay_state_t& state = deja_replay_state;
  state.step = step;
  state.has_step = 1;
  const std::string text = "step " + std::to_string(step) + " begins";
  ThreadState& thread = replayer_.session->Thread();
  Stops::ShowRegistered();
  if (LiveTrace* live = replayer_.session->live_trace()) live->Step(step);
  const bool goal = state.watched != 0 && state.stop_step == step + 1;
  const bool at_place = replayer_.session->stops().Arrive(thread, step << 1 | 1, goal);
  const bool at_step = state.watched != 0 && state.stop_step == step + 1;
  if (at_step) state.stop_step = 0;
  if (at_step || at_place) replayer_.session->stops().Stop(thread, kDejaStopStep, text, {}, 0);
  if (replayer_.session->options().until_step == step + 1) replayer_.session->EndAsAsked(text);
  return step;
}

void StepReplayer::OnNote(std::string_view text) {
  if (replayer_.session == nullptr) return;
  constexpr std::string_view kException = "exception ";  // python/deja/exceptions.py
  replayer_.session->progress().CountActivity();
  if (text.starts_with(kException)) replayer_.report.Write(ExceptionLine{.text = text});
  if (LiveTrace* live = replayer_.session->live_trace()) live->Note(text);
}

void StepReplayer::OnSnapshot(const preload::SnapshotCall& call) {
  if (replayer_.session == nullptr) return;
  const ErrnoKeeper keep;
  ServeSnapshot(*replayer_.session, replayer_.session->Thread(), call);
}

}  // namespace deja::replayer
