// format/wire/message_codec.h against libprotobuf: the same bytes for the same message, both
// directions, and the same fields in messages.h as in trace.proto.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <string>

#include "format/layout/left_out.h"
#include "format/payloads/prediction.h"
#include "format/wire/message_codec.h"
#include "trace.pb.h"

namespace deja::format {
namespace {

namespace pb = google::protobuf;
using FieldType = pb::FieldDescriptor::Type;

// Makes values, and owns what the views of messages point to.
class Source {
 public:
  explicit Source(uint32_t seed) : random_(seed) {}

  bool OneIn(uint32_t n) { return random_() % n == 0; }
  // Values of every width, so that every length of varint occurs.
  uint64_t Number() {
    if (OneIn(8)) return 0;
    if (OneIn(16)) return UINT64_MAX;
    return random_() >> (random_() % 64);
  }
  double Double() {
    switch (random_() % 6) {
      case 0:
        return 0.0;
      case 1:
        return -0.0;
      case 2:
        return std::bit_cast<double>(random_());  // NaNs with payloads included
      default:
        return static_cast<double>(static_cast<int64_t>(random_())) * 1e-9;
    }
  }
  std::string_view Text(bool any_bytes) {
    const size_t size = OneIn(4) ? 0 : OneIn(8) ? 100 + random_() % 300 : random_() % 20;
    std::string& text = texts_.emplace_back();
    for (size_t i = 0; i < size; ++i) {
      text += static_cast<char>(any_bytes ? random_() % 256 : 'a' + random_() % 26);
    }
    return text;
  }
  Hash128 Hash() {
    Hash128 hash;
    if (OneIn(4)) return hash;
    for (uint8_t& byte : hash.bytes) byte = static_cast<uint8_t>(random_());
    return hash;
  }
  size_t Count(size_t most) { return OneIn(3) ? 0 : random_() % (most + 1); }

 private:
  std::mt19937_64 random_;
  std::deque<std::string> texts_;
};

template <typename T>
constexpr FieldType ScalarFieldType() {
  if constexpr (std::is_same_v<T, bool>) return pb::FieldDescriptor::TYPE_BOOL;
  if constexpr (std::is_same_v<T, uint32_t>) return pb::FieldDescriptor::TYPE_UINT32;
  if constexpr (std::is_same_v<T, uint64_t>) return pb::FieldDescriptor::TYPE_UINT64;
  if constexpr (std::is_same_v<T, int32_t>) return pb::FieldDescriptor::TYPE_SINT32;
  if constexpr (std::is_same_v<T, int64_t>) return pb::FieldDescriptor::TYPE_SINT64;
  return pb::FieldDescriptor::TYPE_DOUBLE;
}

// Fills a message of ours and one of libprotobuf's with the same values, field by field.
struct Filler {
  pb::Message* message;
  Source& source;
  bool fill_all;
  std::set<int>* visited = nullptr;

  template <typename T>
  void operator()(uint32_t number, T& value) {
    const pb::FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByNumber(static_cast<int>(number));
    ASSERT_NE(field, nullptr) << message->GetTypeName() << " has no field " << number;
    if (visited != nullptr) visited->insert(field->number());
    EXPECT_EQ(field->is_repeated(), internal::kIsSequence<T>) << field->full_name();
    if (!fill_all && source.OneIn(3)) return;
    if constexpr (internal::kIsSequence<T>) {
      Repeated(field, value);
    } else {
      Single(field, value);
    }
  }

  template <typename T>
  void Single(const pb::FieldDescriptor* field, T& value) {
    const pb::Reflection* reflection = message->GetReflection();
    if constexpr (internal::kIsScalar<T>) {
      EXPECT_EQ(field->type(), ScalarFieldType<T>()) << field->full_name();
      value = MakeScalar<T>();
      SetScalar(field, value);
    } else if constexpr (internal::kIsText<T>) {
      value = MakeText<T>(field);
      reflection->SetString(message, field, std::string(internal::TextOf(value)));
    } else {
      ASSERT_EQ(field->type(), pb::FieldDescriptor::TYPE_MESSAGE) << field->full_name();
      Filler nested{reflection->MutableMessage(message, field), source, fill_all};
      Visit(nested, value);
      // An embedded message without content is not written.
      if (nested.message->ByteSizeLong() == 0) reflection->ClearField(message, field);
    }
  }

  template <typename T>
  void Repeated(const pb::FieldDescriptor* field, T& values) {
    using Element = typename T::value_type;
    const pb::Reflection* reflection = message->GetReflection();
    size_t most = 40;
    if constexpr (!internal::kIsVector<T>) most = T::kCapacity;
    if constexpr (!internal::kIsScalar<Element>) most = std::min<size_t>(most, 5);
    for (size_t count = fill_all ? most : source.Count(most); count > 0; --count) {
      Element element{};
      if constexpr (internal::kIsScalar<Element>) {
        EXPECT_EQ(field->type(), ScalarFieldType<Element>()) << field->full_name();
        EXPECT_TRUE(field->is_packed()) << field->full_name();
        element = MakeScalar<Element>();
        AddScalar(field, element);
      } else if constexpr (internal::kIsText<Element>) {
        element = MakeText<Element>(field);
        reflection->AddString(message, field, std::string(internal::TextOf(element)));
      } else {
        Filler nested{reflection->AddMessage(message, field), source, fill_all};
        Visit(nested, element);
      }
      values.push_back(element);
    }
  }

  template <typename T>
  T MakeScalar() {
    if constexpr (std::is_same_v<T, double>) {
      return source.Double();
    } else {
      return static_cast<T>(source.Number());
    }
  }
  template <typename T>
  T MakeText(const pb::FieldDescriptor* field) {
    if constexpr (std::is_same_v<T, Hash128>) {
      EXPECT_EQ(field->type(), pb::FieldDescriptor::TYPE_BYTES) << field->full_name();
      return source.Hash();
    } else {
      const bool bytes = field->type() == pb::FieldDescriptor::TYPE_BYTES;
      EXPECT_TRUE(bytes || field->type() == pb::FieldDescriptor::TYPE_STRING) << field->full_name();
      return source.Text(bytes);
    }
  }
  template <typename T>
  void SetScalar(const pb::FieldDescriptor* field, T value) {
    const pb::Reflection* r = message->GetReflection();
    if constexpr (std::is_same_v<T, bool>) r->SetBool(message, field, value);
    if constexpr (std::is_same_v<T, uint32_t>) r->SetUInt32(message, field, value);
    if constexpr (std::is_same_v<T, uint64_t>) r->SetUInt64(message, field, value);
    if constexpr (std::is_same_v<T, int32_t>) r->SetInt32(message, field, value);
    if constexpr (std::is_same_v<T, int64_t>) r->SetInt64(message, field, value);
    if constexpr (std::is_same_v<T, double>) r->SetDouble(message, field, value);
  }
  template <typename T>
  void AddScalar(const pb::FieldDescriptor* field, T value) {
    const pb::Reflection* r = message->GetReflection();
    if constexpr (std::is_same_v<T, uint32_t>) r->AddUInt32(message, field, value);
    if constexpr (std::is_same_v<T, uint64_t>) r->AddUInt64(message, field, value);
    if constexpr (std::is_same_v<T, int64_t>) r->AddInt64(message, field, value);
  }
};

// A message without content: the default of TraceHeader.format_major is not 0.
template <typename M>
M Empty() {
  M message;
  Visit([](uint32_t, auto& field) { field = {}; }, message);
  return message;
}

// Which message of trace.proto is which struct.
template <typename Ours, typename Theirs>
struct Pair {
  using OursType = Ours;
  using TheirsType = Theirs;
};

template <typename P>
class WireTest : public testing::Test {};

// Bodies of events first.
using AllMessages = testing::Types<
#define DEJA_EVENT(Message, number, name, passing) Pair<Message, v1::Message>,
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT
    Pair<TraceHeader, v1::TraceHeader>, Pair<ApiName, v1::ApiName>,
    Pair<ProcessInfo, v1::ProcessInfo>, Pair<TailInfo, v1::TailInfo>, Pair<Tensor, v1::Tensor>,
    Pair<TensorStats, v1::TensorStats>, Pair<StackFrame, v1::StackFrame>,
    Pair<ProcessOrigin, v1::ProcessOrigin>, Pair<PayloadChunk, v1::PayloadChunk>,
    Pair<BatchInfo, v1::BatchInfo>, Pair<ThreadRange, v1::ThreadRange>,
    Pair<CommRange, v1::CommRange>, Pair<PayloadInfo, v1::PayloadInfo>,
    Pair<PayloadPieces, v1::PayloadPieces>, Pair<Index, v1::Index>, Pair<Footer, v1::Footer>,
    Pair<ProcessFate, v1::ProcessFate>, Pair<LeftOutMessage, v1::LeftOut>,
    Pair<Segment, v1::Segment>, Pair<SegmentRange, v1::SegmentRange>, Pair<Pressure, v1::Pressure>,
    Pair<IndexBlock, v1::IndexBlock>, Pair<Prediction, v1::Prediction>,
    Pair<PredictedUpdate, v1::PredictedUpdate>, Pair<Predicted, v1::Predicted>,
    Pair<BatchBlock, v1::BatchBlock>>;
TYPED_TEST_SUITE(WireTest, AllMessages);

TYPED_TEST(WireTest, EveryFieldOfTheSchemaIsInTheStruct) {
  using Theirs = typename TypeParam::TheirsType;
  typename TypeParam::OursType ours;
  Theirs theirs;
  Source source(1);
  std::set<int> visited;
  Filler filler{&theirs, source, true, &visited};
  Visit(filler, ours);
  const pb::Descriptor* descriptor = Theirs::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    EXPECT_EQ(visited.count(descriptor->field(i)->number()), 1u)
        << descriptor->field(i)->full_name() << " is not in messages.h";
  }
}

TYPED_TEST(WireTest, BothWriteTheSameBytesAndReadThem) {
  using Ours = typename TypeParam::OursType;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Ours ours = Empty<Ours>();
    typename TypeParam::TheirsType theirs;
    Source source(seed);
    Filler filler{&theirs, source, seed < 3};
    Visit(filler, ours);
    const std::string bytes = theirs.SerializeAsString();
    ASSERT_EQ(EncodeToString(ours), bytes) << "seed " << seed << "\n" << theirs.DebugString();

    typename TypeParam::TheirsType read_by_theirs;
    ASSERT_TRUE(read_by_theirs.ParseFromString(EncodeToString(ours)));
    EXPECT_EQ(read_by_theirs.SerializeAsString(), bytes);

    Ours read_by_ours = Empty<Ours>();
    ASSERT_TRUE(Decode(AsBytes(bytes), read_by_ours));
    ASSERT_EQ(EncodeToString(read_by_ours), bytes) << "seed " << seed;
  }
}

// What libprotobuf accepts of damaged bytes we accept with the same meaning. The exceptions are
// groups and wrong lengths of hashes and fixed-capacity lists, which we refuse.
TYPED_TEST(WireTest, DamagedBytesMeanTheSameToBoth) {
  const pb::LogSilencer silence;  // it complains about each string that is no UTF-8
  std::mt19937 random(7);
  using Ours = typename TypeParam::OursType;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Ours ours = Empty<Ours>();
    typename TypeParam::TheirsType theirs;
    Source source(seed);
    Filler filler{&theirs, source, false};
    Visit(filler, ours);
    std::string bytes = theirs.SerializeAsString();
    if (bytes.empty()) continue;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    Ours read_by_ours = Empty<Ours>();
    if (!Decode(AsBytes(bytes), read_by_ours)) continue;
    typename TypeParam::TheirsType read_by_theirs;
    if (!read_by_theirs.ParseFromString(bytes)) continue;  // strings that are no UTF-8
    // Compare what both know; an embedded message without content has no presence for us.
    read_by_theirs.DiscardUnknownFields();
    typename TypeParam::TheirsType again;
    ASSERT_TRUE(again.ParseFromString(EncodeToString(read_by_ours)));
    Ours from_theirs = Empty<Ours>();
    const std::string by_theirs = read_by_theirs.SerializeAsString();
    ASSERT_TRUE(Decode(AsBytes(by_theirs), from_theirs));
    EXPECT_EQ(EncodeToString(from_theirs), again.SerializeAsString()) << "seed " << seed;
  }
}

// ---- Events

template <size_t I = 1, typename F>
void ForEachBody(const F& f) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    f(std::variant_alternative_t<I, EventBody>{});
    ForEachBody<I + 1>(f);
  }
}

TEST(EventWireTest, TheBodiesOfTheSchemaAreTheAlternativesOfEventBody) {
  std::set<int> ours;
  ForEachBody([&]<typename Body>(Body) { ours.insert(static_cast<int>(kKindOf<Body>)); });
  std::set<int> theirs;
  const pb::OneofDescriptor* body = v1::Event::descriptor()->FindOneofByName("body");
  ASSERT_NE(body, nullptr);
  for (int i = 0; i < body->field_count(); ++i) theirs.insert(body->field(i)->number());
  EXPECT_EQ(ours, theirs);
  EXPECT_EQ(ours.size(), std::variant_size_v<EventBody> - 1);
  // Beside the head and the body there is nothing.
  EXPECT_EQ(v1::Event::descriptor()->field_count(), body->field_count() + 3);
}

TEST(EventWireTest, BothWriteTheSameEventsAndReadThem) {
  ForEachBody([]<typename Body>(Body) {
    const pb::FieldDescriptor* field =
        v1::Event::descriptor()->FindFieldByNumber(static_cast<int>(kKindOf<Body>));
    ASSERT_NE(field, nullptr);
    for (uint32_t seed = 0; seed < 100; ++seed) {
      Source source(seed);
      EventHead head;
      Body body;
      v1::Event theirs;
      Filler head_filler{&theirs, source, seed == 0};
      Visit(head_filler, head);
      Filler body_filler{theirs.GetReflection()->MutableMessage(&theirs, field), source, seed == 0};
      Visit(body_filler, body);
      const std::string bytes = theirs.SerializeAsString();
      ASSERT_EQ(EncodeEventToString(head, body), bytes) << theirs.DebugString();

      Event read;
      ASSERT_TRUE(DecodeEvent(AsBytes(bytes), read));
      ASSERT_NE(read.As<Body>(), nullptr) << field->full_name();
      EXPECT_EQ(EncodeEventToString(read, *read.As<Body>()), bytes);
    }
  });
}

TEST(EventWireTest, ABatchIsTheMessageOfItsEvents) {
  v1::EventBatch theirs;
  std::string ours;
  for (uint64_t i = 0; i < 100; ++i) {
    const Note note{"note"};
    AppendToBatch(AsBytes(EncodeEventToString({1, i, 1000 * i}, note)), ours);
    v1::Event* event = theirs.add_events();
    event->set_thread(1);
    event->set_seq(i);
    event->set_time_ns(1000 * i);
    event->mutable_note()->set_text("note");
  }
  EXPECT_EQ(theirs.SerializeAsString(), ours);
}

TEST(EventWireTest, EveryMessageOfTheSchemaIsTested) {
  std::set<std::string> tested = {"Event", "EventBatch"};
  const auto add = [&]<template <typename...> class List, typename... P>(List<P...>) {
    (tested.insert(P::TheirsType::descriptor()->name()), ...);
  };
  add(AllMessages{});
  const pb::FileDescriptor* file = v1::Event::descriptor()->file();
  for (int i = 0; i < file->message_type_count(); ++i) {
    EXPECT_EQ(tested.count(file->message_type(i)->name()), 1u) << file->message_type(i)->name();
  }
}

}  // namespace
}  // namespace deja::format
