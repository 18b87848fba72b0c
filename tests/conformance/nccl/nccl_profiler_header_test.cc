// recorder/nccl/nccl_profiler_abi.h against NVIDIA's headers of the profiler interface.
#include <gtest/gtest.h>

#include <cstdint>

#include "recorder/nccl/nccl_profiler_abi.h"

#include <common.h>
#include <err.h>
#include <profiler.h>
#if __has_include(<profiler_v7.h>)
#include <profiler_v7.h>
#define DEJA_HAVE_PROFILER_V7
#endif

namespace deja::recorder::profiler {
namespace {

// A collective's description, as theirs and ours have it.
#define DEJA_SAME(OurEvent, TheirEvent, ours, theirs)                                       \
  EXPECT_EQ(offsetof(OurEvent, ours), offsetof(TheirEvent, theirs)) << #TheirEvent #theirs; \
  EXPECT_EQ(sizeof(OurEvent{}.ours), sizeof(TheirEvent{}.theirs)) << #TheirEvent #theirs
#define DEJA_SAME_EVENT(OurEvent, TheirEvent, their_channels)                \
  DEJA_SAME(OurEvent, TheirEvent, type, type);                               \
  DEJA_SAME(OurEvent, TheirEvent, parent, parentObj);                        \
  DEJA_SAME(OurEvent, TheirEvent, rank, rank);                               \
  DEJA_SAME(OurEvent, TheirEvent, collective.seq_number, coll.seqNumber);    \
  DEJA_SAME(OurEvent, TheirEvent, collective.func, coll.func);               \
  DEJA_SAME(OurEvent, TheirEvent, collective.send, coll.sendBuff);           \
  DEJA_SAME(OurEvent, TheirEvent, collective.recv, coll.recvBuff);           \
  DEJA_SAME(OurEvent, TheirEvent, collective.count, coll.count);             \
  DEJA_SAME(OurEvent, TheirEvent, collective.root, coll.root);               \
  DEJA_SAME(OurEvent, TheirEvent, collective.datatype, coll.datatype);       \
  DEJA_SAME(OurEvent, TheirEvent, collective.channels, coll.their_channels); \
  DEJA_SAME(OurEvent, TheirEvent, collective.warps, coll.nWarps);            \
  DEJA_SAME(OurEvent, TheirEvent, collective.algorithm, coll.algo);          \
  DEJA_SAME(OurEvent, TheirEvent, collective.protocol, coll.proto)

TEST(NcclProfilerHeaderTest, DescriptionsOfCollectivesAreWhereNcclHasThem) {
  DEJA_SAME_EVENT(EventV1, ncclProfilerEventDescr_v1_t, nMaxChannels);
  DEJA_SAME_EVENT(EventV2, ncclProfilerEventDescr_v2_t, nMaxChannels);
  DEJA_SAME_EVENT(EventV3, ncclProfilerEventDescr_v3_t, nMaxChannels);
  DEJA_SAME_EVENT(EventV4, ncclProfilerEventDescr_v4_t, nChannels);
  DEJA_SAME_EVENT(EventV5, ncclProfilerEventDescr_v5_t, nChannels);
  DEJA_SAME_EVENT(EventV5, ncclProfilerEventDescr_v6_t, nChannels);
#ifdef DEJA_HAVE_PROFILER_V7
  DEJA_SAME_EVENT(EventV5, ncclProfilerEventDescr_v7_t, nChannels);
#endif
}

TEST(NcclProfilerHeaderTest, KindsAndPluginsAreAsNcclHasThem) {
  EXPECT_EQ(kGroup, ncclProfileGroup);
  EXPECT_EQ(kCollective, ncclProfileColl);
  EXPECT_EQ(kCollectiveApi, ncclProfileCollApi);
  EXPECT_EQ(sizeof(PluginV1), sizeof(ncclProfiler_v1_t));
  EXPECT_EQ(sizeof(PluginV4), sizeof(ncclProfiler_v4_t));
  EXPECT_EQ(sizeof(PluginV5), sizeof(ncclProfiler_v6_t));
  EXPECT_EQ(offsetof(PluginV5, init), offsetof(ncclProfiler_v6_t, init));
  EXPECT_EQ(offsetof(PluginV5, start), offsetof(ncclProfiler_v6_t, startEvent));
  EXPECT_EQ(offsetof(PluginV5, stop), offsetof(ncclProfiler_v6_t, stopEvent));
  EXPECT_EQ(offsetof(PluginV5, record), offsetof(ncclProfiler_v6_t, recordEventState));
  EXPECT_EQ(offsetof(PluginV5, finalize), offsetof(ncclProfiler_v6_t, finalize));
#ifdef DEJA_HAVE_PROFILER_V7
  EXPECT_EQ(sizeof(PluginV5), sizeof(ncclProfiler_v7_t));
  EXPECT_EQ(offsetof(PluginV5, start), offsetof(ncclProfiler_v7_t, startEvent));
  EXPECT_EQ(offsetof(PluginV5, finalize), offsetof(ncclProfiler_v7_t, finalize));
#endif
}

}  // namespace
}  // namespace deja::recorder::profiler
