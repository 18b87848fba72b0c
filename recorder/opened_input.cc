#include "recorder/opened_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "preload/api/libc_table.h"
#include "preload/guard.h"
#include "preload/shared_moves.h"
#include "recorder/mapped_inputs.h"
#include "recorder/recorder_engine.h"

namespace deja::recorder {
namespace {

// Counted in every process that a fork touches; children alone count generations.
constinit std::atomic<uint32_t> g_forks{0};
constinit std::atomic<uint32_t> g_generation{1};
Recording* (*g_find_recording)() = nullptr;

constinit SpinLock g_pool_lock;
constinit SpinLock g_renew_lock;
constinit OpenedInput* g_free = nullptr;
// What lies before where a file stands, in which a read is looked for.
constexpr int64_t kWindow = 1 << 20;

// The bytes of the file from `begin` on are these.
bool Holds(int fd, int64_t begin, std::span<const std::byte> data) {
  std::byte piece[16 << 10];
  if (begin < 0) return false;
  while (!data.empty()) {
    const size_t wanted = std::min(data.size(), sizeof piece);
    const ssize_t n = pread(fd, piece, wanted, begin);
    if (n <= 0 || std::memcmp(piece, data.data(), static_cast<size_t>(n)) != 0) return false;
    data = data.subspan(static_cast<size_t>(n));
    begin += n;
  }
  return true;
}

// The last place before `end` that has these bytes; -1: there is none in the window.
int64_t FindBefore(int fd, int64_t end, std::span<const std::byte> data) {
  const auto size = static_cast<int64_t>(data.size());
  if (size > kWindow) return -1;
  auto* window = static_cast<std::byte*>(MapZeroed(2 * kWindow));
  if (window == nullptr) return -1;
  const int64_t begin = std::max<int64_t>(end - kWindow - size, 0);
  const ssize_t n = pread(fd, window, static_cast<size_t>(end - begin), begin);
  int64_t found = -1;
  for (int64_t at = n - size; at >= 0 && found < 0; --at)
    if (std::memcmp(window + at, data.data(), data.size()) == 0) found = begin + at;
  munmap(window, 2 * kWindow);
  return found;
}

// Where the bytes that were read stand: at `likely`, at `expected`, or somewhere before `end`; -1:
// not known. The same bytes elsewhere are as good.
int64_t FindInFile(int fd, std::span<const std::byte> data, int64_t likely, int64_t expected,
                   int64_t end) {
  if (data.empty() || Holds(fd, likely, data)) return likely;
  return Holds(fd, expected, data) ? expected : FindBefore(fd, end, data);
}

constexpr size_t kPerChunk = 64;
constexpr size_t kChunks = 1 << 10;
constinit OpenedInput* g_chunks[kChunks] = {};
constinit size_t g_used = 0;

}  // namespace

uint32_t InputGeneration() {
  return g_generation.load(std::memory_order_relaxed);
}

void BeforeForkOfInputs() {
  g_forks.fetch_add(1, std::memory_order_relaxed);
}

void AfterForkOfInputsInChild() {
  g_generation.fetch_add(1, std::memory_order_relaxed);
  g_pool_lock.Reset();
  g_renew_lock.Reset();
  ResetMappingsInChild();
}

OpenedInput* OpenedInputs::Take() {
  Hold hold(g_pool_lock);
  if (OpenedInput* input = g_free) {
    g_free = input->next_free_;
    return input;
  }
  const size_t chunk = g_used / kPerChunk;
  if (chunk >= kChunks) return nullptr;
  if (g_chunks[chunk] == nullptr)
    g_chunks[chunk] = static_cast<OpenedInput*>(MapZeroed(sizeof(OpenedInput) * kPerChunk));
  if (g_chunks[chunk] == nullptr) return nullptr;
  return new (&g_chunks[chunk][g_used++ % kPerChunk]) OpenedInput;
}

void OpenedInputs::GiveBack(OpenedInput& input) {
  Hold hold(g_pool_lock);
  input.next_free_ = g_free;
  g_free = &input;
}

template <typename Function>
void OpenedInputs::ForEach(Function function) {
  for (size_t i = 0; i < g_used; ++i) {
    OpenedInput& input = g_chunks[i / kPerChunk][i % kPerChunk];
    if (input.in_use_.load(std::memory_order_acquire)) function(input);
  }
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

void OpenedInput::Begin(KnownFile* file, uint64_t key) {
  generation_ = InputGeneration();
  forks_ = g_forks.load(std::memory_order_relaxed);
  position_.store(0, std::memory_order_relaxed);
  moves_.store(0, std::memory_order_relaxed);
  key_ = key;
  told_.store(0, std::memory_order_relaxed);
  contended_.store(false, std::memory_order_relaxed);
  batch_.Begin(file == nullptr ? 0 : file->number);
  file_.store(file, std::memory_order_release);
  in_use_.store(true, std::memory_order_release);
}

// One lock a read, and no other locked instruction: each costs as much as hashing 400 bytes.
int64_t OpenedInput::AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) {
  if (generation_ != InputGeneration() && !RenewInChild()) return -1;
  const auto length = static_cast<int64_t>(size);
  if (offset >= 0 && IsKnown(static_cast<uint64_t>(offset), size)) return offset + length;
  if (offset < 0 && IsShared())
    return AfterSharedRead(fd, {static_cast<const std::byte*>(data), size}, more);
  Recording* rec = nullptr;
  {
    Hold hold(lock_);
    if (offset < 0) {
      offset = position_.load(std::memory_order_relaxed);
      position_.store(offset + length + static_cast<int64_t>(more), std::memory_order_relaxed);
      moves_.store(moves_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (size == 0 || IsKnown(static_cast<uint64_t>(offset), size)) return offset + length;
    }
    const ErrnoKeeper keep;
    rec = g_find_recording != nullptr ? g_find_recording() : nullptr;
    if (rec == nullptr) return -1;
    Record(*rec, static_cast<uint64_t>(offset), data, size);
  }
  rec->RelieveStaging();
  return offset + length;
}

bool OpenedInput::IsKnown(uint64_t begin, size_t size) const {
  const KnownFile* file = file_.load(std::memory_order_relaxed);
  return file == nullptr || file->Knows(begin, begin + size);
}

bool OpenedInput::IsShared() const {
  return forks_ != g_forks.load(std::memory_order_relaxed);
}

// Where the descriptor stands is asked behind the read, and somebody may have moved it in between:
// then what was read says where it was.
int64_t OpenedInput::AfterSharedRead(int fd, std::span<const std::byte> data, size_t more) {
  const ErrnoKeeper keep;
  Recording* rec = g_find_recording != nullptr ? g_find_recording() : nullptr;
  const int64_t after = lseek(fd, 0, SEEK_CUR);
  if (rec == nullptr || after < 0) return -1;
  const auto size = static_cast<int64_t>(data.size() + more);
  const int64_t expected = position_.load(std::memory_order_relaxed);
  int64_t position = after - size;
  if (position != expected || contended_.load(std::memory_order_relaxed)) {
    contended_.store(true, std::memory_order_relaxed);
    position = FindInFile(fd, data, position, expected, after);
  }
  {
    Hold hold(lock_);
    const bool is_told = told_.load(std::memory_order_relaxed) == InputGeneration();
    if (position != expected || !is_told) RecordMove(*rec, position, after, data);
    moves_.fetch_add(1, std::memory_order_relaxed);
    position_.store(position < 0 ? after : position + size, std::memory_order_relaxed);
    const auto begin = static_cast<uint64_t>(position);
    if (position >= 0 && !data.empty() && !IsKnown(begin, data.size()))
      Record(*rec, begin, data.data(), data.size());
  }
  rec->RelieveStaging();
  return position < 0 ? -1 : position + static_cast<int64_t>(data.size());
}

void OpenedInput::RecordMove(Recording& rec, int64_t position, int64_t after,
                             std::span<const std::byte> data) {
  constexpr size_t kMostInline = 2 << 10;
  told_.store(InputGeneration(), std::memory_order_relaxed);
  std::byte text[sizeof(preload::SharedMove) + kMostInline];
  const preload::SharedMove move{moves_.load(std::memory_order_relaxed), 0, after};
  std::memcpy(text, &move, sizeof move);
  format::Input input;
  input.api = static_cast<uint32_t>(preload::LibcApi::klseek);
  input.key = key_;
  input.result = position;
  size_t length = sizeof move;
  if (position < 0 && data.size() <= kMostInline) {
    std::memcpy(text + length, data.data(), data.size());
    length += data.size();
  } else if (position < 0) {
    input.hash = preload::HashBytes(data);
    input.segment = rec.KeepPayload(input.hash, data, 1).segment;
  }
  input.data = {reinterpret_cast<const char*>(text), length};
  rec.writer.Write(input);
}

void OpenedInput::AfterSeek(int64_t position, int64_t offset, int whence) {
  if (whence == SEEK_CUR) {
    const int64_t expected = position_.load(std::memory_order_relaxed) + offset;
    const bool is_told = told_.load(std::memory_order_relaxed) == InputGeneration();
    if (IsShared() && (position != expected || !is_told)) {
      const preload::Guard guard;
      const ErrnoKeeper keep;
      Recording* rec = g_find_recording != nullptr ? g_find_recording() : nullptr;
      if (rec != nullptr) RecordMove(*rec, position, position, {});
    }
    moves_.fetch_add(1, std::memory_order_relaxed);
  }
  position_.store(position, std::memory_order_relaxed);
}

void OpenedInput::Record(Recording& rec, uint64_t offset, const void* data, size_t size) {
  KnownFile* file = file_.load(std::memory_order_relaxed);
  Flow flow{rec, batch_, rec.input_files.keeps_bytes(), false};
  const uint32_t segment = file->Segment();
  const uint64_t since =
      runs_.Add(offset, {static_cast<const std::byte*>(data), size}, flow.keep, flow.Sink());
  const uint64_t page = offset - offset % SeenPages::kPage;
  if (!file->may_change) file->Learn(std::max(since, page), offset + size, segment);
}

// In a child of the process that opened it: what stands here is the parent's, who goes on with it.
bool OpenedInput::RenewInChild() {
  const ErrnoKeeper keep;
  Recording* rec = g_find_recording != nullptr ? g_find_recording() : nullptr;
  if (rec == nullptr) return false;
  Hold hold(g_renew_lock);
  if (generation_ == InputGeneration()) return true;
  lock_.Reset();
  runs_.Forget();
  if (const KnownFile* parents = file_.load(std::memory_order_relaxed)) {
    KnownFile* file = rec->input_files.Know(*rec, parents->path, parents->info, false);
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
  if (Recording* rec = g_find_recording != nullptr ? g_find_recording() : nullptr) Finish(*rec);
  OpenedInputs::GiveBack(*this);
}

void OpenedInput::Finish(Recording& rec) {
  if (generation_ != InputGeneration()) return;
  Hold hold(lock_);
  Flow flow{rec, batch_, rec.input_files.keeps_bytes(), false};
  runs_.Finish(flow.Sink());
  batch_.Flush(rec, false);
}

void OpenedInput::FinishInSignal(Recording& rec) {
  if (generation_ != InputGeneration() || !lock_.LockBriefly()) return;
  Flow flow{rec, batch_, rec.input_files.keeps_bytes(), true};
  runs_.Finish(flow.Sink());
  batch_.Flush(rec, true);
  lock_.Unlock();
}

void InputFiles::FinishAll(Recording& rec) {
  OpenedInputs::ForEach([&](OpenedInput& input) { input.Finish(rec); });
  FinishAllMappings(rec, false);
}

void InputFiles::FinishInSignal(Recording& rec) {
  OpenedInputs::ForEach([&](OpenedInput& input) { input.FinishInSignal(rec); });
  FinishAllMappings(rec, true);
}

}  // namespace deja::recorder
