// One tensor of a trace: found by its operation, shown, written for NumPy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/tensors/npy.h"
#include "cli/tensors/tensor_lookup.h"
#include "cli/tensors/tensor_text.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

TEST(TensorName, IsACommunicatorAndANumber) {
  EXPECT_EQ(ParseTensorName("3:412")->seq, 412u);
  EXPECT_EQ(ParseTensorName("3:412")->Text(), "3:412");
  for (const char* text : {"", "3", ":", "3:", ":4", "-1:4", "3:4x", "99999999999:1"})
    EXPECT_FALSE(ParseTensorName(text)) << text;
}

TEST(TensorLookup, FindsInputsAndResultsOfOneOperation) {
  WrittenRank rank;
  rank.Begin();
  format::CallEnter enter;
  enter.api = 1;
  enter.comm = 1;
  enter.comm_seq = 2;
  format::Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 3;
  tensor.hash.bytes[0] = 1;
  enter.inputs.push_back(tensor);
  rank.Add(enter);
  format::CallResults results;
  results.comm = 1;
  results.comm_seq = 2;
  tensor.hash.bytes[0] = 2;
  results.outputs.push_back(tensor);
  rank.Add(results);
  rank.EndBatch();
  const format::RankReader& reader = rank.Reader();
  const auto found = FindTensors(reader, {0, 2});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(ChooseTensor(*found, false).role, TensorRole::kResult);
  EXPECT_EQ(ChooseTensor(*found, true).role, TensorRole::kInput);
  EXPECT_NE(ReadTensor(reader, found->front().tensor).error().message.find("level full"),
            std::string::npos);
  // One without digests, and one that is not there.
  EXPECT_NE(FindTensors(reader, {0, 1}).error().message.find("not digested"), std::string::npos);
  EXPECT_NE(FindTensors(reader, {0, 9}).error().message.find("no such operation"),
            std::string::npos);
}

TEST(TensorName, OfAShownTensorHasALetterAndPerhapsAStep) {
  const auto plain = ParseTensorName("conv1.weight");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->shown, "conv1.weight");
  EXPECT_FALSE(plain->step);
  const auto stepped = ParseTensorName("conv1.weight@17");
  ASSERT_TRUE(stepped);
  EXPECT_EQ(stepped->shown, "conv1.weight");
  EXPECT_EQ(stepped->step, 17u);
  EXPECT_EQ(stepped->Text(), "conv1.weight@17");
  EXPECT_EQ(ParseTensorName("a@b")->shown, "a@b");
}

TEST(TensorLookup, FindsTheLastShownOneOrThatOfAStep) {
  WrittenRank rank;
  rank.Begin();
  for (uint8_t step = 1; step <= 3; ++step) {
    rank.Add(format::Step{step});
    format::Snapshot snapshot;
    snapshot.name = "loss";
    snapshot.tensor.hash.bytes[0] = step;
    if (step != 2) rank.Add(snapshot);
  }
  rank.EndBatch();
  const format::RankReader& reader = rank.Reader();
  const auto first_byte = [&](const char* name) {
    const auto found = FindTensors(reader, *ParseTensorName(name));
    return found ? found->front().tensor.hash.bytes[0] : 0;
  };
  EXPECT_EQ(first_byte("loss"), 3);
  EXPECT_EQ(first_byte("loss@1"), 1);
  EXPECT_EQ(FindTensors(reader, *ParseTensorName("loss"))->front().role, TensorRole::kShown);
  EXPECT_NE(FindTensors(reader, *ParseTensorName("loss@2")).error().message.find("in no step 2"),
            std::string::npos);
  EXPECT_NE(FindTensors(reader, *ParseTensorName("lost")).error().message.find("of that name"),
            std::string::npos);
}

TEST(TensorText, HasStatisticsAndAHistogram) {
  std::vector<float> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  const auto bytes = std::as_bytes(std::span(values));
  const Histogram histogram = HistogramOf(bytes, 7);
  EXPECT_EQ(histogram.least, 0);
  EXPECT_EQ(histogram.greatest, 99);
  uint64_t all = 0;
  for (const uint64_t count : histogram.counts) all += count;
  EXPECT_EQ(all, 99u);
  TensorView view;
  view.found.tensor.dtype = 7;
  view.found.tensor.count = 100;
  view.found.role = TensorRole::kResult;
  view.place = "rank 2, 0:412";
  view.bytes = bytes;
  const auto lines = TensorLines(view);
  EXPECT_EQ(lines[0], "rank 2, 0:412: result, float32[100]");
  EXPECT_EQ(lines[3], "  elements  0 1 2 3 4 5 6 nan …");
  EXPECT_EQ(lines.size(), 4 + Histogram::kBins);
  EXPECT_EQ(TensorJson(view)["histogram"]["greatest"], 99);
  view.bytes = {};
  view.why_no_bytes = "its bytes were not kept";
  EXPECT_EQ(TensorLines(view).back(), "  elements  its bytes were not kept");
}

TEST(TensorText, AHistogramOfTheGreatestNumbersIsFinite) {
  const double most = std::numeric_limits<double>::max();
  const std::vector<double> values = {-most, 0, most};
  const Histogram histogram = HistogramOf(std::as_bytes(std::span(values)), 8);
  EXPECT_EQ(histogram.counts[0] + histogram.counts[8] + histogram.counts[15], 3u);
}

TEST(Npy, HeaderIsNumPys) {
  const std::string header = NpyHeader(7, 5);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(1, 5), "NUMPY");
  EXPECT_NE(header.find("'descr': '<f4'"), std::string::npos);
  EXPECT_NE(header.find("(5,)"), std::string::npos);
  EXPECT_EQ(header.back(), '\n');
}

}  // namespace
}  // namespace deja::cli
