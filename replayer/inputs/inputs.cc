// Nondeterministic inputs: entropy in order on its thread, identity by what was asked. Clocks:
// clocks.cc.
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/libc_table.h"
#include "preload/symbols/name_lookups.h"
#include "replayer/clocks/serve_clocks.h"
#include "replayer/core/ending.h"
#include "replayer/inputs/redacted_names.h"
#include "replayer/inputs/serve_inputs.h"
#include "replayer/mpi/mpi_serve.h"

namespace deja::replayer {

using api::InputKind;
using api::LibcApi;
using preload::InputCall;

namespace {

void Give(InputCall& call, std::string_view data, int64_t result, int error) {
  const size_t n = std::min(data.size(), call.out.size());
  if (n != 0) std::memcpy(call.out.data(), data.data(), n);
  call.produced = n;
  call.result = result;
  call.error = error;
}

std::string InputText(uint32_t api) {
  const api::ApiInfo* info = api::FindLibc(api);
  return info != nullptr ? info->name : "input " + std::to_string(api);
}

// The program wants entropy that the recording does not have here.
void DivergeOnEntropy(Session& session, ThreadState& thread, InputCall& call, std::string what) {
  Divergence divergence = session.divergences().New(DivergenceKind::kEntropy);
  divergence.api = InputText(call.api);
  divergence.what = std::move(what);
  session.divergences().Diverge(thread, std::move(divergence), 0);
  call.Real();
}

void ServeEntropy(Session& session, ThreadState& thread, InputCall& call) {
  session.progress().CountAttempt();
  const ReplayPlan& plan = session.plan();
  if (thread.recorded == kNone) return call.Real();
  const RecordedThread& recorded_thread = plan.threads()[thread.recorded];
  auto it = recorded_thread.entropy.find(call.api);
  const size_t count = it == recorded_thread.entropy.end() ? 0 : it->second.size();
  uint32_t& next = thread.next_entropy[call.api];
  if (next >= count) {
    // After the end of this thread's recording anything goes; there is nothing to compare with.
    if (session.progress().RemainingOf(thread.recorded) == 0) {
      // Unless the process was killed: then the recorded thread never reached this call.
      if (!plan.end().HappensByItself(plan.pid) && !recorded_thread.ended)
        Park(session, thread, InputText(call.api), 0, 0, nullptr);
      return call.Real();
    }
    return DivergeOnEntropy(session, thread, call,
                            "the program asks for random bytes once more than the recorded run (" +
                                std::to_string(count) + " times)");
  }
  const RecordedInput& input = plan.inputs()[it->second[next++]];
  session.progress().ConsumeEntropy();
  ++thread.entropy_served;
  if (!input.hash.IsZero()) {
    const uint64_t size = session.payloads().SizeOf(input.hash).value_or(0);
    const auto bytes =
        size > call.out.size() ? std::nullopt : session.payloads().Read(input.hash, size);
    if (!bytes || size == 0)
      return DivergeOnEntropy(session, thread, call, "the recorded bytes cannot be served");
    return Give(call, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, input.result,
                input.error);
  }
  const std::string_view data = plan.Bytes(input.data);
  if (data.size() > call.out.size())
    return DivergeOnEntropy(session, thread, call,
                            "the program asks for " + std::to_string(call.out.size()) +
                                " random bytes, the recorded run got " +
                                std::to_string(data.size()));
  Give(call, data, input.result, input.error);
}

void RefuseName(Session& session, InputCall& call) {
  const auto api = static_cast<LibcApi>(call.api);
  if (api == LibcApi::kgetaddrinfo) {
    const preload::AskNobody ask_nobody;
    call.Real();
    if (call.result == 0) return;  // no name, but an address
  }
  const std::string what = "a question to a name server (" + InputText(call.api) + ")";
  Say(what +
      " was refused: the recorded run did not ask it, and a replay reaches nothing outside itself");
  session.report().Write(RefusedLine{.what = what, .target = std::nullopt, .option = std::nullopt});
  if (api == LibcApi::kgetaddrinfo || api == LibcApi::kgetnameinfo)
    return Give(call, {}, EAI_AGAIN, 0);
  const uint32_t error = TRY_AGAIN;
  Give(call, {reinterpret_cast<const char*>(&error), sizeof error}, 0, 0);
}

bool ServeRedactedName(Session& session, InputCall& call) {
  if (!session.plan().redacted) return false;
  const RecordedInput* input =
      session.Find<RedactedNames>()->Find(session.plan(), call.api, call.key);
  const std::string_view data = input != nullptr ? session.plan().Bytes(input->data) : "";
  if (input == nullptr || data.size() > call.out.size()) return false;
  Give(call, data, input->result, input->error);
  return true;
}

// What is one value for each question, or what the live machine says.
void Answer(Session& session, InputCall& call) {
  if (ServeIdentity(session.plan(), call)) return;
  if (api::AsksForName(call.api)) {
    if (ServeRedactedName(session, call)) return;
    return RefuseName(session, call);
  }
  call.Real();
}

void ServeMeasure(Session& session, ThreadState& thread, InputCall& call) {
  const InputKey key{call.api, call.key};
  if (thread.recorded == kNone) return Answer(session, call);
  const auto& by_key = session.plan().threads()[thread.recorded].by_key;
  auto it = by_key.find(key);
  if (it == by_key.end()) return Answer(session, call);
  uint32_t& next = thread.next_by_key[key];
  const uint32_t at = it->second[std::min<size_t>(next, it->second.size() - 1)];
  if (next < it->second.size()) ++next;
  const RecordedInput& input = session.plan().inputs()[at];
  const std::string_view data = session.plan().Bytes(input.data);
  if (data.size() > call.out.size()) return call.Real();
  Give(call, data, input.result, input.error);
}

}  // namespace

bool ServeIdentity(const ReplayPlan& plan, InputCall& call) {
  auto it = plan.identities().find({call.api, call.key});
  if (it == plan.identities().end()) return false;
  const RecordedInput& input = plan.inputs()[it->second];
  const std::string_view data = plan.Bytes(input.data);
  if (data.size() > call.out.size()) return false;
  Give(call, data, input.result, input.error);
  return true;
}

void ServeInput(Session& session, ThreadState& thread, InputCall& call) {
  switch (api::InputKindOf(call.api)) {
    case InputKind::kEntropy:
      ServeEntropy(session, thread, call);
      break;
    case InputKind::kClock:
      ServeUsage(session, thread, call);
      break;
    case InputKind::kIdentity:
      Answer(session, call);
      break;
    case InputKind::kMpi:
      ServeMpiClock(session, thread, call);
      break;
    case InputKind::kNone:         // no hook hands it over
    case InputKind::kCreated:      // is hidden when the replay starts
    case InputKind::kMachineFile:  // is served by name (machine_files.h)
    case InputKind::kMeeting:      // by its turn (meetings.h)
    case InputKind::kPosition:     // by the file (served_position.h)
      call.Real();
      break;
    case InputKind::kMeasure:
      ServeMeasure(session, thread, call);
      break;
  }
}

}  // namespace deja::replayer
