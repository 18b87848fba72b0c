#include "replayer/sockets/family_order.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

namespace deja::replayer {

using format::TransferKind;

FamilyOrder::FamilyOrder(const ReplayPlan& plan, const std::function<bool(uint32_t)>& is_family)
    : receipts_(plan.connections().size()),
      failures_(plan.connections().size()),
      by_connection_(plan.connections().size()),
      next_(plan.connections().size()),
      received_(plan.connections().size()) {
  struct Moved {
    const PlannedTransfer* transfer;
    uint64_t answer_ns;
  };
  std::vector<Moved> all;
  for (const PlannedTransfer& transfer : plan.transfers()) {
    const bool counts = transfer.kind == TransferKind::kReceived ||
                        (transfer.kind == TransferKind::kSent && transfer.result != 0);
    if (counts && is_family(transfer.connection)) all.push_back({&transfer, transfer.time_ns});
  }
  std::stable_sort(all.begin(), all.end(), [](const Moved& a, const Moved& b) {
    return std::pair(a.transfer->thread, a.transfer->seq) <
           std::pair(b.transfer->thread, b.transfer->seq);
  });
  // Backwards, so that the thread's next answer is known.
  std::map<uint32_t, uint64_t> next_answer;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    const uint32_t thread = it->transfer->thread;
    if (it->transfer->result <= 0) continue;
    if (it->transfer->kind == TransferKind::kSent)
      next_answer[thread] = it->transfer->time_ns;
    else if (const auto answer = next_answer.find(thread); answer != next_answer.end())
      it->answer_ns = answer->second;
  }
  std::stable_sort(all.begin(), all.end(), [](const Moved& a, const Moved& b) {
    return std::pair(a.transfer->connection, a.transfer->number) <
           std::pair(b.transfer->connection, b.transfer->number);
  });
  std::vector<uint64_t> sent(plan.connections().size());
  for (const Moved& moved : all) {
    const uint32_t c = moved.transfer->connection;
    if (moved.transfer->result <= 0) {
      const bool is_sent = moved.transfer->kind == TransferKind::kSent;
      const uint64_t received = receipts_[c].empty() ? 0 : receipts_[c].back().end;
      failures_[c].push_back(
          {moved.transfer->kind, is_sent ? sent[c] : received, moved.transfer->error});
      continue;
    }
    const auto bytes = static_cast<uint64_t>(moved.transfer->result);
    if (moved.transfer->kind == TransferKind::kSent) {
      answers_.push_back({moved.transfer->time_ns, moved.transfer->thread, c, sent[c] += bytes});
    } else {
      const uint64_t before = receipts_[c].empty() ? 0 : receipts_[c].back().end;
      receipts_[c].push_back({before + bytes, moved.answer_ns});
    }
  }
  std::stable_sort(answers_.begin(), answers_.end(),
                   [](const Answer& a, const Answer& b) { return a.time_ns < b.time_ns; });
  for (size_t i = 0; i < answers_.size(); ++i) by_connection_[answers_[i].connection].push_back(i);
  to_receive_ = static_cast<size_t>(std::count_if(
      receipts_.begin(), receipts_.end(), [](const auto& receipts) { return !receipts.empty(); }));
}

uint64_t FamilyOrder::AnswerTo(uint32_t c, uint64_t received) const {
  const auto& receipts = receipts_[c];
  const auto it =
      std::lower_bound(receipts.begin(), receipts.end(), received,
                       [](const Receipt& receipt, uint64_t bytes) { return receipt.end < bytes; });
  return it == receipts.end() ? 0 : it->answer_ns;
}

std::optional<int> FamilyOrder::FailureAt(uint32_t c, TransferKind kind, uint64_t bytes) const {
  for (const Failure& failure : failures_[c])
    if (failure.kind == kind && failure.at == bytes) return failure.error;
  return std::nullopt;
}

bool FamilyOrder::IsNeverAnswered(uint32_t c) const {
  return receipts_[c].empty() &&
         std::any_of(failures_[c].begin(), failures_[c].end(),
                     [](const Failure& failure) { return failure.error == ECONNRESET; });
}

bool FamilyOrder::EndsUnanswered(uint32_t c) const {
  return receipts_[c].empty() && FailureAt(c, TransferKind::kReceived, 0) == 0;
}

void FamilyOrder::Sent(uint32_t c, uint64_t bytes) {
  const auto& answers = by_connection_[c];
  for (size_t& next = next_[c]; next < answers.size() && answers_[answers[next]].end <= bytes;
       ++next)
    answers_[answers[next]].given = true;
}

bool FamilyOrder::MayGoOn(uint32_t thread, uint64_t before) {
  while (first_left_ < answers_.size() && answers_[first_left_].given) ++first_left_;
  for (size_t i = first_left_; i < answers_.size() && answers_[i].time_ns < before; ++i)
    if (!answers_[i].given && answers_[i].thread != thread) return false;
  return true;
}

void FamilyOrder::Received(uint32_t c, uint64_t bytes) {
  const uint64_t all = receipts_[c].empty() ? 0 : receipts_[c].back().end;
  if (received_[c] < all && bytes >= all) --to_receive_;
  received_[c] = bytes;
}

void FamilyOrder::GiveWay(uint64_t before) {
  for (size_t i = first_left_; i < answers_.size() && answers_[i].time_ns < before; ++i)
    answers_[i].given = true;
}

}  // namespace deja::replayer
