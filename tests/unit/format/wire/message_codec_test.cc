#include "format/wire/message_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace deja::format {
namespace {

std::span<std::byte> Writable(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

Hash128 SomeHash() {
  Hash128 hash;
  for (size_t i = 0; i < hash.bytes.size(); ++i) hash.bytes[i] = static_cast<uint8_t>(i + 1);
  return hash;
}

CallEnter SomeEnter() {
  CallEnter enter;
  enter.api = 12;
  enter.comm = 1;
  enter.comm_seq = 1204;
  enter.args = {0x7ffff0001000, 0, 4096, uint64_t(-1)};
  Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 4096;
  tensor.hash = SomeHash();
  tensor.stats = {1, 2, -3.5, 4.25, 0.0, 1e300};
  tensor.payload = 1;
  enter.inputs.push_back(tensor);
  enter.blob = "blob";
  return enter;
}

TEST(MessageCodecTest, AnEventComesBackAsItWas) {
  const std::string bytes = EncodeEventToString({3, 7, 99}, SomeEnter());
  Event event;
  uint32_t field = 0;
  ASSERT_TRUE(DecodeEvent(AsBytes(bytes), event, &field));
  EXPECT_EQ(field, 4u);
  EXPECT_EQ(event.thread, 3u);
  EXPECT_EQ(event.seq, 7u);
  EXPECT_EQ(event.time_ns, 99u);
  const auto* enter = event.As<CallEnter>();
  ASSERT_NE(enter, nullptr);
  EXPECT_EQ(enter->comm_seq, 1204u);
  ASSERT_EQ(enter->args.size(), 4u);
  EXPECT_EQ(enter->args[3], uint64_t(-1));
  ASSERT_EQ(enter->inputs.size(), 1u);
  EXPECT_EQ(enter->inputs[0].hash, SomeHash());
  EXPECT_EQ(enter->inputs[0].stats, SomeEnter().inputs[0].stats);
  EXPECT_EQ(enter->blob, "blob");
}

TEST(MessageCodecTest, ABodyWithoutFieldsKeepsItsKind) {
  Event event;
  ASSERT_TRUE(DecodeEvent(AsBytes(EncodeEventToString({1, 2, 3}, ThreadEnd{})), event));
  EXPECT_NE(event.As<ThreadEnd>(), nullptr);
}

TEST(MessageCodecTest, ABufferThatIsTooSmallYieldsZeroAndIsNotOverrun) {
  const size_t size = EncodedEventSize({3, 7, 99}, SomeEnter());
  for (size_t room = 0; room < size; ++room) {
    std::string buffer(size, '\xee');
    EXPECT_EQ(EncodeEvent({3, 7, 99}, SomeEnter(), Writable(buffer).first(room)), 0u);
    EXPECT_EQ(buffer.substr(room), std::string(size - room, '\xee'));
  }
  std::string buffer(size, '\0');
  EXPECT_EQ(EncodeEvent({3, 7, 99}, SomeEnter(), Writable(buffer)), size);
}

TEST(MessageCodecTest, EveryTruncationFailsOrYieldsAPrefixOfTheFields) {
  const std::string bytes = EncodeEventToString({3, 7, 99}, SomeEnter());
  Event event;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const bool ok = DecodeEvent(AsBytes(bytes).first(size), event);
    // Only between fields of the head can a cut go unnoticed here; frames have checksums for that.
    EXPECT_TRUE(!ok || event.As<CallEnter>() == nullptr) << size;
  }
}

TEST(MessageCodecTest, UnknownFieldsOfEveryWireTypeAreSkipped) {
  std::string bytes = EncodeToString(Step{42});
  std::string extra(64, '\0');
  WireWriter writer(Writable(extra));
  writer.Tag(100, WireType::kVarint);
  writer.Varint(5);
  writer.Tag(101, WireType::kFixed64);
  writer.Fixed64(5);
  writer.Tag(102, WireType::kFixed32);
  writer.Raw("abcd", 4);
  writer.Tag(103, WireType::kBytes);
  writer.Varint(3);
  writer.Raw("xyz", 3);
  bytes.insert(0, extra.substr(0, writer.size()));
  Step step;
  ASSERT_TRUE(Decode(AsBytes(bytes), step));
  EXPECT_EQ(step.step, 42u);
}

TEST(MessageCodecTest, AKnownNumberWithAnotherWireTypeIsSkipped) {
  std::string bytes(16, '\0');
  WireWriter writer(Writable(bytes));
  writer.Tag(1, WireType::kBytes);
  writer.Varint(2);
  writer.Raw("ab", 2);
  Step step;
  ASSERT_TRUE(Decode(AsBytes(bytes).first(writer.size()), step));
  EXPECT_EQ(step.step, 0u);
}

TEST(MessageCodecTest, AnEventOfAKindFromTheFutureHasNoBodyAndKeepsItsNumber) {
  std::string bytes = EncodeToString(EventHead{1, 2, 3});
  bytes += "\xa2\x06\x03new";  // field 100
  Event event;
  uint32_t field = 0;
  ASSERT_TRUE(DecodeEvent(AsBytes(bytes), event, &field));
  EXPECT_EQ(event.body.index(), 0u);
  EXPECT_EQ(event.seq, 2u);
  EXPECT_EQ(field, 100u);
}

TEST(MessageCodecTest, MalformedInputIsRefused) {
  Step step;
  const std::string_view cases[] = {
      {"\x08", 1},                                               // no value
      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11},      // 70 bits
      {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},  // 11 bytes
      {"\x00\x01", 2},                                           // field number 0
      {"\x12\x05", 2},                                           // length past the end
      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},      // length 2^64-1
      {"\x13\x14", 2},                                           // a group
      {"\x16", 1},                                               // no such wire type
      {"\x80\x80\x80\x80\x80\x01", 6},                           // a tag of more than 32 bits
  };
  for (const std::string_view& bytes : cases) {
    EXPECT_FALSE(Decode(AsBytes(bytes), step)) << testing::PrintToString(bytes);
  }
}

TEST(MessageCodecTest, MoreElementsThanAnInlineVectorHoldsAreRefused) {
  std::string bytes;
  CallLeave one;
  one.outs.push_back(7);
  for (size_t i = 0; i < kMaxCallArgs; ++i) AppendEncoded(one, bytes);
  CallLeave leave;
  EXPECT_TRUE(Decode(AsBytes(bytes), leave));
  AppendEncoded(one, bytes);
  EXPECT_FALSE(Decode(AsBytes(bytes), leave = CallLeave{}));
}

TEST(MessageCodecTest, TheElementBudgetBoundsWhatAMessageCanAllocate) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += std::string("\x0a\x00", 2);  // empty BatchInfo
  Index index;
  EXPECT_TRUE(Decode(AsBytes(bytes), index, 1000));
  Index again;
  EXPECT_FALSE(Decode(AsBytes(bytes), again, 999));
  EXPECT_LE(again.batches.size(), 999u);
}

TEST(MessageCodecTest, AHashOfAnotherLengthIsRefused) {
  Input input;
  EXPECT_FALSE(Decode(AsBytes(std::string_view("\x32\x03"
                                               "abc",
                                               5)),
                      input));
}

TEST(MessageCodecTest, UnpackedElementsAreReadToo) {
  CallLeave leave;
  ASSERT_TRUE(Decode(AsBytes(std::string_view("\x18\x05\x18\x06", 4)), leave));
  ASSERT_EQ(leave.outs.size(), 2u);
  EXPECT_EQ(leave.outs[1], 6u);
}

TEST(MessageCodecTest, NegativeZeroAndExtremesSurvive) {
  TensorStats stats;
  stats.min = -0.0;
  TensorStats back;
  ASSERT_TRUE(Decode(AsBytes(EncodeToString(stats)), back));
  EXPECT_TRUE(std::signbit(back.min));
  for (const int64_t value : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    AsyncError error{1, value, 0, 0}, decoded;
    ASSERT_TRUE(Decode(AsBytes(EncodeToString(error)), decoded));
    EXPECT_EQ(decoded.result, value);
  }
}

TEST(MessageCodecTest, BatchesAreTakenApartAgain) {
  std::string batch;
  AppendToBatch(AsBytes("first"), batch);
  AppendToBatch(AsBytes(std::string(300, 'x')), batch);
  WireReader reader(AsBytes(batch));
  std::span<const std::byte> event;
  ASSERT_TRUE(NextInBatch(reader, event));
  EXPECT_EQ(AsText(event), "first");
  ASSERT_TRUE(NextInBatch(reader, event));
  EXPECT_EQ(event.size(), 300u);
  EXPECT_FALSE(NextInBatch(reader, event));
  EXPECT_TRUE(reader.ok());
}

}  // namespace
}  // namespace deja::format
