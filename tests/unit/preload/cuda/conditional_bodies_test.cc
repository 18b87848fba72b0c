#include "preload/cuda/conditional_bodies.h"

#include <gtest/gtest.h>

namespace deja::preload {
namespace {

// The number of what is captured on a stream is the stream's handle; nothing on the null stream.
CUresult Ask(CUstream stream, CUstreamCaptureStatus* status, unsigned long long* id) {
  *status = stream == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  *id = reinterpret_cast<uintptr_t>(stream);
  return CUDA_SUCCESS;
}

CUgraph Graph(uintptr_t number) {
  return reinterpret_cast<CUgraph>(number);
}
CUstream Stream(uintptr_t number) {
  return reinterpret_cast<CUstream>(number);
}

TEST(ConditionalBodiesTest, KnowsGraphsAndCapturesThatItWasTold) {
  ConditionalBodies bodies;
  EXPECT_FALSE(bodies.Receive(Stream(16)));
  const CUgraph both[] = {Graph(32), Graph(48)};
  bodies.AddBodies(both);
  EXPECT_TRUE(bodies.IsBody(Graph(32)));
  EXPECT_TRUE(bodies.IsBody(Graph(48)));
  EXPECT_FALSE(bodies.IsBody(Graph(64)));
  bodies.AddCapture(&Ask, Stream(16));
  EXPECT_TRUE(bodies.Receive(Stream(16)));
  EXPECT_FALSE(bodies.Receive(Stream(17)));
}

TEST(ConditionalBodiesTest, AStreamThatCapturesNothingIsOfNone) {
  ConditionalBodies bodies;
  bodies.AddCapture(&Ask, Stream(0));
  bodies.AddCapture(&Ask, Stream(16));
  EXPECT_FALSE(bodies.Receive(Stream(0)));
}

TEST(ConditionalBodiesTest, KeepsTheLatest) {
  ConditionalBodies bodies;
  for (uintptr_t i = 1; i <= 5000; ++i) {
    const CUgraph body[] = {Graph(i * 16)};
    bodies.AddBodies(body);
    bodies.AddCapture(&Ask, Stream(i * 16));
  }
  for (uintptr_t i = 4500; i <= 5000; ++i) {
    EXPECT_TRUE(bodies.IsBody(Graph(i * 16)));
    EXPECT_TRUE(bodies.Receive(Stream(i * 16)));
  }
  EXPECT_FALSE(bodies.IsBody(Graph(16)));
}

}  // namespace
}  // namespace deja::preload
