// FakeRank: a rank's recording in memory, event by event, for tests of what reads one.
//
// Keeps copies of what it is given. Not thread-safe, apart from the const functions.
#ifndef DEJA_TESTS_UNIT_REPLAYER_FAKE_RANK_H_
#define DEJA_TESTS_UNIT_REPLAYER_FAKE_RANK_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "digest/digest.h"
#include "format/payloads/payload_table.h"
#include "format/reader/rank_reader.h"
#include "format/wire/batch_info.h"

namespace deja::replayer {

class FakeRank final : public format::RankReader {
 public:
  // Appends an event to a thread's stream; returns its seq.
  template <typename Body>
  uint64_t Add(uint32_t thread, Body body) {
    format::Event event;
    event.thread = thread;
    event.seq = next_seq_[thread]++;
    event.time_ns = ++now_;
    event.body = std::move(body);
    events_.push_back(std::move(event));
    return events_.back().seq;
  }
  // What was added since the last cut is a batch of its own. Without any cut nothing is known of
  // the one batch, as of a tail's.
  void CutBatch() {
    format::BatchSummary summary;
    const size_t begin = cuts_.empty() ? 0 : cuts_.back();
    for (size_t i = begin; i < events_.size(); ++i)
      summary.Add(events_[i], static_cast<uint32_t>(KindOf(events_[i])));
    if (cuts_.empty()) batches_ = format::BatchList();
    batches_.Add(summary.Take(begin, 1));
    cuts_.push_back(events_.size());
  }
  // Events that cursors have given out.
  [[nodiscard]] uint64_t events_read() const { return events_read_; }

  // A string that lives as long as the recording.
  std::string_view Keep(std::string text) { return strings_.emplace_back(std::move(text)); }

  void Thread(uint32_t thread, const char* name) {
    format::ThreadStart start;
    start.thread = thread;
    start.name = name;
    Add(thread, start);
  }

  // An operation that was entered, and its leave unless `left` is false.
  uint64_t Operation(uint32_t thread, uint32_t api, uint32_t comm, uint64_t seq, bool left = true) {
    format::CallEnter enter;
    enter.api = api;
    enter.comm = comm;
    enter.comm_seq = seq;
    const uint64_t entered = Add(thread, enter);
    if (left) Leave(thread, entered, 0);
    return entered;
  }
  uint64_t Call(uint32_t thread, uint32_t api) {
    format::CallEnter enter;
    enter.api = api;
    return Add(thread, enter);
  }
  void Leave(uint32_t thread, uint64_t entered, int64_t result) {
    format::CallLeave leave;
    leave.enter_seq = entered;
    leave.result = result;
    Add(thread, leave);
  }

  Hash128 Payload(std::vector<std::byte> bytes) {
    const Hash128 hash = digest::HashBytes(bytes);
    payloads_[hash] = std::move(bytes);
    return hash;
  }

  format::TraceHeader header_value;

  // RankReader.
  const format::TraceHeader& header() const override { return header_value; }
  const format::EndReport& end() const override { return end_; }
  const format::Footer& totals() const override { return totals_; }
  const format::LeftOut& left_out() const override { return left_out_; }
  const format::BatchList& batches() const override { return batches_; }
  uint64_t file_bytes() const override { return 0; }
  std::unique_ptr<format::EventCursor> Events() const override {
    return std::make_unique<Cursor>(*this, 0, events_.size());
  }
  std::unique_ptr<format::EventCursor> EventsFromOp(uint32_t, uint64_t) const override {
    return Events();
  }
  std::unique_ptr<format::EventCursor> EventsFromStep(uint64_t) const override { return Events(); }
  std::unique_ptr<format::EventCursor> EventsFromBatch(size_t batch) const override {
    return std::make_unique<Cursor>(*this, BeginOf(batch), events_.size());
  }
  [[nodiscard]] bool Dropped(uint32_t) const override { return false; }
  uint32_t PayloadElementSize(const Hash128&) const override { return 1; }
  std::unique_ptr<format::EventCursor> EventsOfBatch(size_t batch) const override {
    return std::make_unique<Cursor>(*this, BeginOf(batch),
                                    batch < cuts_.size() ? cuts_[batch] : events_.size());
  }
  std::optional<uint64_t> PayloadSize(const Hash128& hash) const override {
    auto it = payloads_.find(hash);
    if (it == payloads_.end()) return std::nullopt;
    return it->second.size();
  }
  Status ReadPayload(const Hash128& hash, std::span<std::byte> out) const override {
    auto it = payloads_.find(hash);
    if (it == payloads_.end() || it->second.size() != out.size())
      return Fail(ErrorCode::kNotFound, "no such payload");
    std::memcpy(out.data(), it->second.data(), out.size());
    return {};
  }
  Status StreamPayload(const Hash128& hash,
                       const std::function<void(std::span<const std::byte>)>& sink) const override {
    auto it = payloads_.find(hash);
    if (it == payloads_.end()) return Fail(ErrorCode::kNotFound, "no such payload");
    sink(it->second);
    return {};
  }
  std::vector<format::PayloadInfo> payloads() const override { return {}; }
  void SetPeers(Peers) override {}
  [[nodiscard]] const format::PayloadTable& own_payloads() const override { return no_table_; }

 private:
  format::PayloadTable no_table_;
  class Cursor final : public format::EventCursor {
   public:
    Cursor(const FakeRank& rank, size_t begin, size_t end) : rank_(rank), next_(begin), end_(end) {}
    const format::Event* Next() override { return NextOf(~uint64_t{0}); }
    const format::Event* NextOf(uint64_t kinds) override {
      while (next_ < end_) {
        const format::Event& event = rank_.events_[next_++];
        if ((kinds & format::KindBit(KindOf(event))) == 0) continue;
        ++rank_.events_read_;
        return &event;
      }
      return nullptr;
    }
    std::shared_ptr<const void> batch() const override { return nullptr; }
    size_t batch_number() const override { return 0; }
    std::span<const std::byte> encoded() const override { return {}; }
    const std::string& damage() const override { return damage_; }
    uint64_t damaged_batches() const override { return 0; }

   private:
    const FakeRank& rank_;
    size_t next_;
    size_t end_;
    std::string damage_;
  };

  static format::EventKind KindOf(const format::Event& event) {
    return std::visit(
        [](const auto& body) { return format::kKindOf<std::decay_t<decltype(body)>>; }, event.body);
  }
  [[nodiscard]] size_t BeginOf(size_t batch) const {
    return batch == 0 || cuts_.empty() ? 0 : cuts_[std::min(batch, cuts_.size()) - 1];
  }

  std::deque<format::Event> events_;
  std::deque<std::string> strings_;
  std::map<uint32_t, uint64_t> next_seq_;
  std::map<Hash128, std::vector<std::byte>> payloads_;
  uint64_t now_ = 0;
  std::vector<size_t> cuts_;                       // where each batch ends
  mutable std::atomic<uint64_t> events_read_ = 0;  // by any thread
  format::EndReport end_;
  format::Footer totals_;
  format::LeftOut left_out_;
  format::BatchList batches_{std::vector<format::BatchInfo>(1)};
};

}  // namespace deja::replayer

#endif  // DEJA_TESTS_UNIT_REPLAYER_FAKE_RANK_H_
