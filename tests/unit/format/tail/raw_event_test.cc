#include "format/tail/raw_event.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "tests/support/sample_trace.h"
#include "tests/unit/format/log/rank_scan.h"

namespace deja::format {
namespace {

constexpr uint64_t kPosition = 4096;

template <typename Body>
std::vector<std::byte> RecordOf(const EventHead& head, const Body& body) {
  std::vector<std::byte> record(RawRecordBound(body), std::byte{0xee});
  const size_t size = WriteRawRecord(head, body, kPosition, record.data());
  EXPECT_LE(size, record.size());
  EXPECT_EQ(size % kTailRecordAlign, 0u);
  record.resize(size);
  return record;
}

// The event of a record, "" if it is none.
std::string Encoded(std::span<const std::byte> record, uint64_t position = kPosition) {
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  const auto raw = record.subspan(sizeof header);
  if (header.length != (raw.size() | kRawRecord)) return "";
  if (header.check != RawCheckOf(position, raw)) return "";
  std::string out(kMaxEventBytes, '\0');
  out.resize(EncodeRawEvent(raw, std::span(reinterpret_cast<std::byte*>(out.data()), out.size())));
  return out;
}

template <typename Body>
void ExpectSame(const EventHead& head, const Body& body) {
  EXPECT_EQ(Encoded(RecordOf(head, body)), EncodeEventToString(head, body));
}

CallEnter SomeEnter() {
  CallEnter enter;
  enter.api = 4;
  enter.comm = 1;
  enter.comm_seq = 77;
  enter.stack = 17;
  enter.group_depth = 2;
  enter.args = {1, UINT64_MAX, 0, 7};
  Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 1ull << 40;
  tensor.hash.bytes[3] = 9;
  tensor.stats.sum = -1.5;
  enter.inputs.push_back(tensor);
  enter.inputs.push_back({});
  enter.blob = "blob of an odd length";
  enter.text = "text";
  return enter;
}

TEST(RawEventTest, BecomesWhatTheEncoderWrites) {
  samples::SampleOptions options;
  options.all_kinds = true;
  int raw_ones = 0;
  for (const std::string& encoded : samples::MakeSampleRank(options).events) {
    Event event;
    ASSERT_TRUE(DecodeEvent(AsBytes(encoded), event));
    std::visit(
        [&](const auto& body) {
          if constexpr (kIsRaw<std::decay_t<decltype(body)>>) {
            ExpectSame(event, body);
            ++raw_ones;
          }
        },
        event.body);
  }
  EXPECT_GT(raw_ones, 5);
  ExpectSame({7, 1ull << 50, 1ull << 60}, SomeEnter());
  ExpectSame({0, 0, 0}, CallEnter{});
  ExpectSame({1, 2, 3}, CallLeave{});
  CallLeave leave;
  leave.enter_seq = 9;
  leave.result = -5;
  for (size_t i = 0; i < kMaxCallArgs; ++i) {
    leave.outs.push_back(UINT64_MAX - i);
    ExpectSame({1, 2, 3}, leave);
  }
  Input input;
  input.result = INT64_MIN;
  for (size_t size : {0, 1, 7, 8, 9, 300}) {
    const std::string data(size, 'x');
    input.data = data;
    ExpectSame({1, 2, 3}, input);
  }
}

TEST(RawEventTest, EveryChangedBitIsNoticed) {
  const std::vector<std::byte> good = RecordOf({1, 2, 3}, SomeEnter());
  ASSERT_NE(Encoded(good), "");
  EXPECT_EQ(Encoded(good, kPosition + 8), "") << "a record of another place";
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_EQ(Encoded(bad), "") << bit;
  }
}

// What is checked before cannot be relied on: the check is no secret.
TEST(RawEventTest, NothingIsReadThatIsNotThere) {
  const std::vector<std::byte> record = RecordOf({1, 2, 3}, SomeEnter());
  const std::vector<std::byte> good(record.begin() + sizeof(RecordHeader), record.end());
  std::vector<std::byte> out(kMaxEventBytes);
  for (size_t size = 0; size < good.size(); size += 8) {
    const std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(EncodeRawEvent(cut, out), 0u) << size;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bad = good;
    for (int change = 0; change < 3; ++change)
      bad[random() % bad.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    EXPECT_LE(EncodeRawEvent(bad, out), out.size());
  }
}

// Through the log's own ring, in its order with encoded ones, over its end several times.
TEST(RawEventTest, ARingHasBothKinds) {
  TempDir dir;
  RankLogOptions options;
  options.trace_dir = dir.path();
  options.tail_dir = dir.path();
  options.ring_bytes = 64 << 10;
  auto log = RankLog::Create(options);
  ASSERT_TRUE(log);
  ASSERT_TRUE((*log)->BecomeRank({}));
  EventSink* sink = (*log)->ClaimSink(0);
  uint64_t raw_ones = 0;
  constexpr uint64_t kEvents = 20000;
  for (uint64_t seq = 0; seq < kEvents; ++seq) {
    const EventHead head{0, seq, seq};
    CallEnter enter = SomeEnter();
    enter.comm_seq = seq;
    if (seq % 3 != 0 && sink->AppendRaw(head, enter)) {
      ++raw_ones;
    } else {
      ASSERT_TRUE(sink->Append(AsBytes(EncodeEventToString(head, enter))));
    }
  }
  EXPECT_GT(raw_ones, 100u);
  const std::string folder = (*log)->folder();
  (*log)->Finish();
  CallEnter enter = SomeEnter();
  EXPECT_FALSE(sink->AppendRaw({0, kEvents, 0}, enter)) << "a finished log takes nothing";
  auto reader = RankReader::Open(folder, {});
  ASSERT_TRUE(reader);
  auto cursor = (*reader)->Events();
  uint64_t seq = 0;
  while (const Event* event = cursor->Next()) {
    if (event->thread != 0) continue;
    ASSERT_EQ(event->seq, seq);
    ASSERT_NE(event->As<CallEnter>(), nullptr);
    EXPECT_EQ(event->As<CallEnter>()->comm_seq, seq);
    EXPECT_EQ(event->As<CallEnter>()->blob, "blob of an odd length");
    ++seq;
  }
  EXPECT_EQ(seq, kEvents);
}

}  // namespace
}  // namespace deja::format
