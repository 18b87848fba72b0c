// What NCCL tells the profiler plugin, and to which of the recorded calls it belongs.
#include "recorder/nccl/nccl_choices.h"

#include <thread>

#include "recorder/nccl/nccl_profiler_abi.h"
#include "tests/unit/recorder/core/recorder_engine_fixture.h"

namespace deja::recorder {
namespace {

using testing::UnorderedElementsAre;

constexpr uint64_t kOther = 0x2000;
constexpr int kRank = 2;

template <typename Plugin>
Plugin* PluginOf(const char* name) {
  return static_cast<Plugin*>(NcclChoices::Plugin(name));
}

// NCCL's side of the interface.
struct Nccl4 {
  profiler::PluginV4* plugin = PluginOf<profiler::PluginV4>("ncclProfiler_v4");
  void* context = nullptr;
  int mask = 0;

  Nccl4() { plugin->init(&context, &mask, "comm", 1, 1, 4, kRank, nullptr); }

  void Launch(const void* send, void* recv, size_t count, const char* func = "AllReduce",
              const char* algorithm = "RING", int rank = kRank) const {
    profiler::EventV4 event{};
    event.type = profiler::kCollective;
    event.rank = rank;
    event.collective.func = func;
    event.collective.send = send;
    event.collective.recv = recv;
    event.collective.count = count;
    event.collective.channels = 2;
    event.collective.algorithm = algorithm;
    event.collective.protocol = "LL128";
    void* handle = nullptr;
    plugin->start(context, &handle, &event);
    EXPECT_NE(handle, nullptr);
    plugin->stop(handle);
  }
};

class NcclChoicesTest : public RecorderEngineTest {
 protected:
  // "comm #operation ALGORITHM"
  std::vector<std::string> Chosen() {
    std::vector<std::string> chosen;
    for (const format::AlgorithmChosen& one : All<format::AlgorithmChosen>())
      chosen.push_back(std::to_string(one.comm - 1) + " #" + std::to_string(one.comm_seq) + " " +
                       std::string(one.algorithm));
    return chosen;
  }
  void Reduce(uint64_t comm, float* send, float* recv, const std::function<void()>& inside) {
    TestCall call(NcclApi::ncclAllReduce,
                  {Word(send), Word(recv), 4, ncclFloat32, ncclSum, comm, 0}, [&] {
                    inside();
                    return ncclSuccess;
                  });
    engine_->OnNcclCall(call);
  }
  void Group(const std::function<void()>& calls, const std::function<void()>& at_end) {
    Do(NcclApi::ncclGroupStart, {});
    calls();
    TestCall end(NcclApi::ncclGroupEnd, {}, [&] {
      at_end();
      return ncclSuccess;
    });
    engine_->OnNcclCall(end);
  }
};

TEST_F(NcclChoicesTest, ThereIsAPluginOfEachVersion) {
  for (const char* name :
       {"ncclProfiler_v1", "ncclProfiler_v2", "ncclProfiler_v3", "ncclProfiler_v4",
        "ncclProfiler_v5", "ncclProfiler_v6", "ncclProfiler_v7"})
    EXPECT_NE(NcclChoices::Plugin(name), nullptr) << name;
  EXPECT_EQ(NcclChoices::Plugin("ncclProfiler_v8"), nullptr);
}

TEST_F(NcclChoicesTest, AChoiceBelongsToTheCallThatReportsIt) {
  InitRank(kComm);
  const Nccl4 nccl;
  EXPECT_EQ(nccl.mask, profiler::kGroup | profiler::kCollective);
  AllReduce(kComm);
  Reduce(kComm, send_, receive_, [&] { nccl.Launch(send_, receive_, 4); });
  EXPECT_THAT(Chosen(), ElementsAre("0 #2 RING"));
  const format::AlgorithmChosen chosen = All<format::AlgorithmChosen>().at(0);
  EXPECT_EQ(chosen.api, static_cast<uint32_t>(NcclApi::ncclAllReduce));
  EXPECT_EQ(chosen.protocol, "LL128");
  EXPECT_EQ(chosen.channels, 2u);
}

TEST_F(NcclChoicesTest, InAGroupTheBuffersTellTheOperation) {
  InitRank(kComm);
  const Nccl4 nccl;
  float more[4] = {};
  Group(
      [&] {
        Reduce(kComm, send_, receive_, [] {});
        Reduce(kComm, more, more, [] {});
      },
      [&] {
        nccl.Launch(more, more, 4, "AllReduce", "TREE");
        nccl.Launch(send_, receive_, 4, "AllReduce", "RING");
      });
  EXPECT_THAT(Chosen(), UnorderedElementsAre("0 #1 RING", "0 #2 TREE"));
}

TEST_F(NcclChoicesTest, OperationsThatAreAlikeHaveOneEach) {
  InitRank(kComm);
  const Nccl4 nccl;
  Group(
      [&] {
        Reduce(kComm, send_, receive_, [] {});
        Reduce(kComm, send_, receive_, [] {});
      },
      [&] {
        nccl.Launch(send_, receive_, 4);
        nccl.Launch(send_, receive_, 4);
        nccl.Launch(send_, receive_, 4);
      });
  EXPECT_THAT(Chosen(), UnorderedElementsAre("0 #1 RING", "0 #2 RING"));
}

TEST_F(NcclChoicesTest, AChoiceThatFitsTwoCommunicatorsBelongsToNone) {
  InitRank(kComm);
  InitRank(kOther);
  const Nccl4 nccl;
  Group(
      [&] {
        Reduce(kComm, send_, receive_, [] {});
        Reduce(kOther, send_, receive_, [] {});
      },
      [&] { nccl.Launch(send_, receive_, 4); });
  EXPECT_THAT(Chosen(), IsEmpty());
}

TEST_F(NcclChoicesTest, AChoiceWithoutAnOperationBelongsToNone) {
  InitRank(kComm);
  const Nccl4 nccl;
  Reduce(kComm, send_, receive_, [&] {
    nccl.Launch(send_, send_, 4);
    nccl.Launch(send_, receive_, 5);
    nccl.Launch(send_, receive_, 4, "Broadcast");
    nccl.Launch(send_, receive_, 4, "AllReduce", "RING", kRank + 1);
  });
  nccl.Launch(send_, receive_, 4);
  EXPECT_THAT(Chosen(), IsEmpty());
}

TEST_F(NcclChoicesTest, BytesAreAsGoodAsElements) {
  InitRank(kComm);
  const Nccl4 nccl;
  TestCall call(NcclApi::ncclAllGather, {Word(send_), Word(receive_), 1, ncclFloat32, kComm, 0},
                [&] {
                  nccl.Launch(send_, receive_, sizeof(float), "AllGather");
                  return ncclSuccess;
                });
  engine_->OnNcclCall(call);
  EXPECT_THAT(Chosen(), ElementsAre("0 #1 RING"));
}

TEST_F(NcclChoicesTest, AReduceWithoutAResultHereIsReportedInAGroup) {
  InitRank(kComm);
  const Nccl4 nccl;
  Group(
      [&] {
        Do(NcclApi::ncclReduce,
           {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, 0, kComm, 0});
      },
      [&] { nccl.Launch(send_, receive_, 4, "Reduce"); });
  EXPECT_THAT(Chosen(), ElementsAre("0 #1 RING"));
  EXPECT_THAT(All<format::CallResults>(), IsEmpty());
}

TEST_F(NcclChoicesTest, FromVersionFiveOnACallIsKnownOnOtherThreadsToo) {
  InitRank(kComm);
  InitRank(kOther);
  auto* plugin = PluginOf<profiler::PluginV5>("ncclProfiler_v6");
  void* context = nullptr;
  int mask = 0;
  plugin->init(&context, 1, &mask, "comm", 1, 4, kRank, nullptr);
  EXPECT_EQ(mask, profiler::kGroup | profiler::kCollective | profiler::kCollectiveApi);
  void* operation = nullptr;
  Reduce(kOther, send_, receive_, [&] {
    profiler::EventV5 event{};
    event.type = profiler::kCollectiveApi;
    plugin->start(context, &operation, &event);
  });
  profiler::EventV5 event{};
  event.type = profiler::kCollective;
  event.parent = operation;
  event.collective.func = "AllReduce";
  event.collective.algorithm = "NVLS";
  event.collective.protocol = "SIMPLE";
  // At each launch of a graph, say.
  std::thread([&] {
    void* handle = nullptr;
    for (int launch = 0; launch < 3; ++launch) plugin->start(context, &handle, &event);
  }).join();
  EXPECT_THAT(Chosen(), IsEmpty());
  AllReduce(kComm);
  EXPECT_THAT(Chosen(), ElementsAre("1 #1 NVLS"));
}

TEST_F(NcclChoicesTest, VersionOneSaysItInNumbers) {
  InitRank(kComm);
  auto* plugin = PluginOf<profiler::PluginV1>("ncclProfiler_v1");
  void* context = nullptr;
  int mask = 0;
  plugin->init(&context, &mask);
  Reduce(kComm, send_, receive_, [&] {
    profiler::EventV1 event{};
    event.type = profiler::kCollective;
    event.rank = kRank;
    event.collective.func = 4;
    event.collective.send = send_;
    event.collective.recv = receive_;
    event.collective.count = 4;
    event.collective.algorithm = 5;
    event.collective.protocol = 2;
    void* handle = nullptr;
    plugin->start(context, &handle, &event);
    event.collective.func = 99;  // of a newer NCCL
    plugin->start(context, &handle, &event);
  });
  EXPECT_THAT(Chosen(), ElementsAre("0 #1 NVLS_TREE"));
  EXPECT_EQ(All<format::AlgorithmChosen>().at(0).protocol, "SIMPLE");
}

TEST_F(NcclChoicesTest, AWindowIsSaidOnceForItsCommunicator) {
  InitRank(kComm);
  uint64_t window = 0x77;
  for (int i = 0; i < 2; ++i)
    Do(NcclApi::ncclCommWindowRegister, {kComm, Word(send_), 16, Word(&window), 0});
  const std::vector<format::Degraded> said = All<format::Degraded>();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(
      said[0].reason,
      "bytes that other ranks may have put into the windows of comm 0 by one-sided operations");
  EXPECT_EQ(said[0].payloads_lost, 0u);
}

}  // namespace
}  // namespace deja::recorder
