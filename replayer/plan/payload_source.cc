#include "replayer/plan/payload_source.h"

#include <pthread.h>
#include <csignal>
#include <ctime>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "common/runtime/own_thread.h"

namespace deja::replayer {

PayloadSource::PayloadSource(const format::RankReader& reader, const ReplayPlan& plan)
    : reader_(reader), plan_(plan) {
  if (!plan.served_order().empty()) first_item_.assign(plan.calls().size(), kNone);
  items_.reserve(plan.served_order().size());
  for (uint32_t call : plan.served_order()) {
    const RecordedCall& recorded = plan.calls()[call];
    first_item_[call] = static_cast<uint32_t>(items_.size());
    const State state = plan.SkipsCall(recorded) ? State::kTaken : State::kWaiting;
    const uint32_t outputs = std::min<uint32_t>(recorded.outputs.size, UINT16_MAX);
    for (uint32_t output = 0; output < outputs; ++output)
      items_.push_back({call, static_cast<uint16_t>(output), state});
  }
}

void PayloadSource::Start() {
  if (items_.empty()) return;
  // An allocator that starts may be what has called: a thread takes a block from it.
  starts_later_ = !ThreadsMayStart();
  if (starts_later_) return;
  // Signals are for the program's threads.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { Run(); });
  reads_ahead_ = true;
  clockid_t clock;
  if (pthread_getcpuclockid(thread_.native_handle(), &clock) == 0) clock_ = clock;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void PayloadSource::StopReadingAhead() {
  starts_later_ = false;
  if (!reads_ahead_) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  thread_.join();
  clock_ = -1;
  reads_ahead_ = false;
}

void PayloadSource::StartLate(const ReplayPlan& plan) {
  std::unique_lock<std::mutex> lock(mutex_);
  size_t first = items_.size();
  for (size_t i = 0; i < first; ++i) {
    const RecordedCall& recorded = plan.calls()[items_[i].call];
    if (plan.IsAhead(recorded.thread, recorded.enter_seq, recorded.time_ns)) first = i;
  }
  const size_t from = std::exchange(frontier_, std::max(frontier_, first));
  for (size_t i = from; i < first; ++i) {
    loaded_.wait(lock, [&] { return items_[i].state != State::kLoading; });
    (void)Take(i);
  }
  wanted_.notify_one();
}

uint64_t PayloadSource::CpuNs() const {
  timespec now;
  if (clock_ == -1 || clock_gettime(clock_, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

Hash128 PayloadSource::HashOf(const Item& item) const {
  const auto outputs = plan_.Tensors(plan_.calls()[item.call].outputs);
  return item.output < outputs.size() ? outputs[item.output].hash : Hash128{};
}

size_t PayloadSource::NextToLoad(Hash128& hash, uint64_t& size) {
  constexpr size_t kWindow = 4096;
  for (size_t i = frontier_; i < items_.size() && i < frontier_ + kWindow; ++i) {
    if (items_[i].state != State::kWaiting) continue;
    hash = HashOf(items_[i]);
    size = hash.IsZero() ? 0 : reader_.PayloadSize(hash).value_or(0);
    // Nothing to read ahead, or more than is worth it: the caller's buffer is large enough.
    if (size == 0 || size > kAheadBytes) {
      items_[i].state = State::kTaken;
      continue;
    }
    if (ahead_bytes_ != 0 && ahead_bytes_ + size > kAheadBytes) break;
    return i;
  }
  return items_.size();
}

void PayloadSource::Load(std::unique_lock<std::mutex>& lock, size_t index, const Hash128& hash,
                         uint64_t size) {
  items_[index].state = State::kLoading;
  ahead_bytes_ += size;
  lock.unlock();
  Loaded loaded{std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  if (!reader_.ReadPayload(hash, {loaded.bytes.get(), size})) loaded.bytes.reset();
  lock.lock();
  loaded_items_[index] = std::move(loaded);
  items_[index].state = State::kReady;
  loaded_.notify_all();
}

PayloadSource::Loaded PayloadSource::Take(size_t index) {
  items_[index].state = State::kTaken;
  auto found = loaded_items_.extract(index);
  if (found.empty()) return {};
  ahead_bytes_ -= found.mapped().size;
  return std::move(found.mapped());
}

void PayloadSource::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    Hash128 hash;
    uint64_t size = 0;
    const size_t next = NextToLoad(hash, size);
    if (next == items_.size()) {
      if (frontier_ == items_.size()) return;
      wanted_.wait(lock);
      continue;
    }
    Load(lock, next, hash, size);
  }
}

Status PayloadSource::ReadOutput(uint32_t call, uint32_t output, std::span<std::byte> out) {
  const size_t first = call < first_item_.size() ? first_item_[call] : kNone;
  const size_t index = first + output;
  if (first == kNone || index >= items_.size() || items_[index].call != call)
    return Fail(ErrorCode::kNotFound, "the call has no recorded results");
  if (starts_later_ && starts_later_.exchange(false)) Start();
  std::unique_lock<std::mutex> lock(mutex_);
  loaded_.wait(lock, [&] { return items_[index].state != State::kLoading; });
  const Loaded loaded = Take(index);
  // Operations of several communicators come a little out of order; those before are still kept.
  if (index + 1 > frontier_) frontier_ = index + 1;
  lock.unlock();
  wanted_.notify_one();
  if (loaded.bytes != nullptr && loaded.size == out.size()) {
    std::memcpy(out.data(), loaded.bytes.get(), out.size());
    return {};
  }
  return reader_.ReadPayload(HashOf(items_[index]), out);
}

std::optional<std::vector<std::byte>> PayloadSource::Read(const Hash128& hash,
                                                          uint64_t bytes) const {
  const std::optional<uint64_t> size = reader_.PayloadSize(hash);
  if (!size || *size != bytes) return std::nullopt;
  std::vector<std::byte> out(bytes);
  if (!reader_.ReadPayload(hash, out)) return std::nullopt;
  return out;
}

}  // namespace deja::replayer
