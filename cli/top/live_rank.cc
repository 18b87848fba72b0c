#include "cli/top/live_rank.h"

#include <algorithm>
#include <variant>

#include "api/c10d_table.h"
#include "api/find_api.h"
#include "api/nccl_table.h"
#include "digest/digest.h"

namespace deja::cli {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// Calls that are open at one time; a recording that claims more is damaged.
constexpr size_t kMostOpen = 4096;

template <typename Map>
void DropOldest(Map& map) {
  if (map.size() > kMostOpen) map.erase(map.begin());
}

bool IsCollective(const LiveOperation& operation) {
  return !operation.is_other && !check::IsTransfer(operation.operation);
}

}  // namespace

std::vector<std::pair<uint64_t, const LiveOperation*>> LiveComm::Collectives() const {
  std::vector<std::pair<uint64_t, const LiveOperation*>> numbered;
  uint64_t number = forgotten_collectives;
  uint64_t next = recent.empty() ? 0 : recent.begin()->first;
  for (const auto& [seq, operation] : recent) {
    if (seq != next++ || !operation.is_entered) break;
    if (IsCollective(operation)) numbered.emplace_back(++number, &operation);
  }
  return numbered;
}

LiveRank::LiveRank(uint32_t number, const format::TraceHeader& header)
    : rank(number),
      host(header.process.hostname),
      pid(header.process.pid),
      world_size(header.world_size),
      begin_ns(header.start_wall_ns),
      last_ns(header.start_wall_ns),
      to_wall_(header.start_wall_ns - header.start_mono_ns) {}

void LiveRank::Take(const format::Event& event) {
  last_ns = std::max(last_ns, Wall(event.time_ns));
  std::visit([&](const auto& body) { On(event, body); }, event.body);
}

void LiveRank::On(const format::Event& event, const format::CallEnter& enter) {
  const Key key{event.thread, event.seq};
  if (enter.api == static_cast<uint32_t>(api::C10dApi::c10d_work)) {
    works_[key] = {enter.comm, enter.args.size() > 1 ? enter.args[1] : 0};
    return DropOldest(works_);
  }
  if (enter.api == static_cast<uint32_t>(api::NcclApi::ncclGroupEnd)) {
    group_ends_[key] = event.thread;
    return DropOldest(group_ends_);
  }
  LiveOperation* operation = Of(enter.comm, enter.comm_seq);
  if (operation == nullptr) return;
  const auto signature = check::SignatureOf(enter);
  const bool is_new = !operation->is_entered;
  operation->is_entered = true;
  operation->is_other = !signature;
  if (!signature) return;
  operation->operation = signature->operation;
  operation->begin_ns = Wall(event.time_ns);
  operation->is_torch = api::FindC10d(enter.api) != nullptr;
  operation->is_grouped = enter.group_depth != 0;
  if (signature->count != check::Signature::kAnyCount &&
      signature->dtype != check::Signature::kNoType)
    operation->bytes = signature->count * digest::ElementSize(signature->dtype);
  const api::ApiInfo* info = api::FindApi(enter.api);
  if (const int peer = info == nullptr ? -1 : info->Find(api::Role::kPeer);
      peer >= 0 && static_cast<size_t>(peer) < enter.args.size())
    operation->peer = static_cast<int32_t>(enter.args[static_cast<size_t>(peer)]);
  open_[key] = {enter.comm, enter.comm_seq};
  DropOldest(open_);
  if (operation->is_grouped && !operation->is_torch)
    grouped_[event.thread].push_back({enter.comm, enter.comm_seq});
  if (!is_new) return;
  ++operations;
  bytes += operation->bytes;
  LiveSecond& second = SecondOf(operation->begin_ns);
  ++second.operations;
  second.bytes += operation->bytes;
}

void LiveRank::On(const format::Event& event, const format::CallLeave& leave) {
  const Key key{event.thread, leave.enter_seq};
  if (const auto work = works_.find(key); work != works_.end()) {
    Finish(work->second, event.time_ns);
    works_.erase(work);
  } else if (const auto end = group_ends_.find(key); end != group_ends_.end()) {
    for (const Place& place : grouped_[event.thread]) Finish(place, event.time_ns);
    grouped_.erase(event.thread);
    group_ends_.erase(end);
  } else if (const auto open = open_.find(key); open != open_.end()) {
    const LiveOperation* operation = Of(open->second.comm, open->second.seq);
    // Those of torch.distributed return before they are done, grouped ones before they begin.
    if (operation != nullptr && !operation->is_torch && !operation->is_grouped)
      Finish(open->second, event.time_ns);
    open_.erase(open);
  }
}

void LiveRank::On(const format::Event& event, const format::CallResults& results) {
  Finish({results.comm, results.comm_seq}, event.time_ns);
}

void LiveRank::On(const format::Event&, const format::CommCreated& created) {
  if (created.comm == 0) return;
  LiveComm& comm = comms[created.comm - 1];
  comm.hash = created.hash;
  comm.joined_as = created.joined_as;
  comm.rank = created.rank;
  comm.nranks = created.nranks;
  comm.name = std::string(created.name);
}

void LiveRank::On(const format::Event& event, const format::Step& body) {
  step = body.step;
  ++steps;
  ++SecondOf(Wall(event.time_ns)).steps;
}

void LiveRank::On(const format::Event&, const format::Crash& crash) {
  crashed_by = static_cast<int>(crash.signal);
}

void LiveRank::On(const format::Event&, const format::ProcessExit& exit) {
  constexpr uint32_t kExec = 2;
  if (exit.how != kExec) exit_code = exit.code;
}

// Null for what is no operation, or was forgotten.
LiveOperation* LiveRank::Of(uint32_t comm, uint64_t seq) {
  if (comm == 0 || seq == 0) return nullptr;
  LiveComm& its = comms[comm - 1];
  const auto found = its.recent.find(seq);
  if (found != its.recent.end()) return &found->second;
  const bool is_full = its.recent.size() >= LiveComm::kKept;
  if (is_full && seq < its.recent.begin()->first) return nullptr;
  if (is_full) {
    const auto oldest = its.recent.begin();
    if (IsCollective(oldest->second)) ++its.forgotten_collectives;
    its.recent.erase(oldest);
  }
  return &its.recent[seq];
}

void LiveRank::Finish(Place place, uint64_t time_ns) {
  LiveOperation* operation = Of(place.comm, place.seq);
  if (operation != nullptr && operation->end_ns == 0) operation->end_ns = Wall(time_ns);
}

LiveSecond& LiveRank::SecondOf(uint64_t time_ns) {
  const uint64_t second = time_ns / kSecondNs;
  LiveSecond& its = seconds_[second % seconds_.size()];
  if (its.second < second) its = {second, 0, 0, 0};
  return its;
}

LiveSecond LiveRank::Lately(uint64_t seconds, double& span) const {
  LiveSecond all;
  // The second of the last event has only begun, so what counts are those before it.
  const uint64_t now = last_ns / kSecondNs;
  seconds = std::min<uint64_t>(seconds, seconds_.size() - 1);
  const uint64_t from = std::max(now > seconds ? now - seconds : 0, begin_ns / kSecondNs + 1);
  if (from >= now) {  // a young one: all that there is
    span = static_cast<double>(last_ns - std::min(begin_ns, last_ns)) / 1e9;
    return {0, operations, bytes, steps};
  }
  for (const LiveSecond& its : seconds_) {
    if (its.second < from || its.second >= now) continue;
    all.operations += its.operations;
    all.bytes += its.bytes;
    all.steps += its.steps;
  }
  span = static_cast<double>(now - from);
  return all;
}

}  // namespace deja::cli
