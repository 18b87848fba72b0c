#include "cli/serve/recorded_operations.h"

#include "api/c10d_table.h"

namespace deja::cli {
namespace {

using api::C10dApi;
using format::EventKind;
using format::KindBit;

constexpr size_t kEndedOperation = 1;  // arguments of c10d_work
constexpr size_t kSource = 2;

// Without the number of the store: "1:default_pg/0//key" is "default_pg/0//key".
std::string KeyOf(std::string_view key) {
  const size_t colon = key.find(':');
  return std::string(colon == std::string_view::npos ? key : key.substr(colon + 1));
}

bool EndsWithKey(const std::string& recorded, const std::string& key) {
  return recorded == key ||
         (recorded.size() > key.size() && recorded[recorded.size() - key.size() - 1] == '/' &&
          recorded.compare(recorded.size() - key.size(), key.size(), key) == 0);
}

}  // namespace

RecordedOperations::RecordedOperations(const format::RankReader& reader) {
  // First, since a thread's results may stand before another one's enter record.
  FindGroups(reader);
  auto cursor = reader.Events();
  const uint64_t kinds = KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCallLeave) |
                         KindBit(EventKind::kCallResults);
  while (const format::Event* event = cursor->NextOf(kinds)) {
    if (const auto* enter = event->As<format::CallEnter>()) {
      AddEnter(*event, *enter);
    } else if (const auto* leave = event->As<format::CallLeave>()) {
      AddLeave(*event, *leave);
    } else if (const auto* results = event->As<format::CallResults>()) {
      RecordedOperation* operation = Find(results->comm, results->comm_seq);
      if (operation == nullptr) continue;
      operation->state = OperationState::kDone;
      if (!results->outputs.empty()) operation->output = results->outputs[0];
    }
  }
}

void RecordedOperations::FindGroups(const format::RankReader& reader) {
  // c10d_new_group comes first, then the communicator that it has made, on one thread.
  std::map<uint32_t, bool> makes_group;  // by thread
  auto cursor = reader.Events();
  const uint64_t kinds = KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCommCreated);
  while (const format::Event* event = cursor->NextOf(kinds)) {
    if (const auto* enter = event->As<format::CallEnter>()) {
      makes_group[event->thread] = enter->api == static_cast<uint32_t>(C10dApi::c10d_new_group);
    } else if (const auto* created = event->As<format::CommCreated>()) {
      if (!makes_group[event->thread]) {
        has_nccl_ = true;
        continue;
      }
      by_comm_[created->comm] = groups_.size();
      groups_.push_back({std::string(created->name), created->rank, created->nranks});
    }
  }
}

RecordedOperation* RecordedOperations::Find(uint32_t comm, uint64_t number) {
  const auto place = by_comm_.find(comm);
  return place == by_comm_.end() || number == 0 ? nullptr
                                                : &groups_[place->second].operations[number];
}

void RecordedOperations::AddEnter(const format::Event& event, const format::CallEnter& enter) {
  const api::ApiInfo* info = api::FindC10d(enter.api);
  if (info == nullptr) return;
  const Place place(event.thread, event.seq);
  if (api::IsC10dStore(enter.api)) {
    pending_[place] = {nullptr, false, info->name, KeyOf(enter.blob)};
    return;
  }
  if (enter.api == static_cast<uint32_t>(C10dApi::c10d_work)) {
    if (enter.args.size() <= kSource) return;
    RecordedOperation* ended = Find(enter.comm, enter.args[kEndedOperation]);
    if (ended == nullptr) return;
    ended->source = static_cast<int32_t>(enter.args[kSource]);
    ended->error = enter.blob;
    pending_[place] = {ended, true, "", ""};
    return;
  }
  RecordedOperation* operation = Find(enter.comm, enter.comm_seq);
  if (operation == nullptr) return;
  operation->api = enter.api;
  operation->stack = enter.stack;
  operation->args.assign(enter.args.begin(), enter.args.end());
  if (!enter.inputs.empty()) operation->input = enter.inputs[0];
  pending_[place] = {operation, false, "", ""};
}

void RecordedOperations::AddLeave(const format::Event& event, const format::CallLeave& leave) {
  const auto found = pending_.find({event.thread, leave.enter_seq});
  if (found == pending_.end()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (pending.operation == nullptr) {
    if (leave.result == 0) answers_[{pending.function, pending.key}].emplace_back(leave.blob);
    return;
  }
  if (leave.result == 0) return;
  pending.operation->state = pending.is_end ? OperationState::kFailed : OperationState::kRaised;
  if (!pending.is_end) pending.operation->error = leave.blob;
}

const std::vector<std::string>* RecordedOperations::StoreAnswers(const std::string& function,
                                                                 const std::string& key) const {
  for (const auto& [asked, values] : answers_)
    if (asked.first == function && EndsWithKey(asked.second, key)) return &values;
  return nullptr;
}

}  // namespace deja::cli
