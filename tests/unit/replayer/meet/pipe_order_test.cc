// Whose turn it is to write into a pipe, by what its readers got.
#include "replayer/meet/pipe_order.h"

#include <gtest/gtest.h>
#include <limits.h>

#include <string>

namespace deja::replayer {
namespace {

PipeOrder OrderOf(const std::string& bytes, uint64_t begin = 0) {
  PipeOrder order;
  order.readers = 1;
  order.begin = begin;
  order.bytes = bytes;
  order.known.assign(bytes.size(), 1);
  return order;
}

TEST(PipeOrder, AMessageWaitsUntilItIsWhatWasReadNext) {
  const PipeOrder order = OrderOf("firstsecondthird");
  EXPECT_EQ(order.Fits("second", 0), 0u);
  EXPECT_EQ(order.Fits("first", 0), 5u);
  EXPECT_EQ(order.Fits("second", 5), 6u);
  EXPECT_EQ(order.Fits("first", 5), 0u);
}

TEST(PipeOrder, ReadersNeedNotReadInPiecesThatWereWritten) {
  const PipeOrder order = OrderOf("aabbcc");
  EXPECT_EQ(order.Fits("aab", 0), 3u);
  EXPECT_EQ(order.Fits("bcc", 3), 3u);
}

TEST(PipeOrder, BytesReadBeforeTheSecondWriterAreTheFirstOnes) {
  const PipeOrder order = OrderOf("bb", 10);
  EXPECT_EQ(order.Fits("anything", 4), 8u);
  EXPECT_EQ(order.Fits("bb", 10), 2u);
  EXPECT_EQ(order.Fits("cc", 10), 0u);
}

TEST(PipeOrder, UnreadBytesAreWrittenInAnyOrder) {
  const PipeOrder order = OrderOf("ab");
  EXPECT_TRUE(order.IsOver(2));
  EXPECT_EQ(order.Fits("zz", 2), 2u);
  // The last message was read in part.
  EXPECT_EQ(order.Fits("bcd", 1), 3u);
}

TEST(PipeOrder, BytesThatTheRecordingDoesNotHaveMayBelongToAnyWriter) {
  PipeOrder order = OrderOf("a???b");
  for (size_t i = 1; i < 4; ++i) order.known[i] = 0;
  EXPECT_EQ(order.Fits("axyz", 0), 4u);
  EXPECT_EQ(order.Fits("xyzb", 1), 4u);
  EXPECT_EQ(order.Fits("xyzc", 1), 0u);
}

TEST(PipeOrder, ALongMessageIsWrittenInThePiecesInWhichItWasRead) {
  const std::string piece(PIPE_BUF, 'a');
  const PipeOrder order = OrderOf(piece + std::string(PIPE_BUF, 'b') + piece);
  EXPECT_EQ(order.Fits(piece + piece, 0), piece.size());
  EXPECT_EQ(order.Fits(piece + piece, 100), 0u);
}

TEST(PipeOrder, AReadIsAsTheRecorderWroteIt) {
  std::string data(16, '\0');
  data[0] = 7;
  data[8] = 3;
  const std::string whole = data + "abc";
  const RecordedPipeRead read(whole);
  EXPECT_EQ(read.position, 7u);
  EXPECT_EQ(read.size, 3u);
  EXPECT_EQ(read.bytes, "abc");
  EXPECT_FALSE(read.several_readers);
  EXPECT_TRUE(RecordedPipeRead(data).bytes.empty());
  EXPECT_EQ(RecordedPipeRead("short").size, 0u);
}

}  // namespace
}  // namespace deja::replayer
