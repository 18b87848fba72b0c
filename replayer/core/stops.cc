#include "replayer/core/stops.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <vector>

#include "digest/digest.h"
#include "format/scratch/scratch_names.h"
#include "preload/engine/checkpoint_registry.h"
#include "preload/stack/python_stack.h"
#include "preload/stack/stack.h"
#include "replayer/report/program_output.h"

namespace deja::replayer {
namespace {

// Bytes of a tensor whose numbers come from the trace; 0 if they make no sense.
uint64_t PayloadBytes(const format::Tensor& tensor) {
  const uint64_t size = digest::ElementSize(tensor.dtype);
  uint64_t bytes = 0;
  return __builtin_mul_overflow(tensor.count, size, &bytes) ? 0 : bytes;
}

std::string SignalText(uint32_t signal) {
  const char* name = sigabbrev_np(static_cast<int>(signal));
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string EndText(const ReplayPlan& plan) {
  const RecordedEnd& end = plan.end();
  if (end.kind == EndKind::kExit) return "exit " + std::to_string(end.exit_code);
  if (end.kind == EndKind::kCrash) {
    const std::string text = SignalText(end.signal);
    return end.FromOutside(plan.pid) ? text + ", sent by process " + std::to_string(end.sender_pid)
                                     : text;
  }
  if (plan.fate.known && plan.fate.signal != 0)
    return SignalText(plan.fate.signal) + ", which left no time to say where";
  return "no word of how the process ended (SIGKILL, or it was still running)";
}

}  // namespace

void CopyText(char* out, size_t size, std::string_view text) {
  const size_t n = std::min(size - 1, text.size());
  std::memcpy(out, text.data(), n);
  out[n] = '\0';
}

void Stops::ShowEnd() {
  CopyText(deja_replay_state.end_text, sizeof deja_replay_state.end_text, EndText(plan_));
  FillFrames(deja_replay_state.end_frames, deja_replay_state.end_frame_count, plan_.end().frames);
}

void Stops::Enter(ThreadState& thread, const char* api, uint32_t comm, uint64_t comm_seq,
                  uint32_t stack) {
  if (thread.slot == kNone) return;
  deja_replay_thread& shown = deja_replay_state.threads[thread.slot];
  CopyText(shown.api, sizeof shown.api, api);
  shown.comm = comm;
  shown.comm_seq = comm_seq;
  shown.stack = stack;
}

bool Stops::Arrive(ThreadState& thread, uint64_t place, bool stops) {
  if (thread.slot == kNone) return false;
  deja_replay_state_t& state = deja_replay_state;
  deja_replay_thread& shown = state.threads[thread.slot];
  shown.recent[shown.places % kDejaRecentPlaces] = place;
  ++shown.places;
  if (state.watched == 0) return false;
  const auto at_place = [&] {
    return state.stop_place == place &&
           std::strncmp(shown.name, state.stop_thread, sizeof shown.name) == 0;
  };
  if (state.keep_images != 0 && keeper_ != nullptr)
    keeper_(shown, place, stops || at_place(), keeper_context_);
  // An image that goes on has got other orders.
  if (!at_place()) return false;
  state.stop_place = 0;
  return true;
}

void Stops::FillFrames(deja_replay_frame* out, uint32_t& count,
                       std::span<const format::StackFrame> frames) const {
  count = 0;
  for (const format::StackFrame& frame : frames) {
    if (count == format::kMaxStackFrames) break;
    const RecordedModule* module = plan_.Module(frame.module);
    out[count].module = module == nullptr ? 0 : reinterpret_cast<uint64_t>(module->path.c_str());
    out[count].offset = frame.offset;
    ++count;
  }
}

void Stops::Stop(ThreadState& thread, DejaStopReason reason, std::string_view message,
                 std::span<const ShownTensor> tensors, uint32_t recorded_stack) {
  std::lock_guard<std::mutex> one_at_a_time(stop_mutex_);
  deja_replay_state_t& state = deja_replay_state;
  std::vector<std::vector<std::byte>> recorded_bytes;
  CopyText(state.message, sizeof state.message, message);
  state.stopped_thread = thread.slot;
  ShowRegistered();
  if (state.watched != 0) {
    FillFrames(state.frames, state.frame_count, plan_.Stack(recorded_stack));
    state.python_frame_count = 0;
    for (const format::StackFrame& frame : preload::PythonStack(preload::FindPythonStack())) {
      const char* path = preload::PathOfPythonModule(frame.module);
      state.python_frames[state.python_frame_count++] = {reinterpret_cast<uint64_t>(path),
                                                         frame.offset};
    }
    state.tensor_count = 0;
    auto show = [&](const char* name, uint32_t role, const format::Tensor& recorded,
                    const void* live, uint32_t comparison) {
      if (state.tensor_count == std::size(state.tensors)) return;
      deja_replay_tensor& out = state.tensors[state.tensor_count++];
      CopyText(out.name, sizeof out.name, name);
      out.role = role;
      out.dtype = recorded.dtype;
      out.count = recorded.count;
      out.live = reinterpret_cast<uint64_t>(live);
      out.nan_count = recorded.stats.nan_count;
      out.comparison = comparison;
      out.recorded = 0;
      if (auto bytes = payloads_.Read(recorded.hash, PayloadBytes(recorded))) {
        recorded_bytes.push_back(std::move(*bytes));
        out.recorded = reinterpret_cast<uint64_t>(recorded_bytes.back().data());
      }
    };
    for (const ShownTensor& t : tensors) show(t.name, t.role, *t.recorded, t.live, t.comparison);
    std::lock_guard<std::mutex> snapshots(snapshot_mutex_);
    for (const auto& [name, view] : snapshot_views_)
      show(name.c_str(), 3, view.recorded->tensor, view.live, view.comparison);
  }
  state.stop_next = 0;
  state.stop_nan = reason == kDejaStopNan ? 0 : state.stop_nan;
  UnmuteOutput();
  if (state.watched != 0) FlushOutput();
  deja_replay_stop(&state, reason);
  for (uint32_t i = 0; i < state.tensor_count; ++i) state.tensors[i].recorded = 0;
}

void Stops::ShowRegistered() {
  deja_replay_state_t& state = deja_replay_state;
  if (state.watched == 0) return;
  uint32_t count = 0;
  preload::RegisteredObject object;
  for (size_t i = 0; count < kDejaMaxRegistered; ++i) {
    if (!preload::CheckpointRegistry::Get().At(i, object)) break;
    if (object.by_callbacks()) continue;
    deja_replay_registered& out = state.registered[count++];
    CopyText(out.name, sizeof out.name, object.name);
    out.address = reinterpret_cast<uint64_t>(object.data);
    out.bytes = object.bytes;
    out.dtype = object.dtype;
  }
  state.registered_count = count;
}

void Stops::RememberSnapshot(const RecordedSnapshot& recorded, const void* live,
                             uint32_t comparison) {
  std::lock_guard<std::mutex> lock(snapshot_mutex_);
  snapshot_views_[recorded.name] = {&recorded, live, comparison};
}

void Stops::Hold() const {
  const std::string go_on = options_.scratch + format::kGoOnFile;
  constexpr timespec kStep{0, 20'000'000};
  // It may be restored from an image of the process long after.
  while (syscall(SYS_faccessat, AT_FDCWD, go_on.c_str(), F_OK) != 0)
    syscall(SYS_nanosleep, &kStep, nullptr);
}

}  // namespace deja::replayer
