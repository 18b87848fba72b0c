#include "format/wire/event_encoder.h"

#include <gtest/gtest.h>

#include <string>

#include "format/reader/rank_reader.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

template <typename Body>
void ExpectSame(const EventHead& head, const Body& body) {
  const std::string expected = EncodeEventToString(head, body);
  std::string out(expected.size() + 4096, '\xee');
  out.resize(
      EncodeEventOnce(head, body, std::span(reinterpret_cast<std::byte*>(out.data()), out.size())));
  EXPECT_EQ(out, expected);
}

TEST(EventEncoderTest, WritesWhatTheOtherEncoderWrites) {
  samples::SampleOptions options;
  options.all_kinds = true;
  const samples::SampleRank sample = samples::MakeSampleRank(options);
  ASSERT_GT(sample.events.size(), 20u);
  for (const std::string& encoded : sample.events) {
    Event event;
    ASSERT_TRUE(DecodeEvent(AsBytes(encoded), event));
    std::visit(
        [&](const auto& body) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(body)>, std::monostate>)
            ExpectSame(event, body);
        },
        event.body);
  }
}

TEST(EventEncoderTest, LengthsOfEverySize) {
  for (size_t size : {0, 1, 100, 126, 127, 128, 129, 300, 2000, 16383, 16384, 20000}) {
    const std::string text(size, 'x');
    ExpectSame({1, 2, 3}, Note{text});
    Snapshot snapshot;
    snapshot.name = text;
    snapshot.shape = {1, 1ull << 40};
    ExpectSame({0, 0, 0}, snapshot);
  }
  CallEnter enter;
  for (size_t i = 0; i < kMaxCallArgs; ++i) {
    enter.args.push_back(UINT64_MAX - i);
    ExpectSame({7, 1ull << 50, 1ull << 60}, enter);
  }
  enter.inputs.push_back({});
  ExpectSame({7, 8, 9}, enter);
  ExpectSame({7, 8, 9}, ThreadEnd{});
}

TEST(EventEncoderTest, RefusesWhatMayNotFit) {
  std::byte small[64];
  EXPECT_EQ(EncodeEventOnce({1, 2, 3}, Note{std::string(64, 'x')}, small), 0u);
}

}  // namespace
}  // namespace deja::format
