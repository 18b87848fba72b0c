// A RankLog in memory, for tests of what the recorder writes and when.
#ifndef DEJA_TESTS_UNIT_RECORDER_CORE_FAKE_LOG_H_
#define DEJA_TESTS_UNIT_RECORDER_CORE_FAKE_LOG_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "format/wire/message_codec.h"

namespace deja::recorder {

class FakeLog final : public format::RankLog {
 public:
  // The log that was made last, and how many were; a failure that the next one will meet.
  static inline FakeLog* last = nullptr;
  static inline int made = 0;
  static inline std::string create_error;
  static inline std::string rank_error;

  static void Reset() {
    last = nullptr;
    made = 0;
    create_error.clear();
    rank_error.clear();
  }
  static Result<std::unique_ptr<format::RankLog>> Create(const format::RankLogOptions&) {
    if (!create_error.empty()) return Fail(ErrorCode::kIo, create_error);
    ++made;
    auto log = std::make_unique<FakeLog>();
    last = log.get();
    return log;
  }

  format::EventSink* ClaimSink(ThreadIndex) override {
    std::lock_guard hold(mutex_);
    return &sinks_.emplace_back(*this);
  }
  void ReleaseSink(format::EventSink*) override {}
  format::Placed PutPayload(const Hash128& hash, std::span<const std::byte> bytes, uint32_t,
                            uint32_t) override {
    std::lock_guard hold(mutex_);
    if (drop_payloads) return {};
    payloads[hash].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {true, segment};
  }
  [[nodiscard]] uint32_t current_segment() const override { return segment; }
  void BeginStep(uint64_t number) override {
    std::lock_guard hold(mutex_);
    step = number;
  }
  void KeepCheckpoint(uint64_t number) override {
    std::lock_guard hold(mutex_);
    checkpoints.push_back(number);
  }
  Status BecomeRank(format::TraceHeader h) override {
    if (!rank_error.empty()) return Fail(ErrorCode::kIo, rank_error);
    rank = h.rank;
    world_size = h.world_size;
    level = h.level;
    argument_count = h.process.argv.size();
    rank_count++;
    return {};
  }
  Status BecomeChild(format::TraceHeader h) override {
    if (!rank_error.empty()) return Fail(ErrorCode::kIo, rank_error);
    child_path = h.origin.path;
    return {};
  }
  [[nodiscard]] bool is_rank() const override { return rank_count > 0; }
  [[nodiscard]] const std::string& folder() const override { return folder_; }
  void Flush() override {}
  void Finish() override { finished = true; }
  void AbandonInChild() override { abandoned = true; }
  bool AppendEmergency(std::span<const std::byte> event) override {
    Add(event);
    ++emergencies;
    return true;
  }
  [[nodiscard]] format::RankLogCounters counters() const override { return {}; }

  // All events, in the order in which they arrived.
  std::vector<format::Event> Events() {
    std::lock_guard hold(mutex_);
    std::vector<format::Event> events;
    for (const std::string& text : encoded_) {
      format::Event event;
      if (format::DecodeEvent(format::AsBytes(text), event)) events.push_back(event);
    }
    return events;
  }
  // The same as one word each: "enter:ncclAllReduce" needs the table, so kinds only.
  std::vector<format::EventKind> Kinds() {
    std::vector<format::EventKind> kinds;
    for (const format::Event& event : Events())
      std::visit(
          [&](const auto& body) { kinds.push_back(format::kKindOf<std::decay_t<decltype(body)>>); },
          event.body);
    return kinds;
  }

  std::map<Hash128, std::string> payloads;
  uint32_t rank = 0;
  uint32_t world_size = 0;
  uint32_t level = 0;
  size_t argument_count = 0;
  int rank_count = 0;
  std::string child_path;
  int emergencies = 0;
  bool finished = false;
  bool abandoned = false;
  bool drop_payloads = false;
  uint32_t segment = 0;               // that payloads are said to be in
  uint64_t step = 0;                  // the last that began
  std::vector<uint64_t> checkpoints;  // steps that have one
  bool sinks_busy = false;

 private:
  class Sink final : public format::EventSink {
   public:
    explicit Sink(FakeLog& log) : log_(log) {}
    bool Append(std::span<const std::byte> event) override {
      log_.Add(event);
      return true;
    }
    [[nodiscard]] bool busy() const override { return log_.sinks_busy; }

   private:
    FakeLog& log_;
  };

  void Add(std::span<const std::byte> event) {
    std::lock_guard hold(mutex_);
    encoded_.emplace_back(format::AsText(event));
  }

  std::mutex mutex_;
  std::deque<Sink> sinks_;
  std::deque<std::string> encoded_;
  std::string folder_;
};

}  // namespace deja::recorder

#endif  // DEJA_TESTS_UNIT_RECORDER_CORE_FAKE_LOG_H_
