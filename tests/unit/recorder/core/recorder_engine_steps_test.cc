#include "tests/unit/recorder/core/recorder_engine_fixture.h"

#include "preload/engine/checkpoint_registry.h"

namespace deja::recorder {
namespace {

TEST_F(RecorderEngineTest, StepsAreCountedAndPayloadsNameTheirSegment) {
  engine_->OnStep(700);  // before there is a log
  InitRank(kComm);
  engine_->OnStep(701);
  engine_->OnStep(702);
  EXPECT_EQ(log().step, 3u);
  log().segment = 5;
  preload::SnapshotCall call;
  call.name = "w1";
  call.data = send_;
  call.bytes = sizeof send_;
  call.dtype = ncclFloat32;
  engine_->OnSnapshot(call);
  EXPECT_EQ(All<format::Snapshot>().back().tensor.segment, 5u);
}

TEST_F(RecorderEngineTest, ACheckpointHasWhatIsRegisteredAndItsEventComesLast) {
  InitRank(kComm);
  engine_->OnCheckpointWanted();
  EXPECT_EQ(engine_->OnStep(4), 4u);  // the first one needs none
  preload::RegisteredObject tensor;
  std::strcpy(tensor.name, "weights");
  tensor.data = send_;
  tensor.bytes = sizeof send_;
  tensor.dtype = ncclFloat32;
  tensor.dims = 1;
  tensor.shape[0] = 4;
  preload::RegisteredObject state;
  std::strcpy(state.name, "state");
  state.save = [](void* user, preload::RegisteredObject::Write write, void* sink) {
    write(sink, user, 2);
    write(sink, "xyz", 3);
  };
  char first[] = "ab";
  state.user = first;
  auto& registry = preload::CheckpointRegistry::Get();
  registry.Register(tensor);
  registry.Register(state);
  engine_->OnStep(5);
  EXPECT_TRUE(All<format::Checkpoint>().empty()) << "nobody asked";
  engine_->OnCheckpointWanted();
  EXPECT_EQ(engine_->OnStep(6), 6u);
  EXPECT_EQ(log().Kinds().back(), format::EventKind::kCheckpoint);
  const auto checkpoint = All<format::Checkpoint>().back();
  EXPECT_EQ(checkpoint.number, 1u);
  EXPECT_EQ(checkpoint.step, 6u);
  EXPECT_EQ(checkpoint.items, 2u);
  EXPECT_EQ(checkpoint.missing, 0u);
  EXPECT_EQ(checkpoint.bytes, sizeof send_ + 5);
  const auto items = All<format::Snapshot>();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].name, "weights");
  EXPECT_EQ(items[0].checkpoint, 1u);
  EXPECT_FALSE(items[0].opaque);
  EXPECT_TRUE(items[1].opaque);
  EXPECT_EQ(log().payloads[items[1].tensor.hash], "abxyz");
  EXPECT_EQ(log().checkpoints, std::vector<uint64_t>{3});
  log().drop_payloads = true;
  engine_->OnCheckpointWanted();
  registry.Unregister("state");
  engine_->OnStep(7);
  EXPECT_EQ(All<format::Checkpoint>().back().missing, 1u);
  EXPECT_EQ(log().checkpoints.size(), 1u) << "no window begins there";
  registry.Unregister("weights");
}

TEST_F(RecorderEngineTest, SnapshotsCarryNameShapeAndPayload) {
  InitRank(kComm);
  int64_t shape[] = {2, 2};
  preload::SnapshotCall call;
  call.name = "w1";
  call.data = send_;
  call.bytes = sizeof send_;
  call.dtype = ncclFloat32;
  call.shape = shape;
  engine_->OnSnapshot(call);
  auto snapshot = All<format::Snapshot>().back();
  EXPECT_EQ(snapshot.name, "w1");
  EXPECT_EQ(snapshot.tensor.count, 4u);
  EXPECT_EQ(snapshot.shape.size(), 2u);
  EXPECT_EQ(snapshot.tensor.segment, 0u);
  EXPECT_EQ(log().payloads.count(snapshot.tensor.hash), 1u);
}

TEST_F(RecorderEngineTest, UpdatesAreEvents) {
  format::OptimizerUpdate update;
  update.optimizer = 2;
  update.count = 4;
  update.gradient = 0x1000;
  update.learning_rate = 0.5;
  engine_->OnUpdate(update);
  EXPECT_EQ(FakeLog::made, 0) << "this is no rank yet";
  InitRank(kComm);
  update.updates = 2;
  engine_->OnUpdate(update);
  const auto updates = All<format::OptimizerUpdate>();
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].updates, 0u);
  EXPECT_EQ(updates[1].updates, 2u);
  EXPECT_EQ(updates[1].gradient, 0x1000u);
  EXPECT_EQ(updates[1].learning_rate, 0.5);
}

}  // namespace
}  // namespace deja::recorder
