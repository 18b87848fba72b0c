#include "recorder/steps/checkpoints.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "digest/digest.h"
#include "format/tensor/payload_series.h"
#include "preload/cuda/device.h"
#include "preload/engine/checkpoint_registry.h"
#include "preload/engine/snapshot_event.h"
#include "preload/process/guard.h"
#include "preload/process/threads.h"
#include "recorder/steps/step_state.h"

namespace deja::recorder {
namespace {

using preload::CheckpointRegistry;
using preload::RegisteredObject;

void WriteItem(Recording& rec, const preload::SnapshotCall& call, format::Checkpoint& checkpoint) {
  format::Snapshot item;
  preload::DescribeSnapshot(call, item);
  item.checkpoint = checkpoint.number;
  bool kept = call.bytes == 0;
  std::span<const std::byte> bytes{static_cast<const std::byte*>(call.data), call.bytes};
  std::optional<std::vector<std::byte>> copy;
  if (!kept && !preload::IsHostMemory(call.data)) {
    copy = preload::ReadShown(call.data, call.bytes);
    bytes = copy ? std::span<const std::byte>(*copy) : std::span<const std::byte>();
  }
  if (!kept && bytes.size() == call.bytes) {
    item.tensor.hash = digest::HashBytes(bytes);
    const format::Placed placed =
        rec.KeepPayload(item.tensor.hash, bytes, digest::ElementSize(item.tensor.dtype),
                        format::CheckpointSeries(std::hash<std::string_view>()(item.name)));
    kept = placed.kept;
    item.tensor.segment = placed.segment;
  }
  item.tensor.payload =
      static_cast<uint32_t>(kept ? format::PayloadState::kKept : format::PayloadState::kDropped);
  rec.writer.Write(item);
  ++checkpoint.items;
  checkpoint.bytes += call.bytes;
  if (!kept) ++checkpoint.missing;
}

// Where the program stands in files that it reads.
void AddFiles(format::Checkpoint& checkpoint) {
  constexpr int kMostDescriptors = 256;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    const off_t position = lseek(fd, 0, SEEK_CUR);
    if (position < 0) continue;
    struct stat info;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || fstat(fd, &info) != 0 ||
        !S_ISREG(info.st_mode))
      continue;
    if (checkpoint.descriptors.size() == format::kMaxCheckpointFiles) return;
    checkpoint.descriptors.push_back(static_cast<uint32_t>(fd));
    checkpoint.positions.push_back(static_cast<uint64_t>(position));
  }
}

}  // namespace

void TakeCheckpoint(Recording& rec, uint64_t step, uint64_t number) {
  CheckpointRegistry& registry = CheckpointRegistry::Get();
  if (registry.empty()) {
    if (!StepsOf(rec).checkpoints.said_nothing_registered.exchange(true))
      SayOnce("no checkpoint is taken: the program has registered nothing (deja.h)");
    return;
  }
  format::RankLog* log = rec.log();
  // A replay from the start reaches the first step by itself.
  if (number == 1 && log != nullptr) log->KeepCheckpoint(number);
  if (number == 1) return;
  format::Checkpoint checkpoint;
  checkpoint.number = StepsOf(rec).checkpoints.taken.fetch_add(1) + 1;
  checkpoint.step = step;
  RegisteredObject object;
  std::string saved;
  for (size_t i = 0; registry.At(i, object); ++i) {
    saved.clear();
    if (object.by_callbacks()) {
      auto write = [](void* sink, const void* data, size_t bytes) {
        static_cast<std::string*>(sink)->append(static_cast<const char*>(data), bytes);
      };
      object.save(object.user, write, &saved);
    }
    const preload::Guard guard;
    WriteItem(rec, object.AsSnapshot(saved.data(), saved.size()), checkpoint);
  }
  const preload::Guard guard;
  const preload::ThreadRecord& self = preload::Self();
  checkpoint.threads_made = self.children;
  checkpoint.processes_made = self.processes;
  AddFiles(checkpoint);
  rec.writer.Write(checkpoint);
  rec.RelieveStaging();
  log = rec.log();
  if (checkpoint.missing == 0 && log != nullptr) log->KeepCheckpoint(number);
}

}  // namespace deja::recorder
