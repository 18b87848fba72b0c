// Nondeterministic inputs: what the C library gave the program.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "api/libc_table.h"
#include "digest/digest.h"
#include "preload/process/threads.h"
#include "recorder/inputs/input_recorder.h"
#include "recorder/inputs/input_state.h"

namespace deja::recorder {
namespace {

// Bytes up to this many are in the event itself; what is longer is a payload.
constexpr size_t kMaxInlineBytes = 4 << 10;

uint64_t ContentOf(const preload::InputCall& call, std::span<const std::byte> bytes) {
  uint64_t head[2] = {static_cast<uint64_t>(call.result), static_cast<uint64_t>(call.error)};
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), XXH3_64bits(head, sizeof head));
}

// What is the same each time it is asked: of gettid, by the same thread.
uint64_t QuestionOf(const preload::InputCall& call) {
  return call.api == static_cast<uint32_t>(api::LibcApi::kgettid)
             ? reinterpret_cast<uint64_t>(&preload::Self())
             : call.key;
}

}  // namespace

void InputRecorder::OnInput(preload::InputCall& call) {
  call.Real();
  ErrnoKeeper keep;
  Recording* rec = recorder_.Active();
  if (rec == nullptr) return;
  std::span<const std::byte> bytes = call.out.first(std::min(call.produced, call.out.size()));
  if (api::InputKindOf(call.api) == api::InputKind::kIdentity &&
      rec->Of<InputState>().seen.AlreadySeen(call.api, QuestionOf(call), ContentOf(call, bytes)))
    return;
  format::Input input;
  input.api = call.api;
  input.key = call.key;
  input.result = call.result;
  input.error = static_cast<uint32_t>(call.error);
  if (bytes.size() <= kMaxInlineBytes) {
    input.data = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } else {
    // At any level: without these bytes there is no replay.
    input.hash = digest::HashBytes(bytes);
    input.segment = rec->KeepPayload(input.hash, bytes, 1).segment;
  }
  rec->writer.Write(input);
  rec->RelieveStaging();
}

int64_t InputRecorder::OnClock(format::ClockSource source, int64_t live_ns) {
  if (Recording* rec = recorder_.Active(); rec != nullptr) {
    rec->writer.WriteClock(source, live_ns);
    if (!rec->writer.live()) {
      const ErrnoKeeper keep;
      rec->BecomeChild();
      rec->RelieveStaging();
    }
  }
  return live_ns;
}

void InputRecorder::OnUnseenReading(format::ClockSource source, preload::UnseenReading made_for) {
  if (Recording* rec = recorder_.Active(); rec != nullptr)
    rec->writer.RenameClock(source, made_for == preload::UnseenReading::kPythonLock
                                        ? format::ClockSource::kPythonLock
                                        : format::ClockSource::kInterpreterWait);
}

}  // namespace deja::recorder
