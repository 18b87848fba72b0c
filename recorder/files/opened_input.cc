#include "recorder/files/opened_input.h"

#include <algorithm>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/process/guard.h"
#include "recorder/core/recording.h"
#include "recorder/files/file_state.h"
#include "recorder/files/mapped_inputs.h"

namespace deja::recorder {
namespace {

// Children alone count generations.
constinit std::atomic<uint32_t> g_generation{1};
Recording* (*g_find_recording)() = nullptr;

constinit SpinLock g_renew_lock;
constinit ObjectPool<OpenedInput> g_pool;

}  // namespace

uint32_t InputGeneration() {
  return g_generation.load(std::memory_order_relaxed);
}

void BeforeForkOfInputs() {
  CountForkOfInputs();
}

void AfterForkOfInputsInChild() {
  g_generation.fetch_add(1, std::memory_order_relaxed);
}

Recording* OpenedInput::FindRecording() {
  return g_find_recording != nullptr ? g_find_recording() : nullptr;
}

OpenedInput* OpenedInput::Take() {
  return g_pool.Take();
}

void RangeBatch::Begin(uint32_t file, format::FileReadHow how) {
  event_.file = file;
  event_.how = static_cast<uint32_t>(how);
  event_.gaps.clear();
  event_.sizes.clear();
  last_end_ = 0;
  bytes_ = 0;
}

void RangeBatch::Append(uint64_t begin, uint64_t size, const Hash128& hash) {
  std::memcpy(hashes_ + event_.sizes.size() * 16, hash.bytes.data(), 16);
  event_.gaps.push_back(static_cast<int64_t>(begin - last_end_));
  event_.sizes.push_back(size);
  last_end_ = begin + size;
  bytes_ += size;
}

void RangeBatch::Add(Recording& rec, const ReadRange& range, bool keep, bool in_signal) {
  auto state = format::PayloadState::kNotKept;
  format::Placed placed;
  if (keep) {
    placed = rec.KeepPayload(range.hash, range.bytes, 1);
    state = placed.kept ? format::PayloadState::kKept : format::PayloadState::kDropped;
  }
  if (event_.sizes.size() == format::kMaxFileRanges ||
      event_.payload != static_cast<uint32_t>(state) || event_.segment != placed.segment)
    Flush(rec, in_signal);
  event_.payload = static_cast<uint32_t>(state);
  event_.segment = placed.segment;
  Append(range.begin, range.size, range.hash);
  if (bytes_ >= (keep ? ReadRuns::kMostKept : ReadRuns::kMostDigest)) Flush(rec, in_signal);
}

void RangeBatch::AddLost(Recording& rec, uint64_t begin, uint64_t size) {
  Flush(rec, false);
  const uint32_t how = event_.how;
  event_.how = static_cast<uint32_t>(format::FileReadHow::kChanged);
  event_.payload = 0;
  Append(begin, size, {});
  Flush(rec, false);
  event_.how = how;
}

void RangeBatch::Flush(Recording& rec, bool in_signal) {
  if (event_.sizes.empty()) return;
  event_.hashes = {hashes_, event_.sizes.size() * 16};
  if (in_signal)
    rec.writer.WriteInSignal(event_);
  else
    rec.writer.Write(event_);
  event_.gaps.clear();
  event_.sizes.clear();
  last_end_ = 0;
  bytes_ = 0;
}

// Where finished ranges go.
struct OpenedInput::Flow {
  Recording& rec;
  RangeBatch& batch;
  bool keep;
  bool in_signal;

  ReadRuns::Sink Sink() {
    return {[](const ReadRange& range, void* context) {
              auto* flow = static_cast<Flow*>(context);
              flow->batch.Add(flow->rec, range, flow->keep, flow->in_signal);
            },
            this};
  }
};

void OpenedInput::SetFinder(Recording* (*find)()) {
  g_find_recording = find;
}

void OpenedInput::Begin(KnownFile* file, uint64_t key, uint32_t open) {
  generation_ = InputGeneration();
  position_.Begin(key, open);
  batch_.Begin(file == nullptr ? 0 : file->number);
  file_.store(file, std::memory_order_release);
  in_use_.store(true, std::memory_order_release);
}

// One lock a read, and no other locked instruction: each costs as much as hashing 400 bytes.
int64_t OpenedInput::AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) {
  if (generation_ != InputGeneration() && !RenewInChild()) return -1;
  const auto length = static_cast<int64_t>(size);
  if (offset >= 0 && IsKnown(static_cast<uint64_t>(offset), size)) return offset + length;
  Recording* rec = nullptr;
  if (offset < 0 && position_.IsShared()) {
    rec = FindRecording();
    if (rec == nullptr) return -1;
    const std::span bytes(static_cast<const std::byte*>(data), size);
    offset = position_.AfterShared(*rec, fd, bytes, more, SharedPosition::Move::kRead);
    rec->RelieveStaging();
    if (offset < 0) return -1;
    if (IsKnown(static_cast<uint64_t>(offset), size)) return offset + length;
  }
  {
    Hold hold(lock_);
    if (offset < 0) {
      offset = position_.Advance(length + static_cast<int64_t>(more));
      if (IsKnown(static_cast<uint64_t>(offset), size)) return offset + length;
    }
    const ErrnoKeeper keep;
    if (rec == nullptr) rec = FindRecording();
    if (rec == nullptr) return -1;
    Record(*rec, static_cast<uint64_t>(offset), data, size);
  }
  rec->RelieveStaging();
  return offset + length;
}

bool OpenedInput::IsKnown(uint64_t begin, size_t size) const {
  const KnownFile* file = file_.load(std::memory_order_relaxed);
  return size == 0 || file == nullptr || file->Knows(begin, begin + size);
}

void OpenedInput::AfterSeek(int64_t position, int64_t offset, int whence) {
  const preload::Guard guard;
  const ErrnoKeeper keep;
  position_.AfterSeek(position_.IsShared() ? FindRecording() : nullptr, position, offset, whence);
}

void OpenedInput::Record(Recording& rec, uint64_t offset, const void* data, size_t size) {
  KnownFile* file = file_.load(std::memory_order_relaxed);
  Flow flow{rec, batch_, FilesOf(rec).inputs.keeps_bytes(), false};
  const uint32_t segment = file->Segment();
  const uint64_t since =
      runs_.Add(offset, {static_cast<const std::byte*>(data), size}, flow.keep, flow.Sink());
  const uint64_t page = offset - offset % SeenPages::kPage;
  if (!file->may_change) file->Learn(std::max(since, page), offset + size, segment);
}

// In a child of the process that opened it: what stands here is the parent's, which goes on with
// it.
bool OpenedInput::RenewInChild() {
  const ErrnoKeeper keep;
  Recording* rec = FindRecording();
  if (rec == nullptr) return false;
  Hold hold(g_renew_lock);
  if (generation_ == InputGeneration()) return true;
  runs_.Forget();
  if (const KnownFile* parents = file_.load(std::memory_order_relaxed)) {
    KnownFile* file = FilesOf(*rec).inputs.Know(*rec, parents->path, parents->info, false);
    if (file == nullptr) return false;
    batch_.Begin(file->number);
    file_.store(file, std::memory_order_release);
  }
  generation_ = InputGeneration();
  return true;
}

void OpenedInput::AfterMap(void* memory, size_t size, int64_t offset) {
  if (KnownFile* file = file_.load(std::memory_order_relaxed))
    NoteMapping(*file, memory, size, offset);
}

void OpenedInput::OnUnused(int) {
  const preload::Guard guard;
  const ErrnoKeeper keep;
  in_use_.store(false, std::memory_order_release);
  // The kernel copies descriptors before memory: another thread of the parent may have opened this
  // one in between. The child's recording, which is being made, may close its number.
  if (generation_ == InputGeneration())
    if (Recording* rec = FindRecording()) Finish(*rec);
  g_pool.GiveBack(*this);
}

void OpenedInput::Finish(Recording& rec) {
  if (generation_ != InputGeneration()) return;
  Hold hold(lock_);
  Flow flow{rec, batch_, FilesOf(rec).inputs.keeps_bytes(), false};
  runs_.Finish(flow.Sink());
  batch_.Flush(rec, false);
}

void OpenedInput::FinishInSignal(Recording& rec) {
  if (generation_ != InputGeneration() || !lock_.LockBriefly()) return;
  Flow flow{rec, batch_, FilesOf(rec).inputs.keeps_bytes(), true};
  runs_.Finish(flow.Sink());
  batch_.Flush(rec, true);
  lock_.Unlock();
}

template <typename Function>
void OpenedInput::ForEachInUse(Function function) {
  g_pool.ForEach([&](OpenedInput& input) {
    if (input.in_use_.load(std::memory_order_acquire)) function(input);
  });
}

void InputFiles::FinishAll(Recording& rec) {
  OpenedInput::ForEachInUse([&](OpenedInput& input) { input.Finish(rec); });
  FinishAllMappings(rec, false);
}

void InputFiles::FinishInSignal(Recording& rec) {
  OpenedInput::ForEachInUse([&](OpenedInput& input) { input.FinishInSignal(rec); });
  FinishAllMappings(rec, true);
}

}  // namespace deja::recorder
