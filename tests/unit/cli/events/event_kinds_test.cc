// What each row of format/wire/event_kinds.def gives `deja show`.
#include "format/wire/event_kinds.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cli/events/event_fields.h"
#include "cli/events/event_json.h"
#include "cli/events/event_text.h"
#include "cli/events/event_words.h"

namespace deja::cli {
namespace {

template <typename Body>
class EventKindsTest : public testing::Test {};

using Bodies = testing::Types<
#define DEJA_EVENT(Message, number, name, passing) format::Message,
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT
    format::Note>;
TYPED_TEST_SUITE(EventKindsTest, Bodies);

TYPED_TEST(EventKindsTest, HasANameALineAndJson) {
  format::Event event;
  event.body = TypeParam{};
  const RankSummary summary;
  const std::string name = KindName(event);
  EXPECT_EQ(name, KindName(format::kKindOf<TypeParam>));
  EXPECT_NE(name, "unknown");
  EXPECT_NE((", " + KindNames() + ",").find(", " + name + ","), std::string::npos);
  EXPECT_FALSE(DescribeEvent(event, summary).empty());
  EXPECT_EQ(EventToJson(event, summary)["kind"], name);
}

TEST(EventKindsTest, NamesAndNumbersAreUsedOnce) {
  std::set<std::string> names;
  std::set<uint32_t> numbers;
  for (const format::EventKindRow& row : format::kEventKinds) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(numbers.insert(static_cast<uint32_t>(row.kind)).second) << row.name;
    EXPECT_LT(static_cast<uint32_t>(row.kind), 64u) << "KindBit";
  }
}

// Numbers, texts, hashes, lists and embedded messages, each under its name in trace.proto.
TEST(EventFieldsTest, EveryFieldIsThereUnderItsName) {
  format::Snapshot snapshot;
  snapshot.name = "w";
  snapshot.opaque = true;
  snapshot.shape.push_back(3);
  snapshot.tensor.count = 3;
  snapshot.tensor.hash.bytes[0] = 1;
  nlohmann::json json;
  FieldsToJson(snapshot, json);
  EXPECT_EQ(json["name"], "w");
  EXPECT_EQ(json["opaque"], true);
  EXPECT_EQ(json["shape"], nlohmann::json::array({3}));
  EXPECT_EQ(json["tensor"]["count"], 3);
  EXPECT_EQ(json["tensor"]["hash"], HashText(snapshot.tensor.hash));
  EXPECT_EQ(FieldsText(snapshot), " name=w opaque=true stack=0 checkpoint=0");
  EXPECT_EQ(FieldsText(format::ThreadEnd{}), "");
}

// Frozen with the format: what a replay needs of the events before its checkpoint.
TEST(EventKindsTest, CallsPassAndDefinitionsDoNot) {
  const uint64_t passes = format::KindsThat(format::EventPassing::kPasses);
  const uint64_t defines = format::KindsThat(format::EventPassing::kDefines);
  EXPECT_NE(passes & format::KindBit(format::EventKind::kCallEnter), 0u);
  EXPECT_NE(defines & format::KindBit(format::EventKind::kInputFile), 0u);
  EXPECT_EQ(passes & defines, 0u);
}

}  // namespace
}  // namespace deja::cli
