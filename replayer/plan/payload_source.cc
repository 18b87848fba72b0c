#include "replayer/plan/payload_source.h"

#include <pthread.h>
#include <csignal>
#include <ctime>

#include <cstring>
#include <thread>
#include <utility>

#include "common/runtime/own_thread.h"

namespace deja::replayer {

PayloadSource::PayloadSource(const format::RankReader& reader, const ReplayPlan& plan)
    : reader_(reader) {
  for (uint32_t call : plan.served_order()) {
    first_item_.emplace(call, static_cast<uint32_t>(items_.size()));
    const bool skipped = plan.SkipsCall(plan.calls()[call]);
    for (const format::Tensor& tensor : plan.Tensors(plan.calls()[call].outputs)) {
      Item item;
      item.hash = tensor.hash;
      item.size = reader.PayloadSize(tensor.hash).value_or(0);
      // Nothing to read ahead, or more than is worth it: the caller's buffer is large enough.
      if (item.size == 0 || item.size > kAheadBytes || skipped) item.state = State::kTaken;
      items_.push_back(std::move(item));
    }
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
  for (const auto& [call, item] : first_item_) {
    const RecordedCall& recorded = plan.calls()[call];
    if (plan.IsAhead(recorded.thread, recorded.enter_seq, recorded.time_ns))
      first = std::min<size_t>(first, item);
  }
  const size_t from = std::exchange(frontier_, std::max(frontier_, first));
  for (size_t i = from; i < first; ++i) {
    Item& item = items_[i];
    loaded_.wait(lock, [&] { return item.state != State::kLoading; });
    if (item.state == State::kReady) ahead_bytes_ -= item.size;
    item.state = State::kTaken;
    item.bytes.reset();
  }
  wanted_.notify_one();
}

uint64_t PayloadSource::CpuNs() const {
  timespec now;
  if (clock_ == -1 || clock_gettime(clock_, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

size_t PayloadSource::NextToLoad() {
  constexpr size_t kWindow = 4096;
  for (size_t i = frontier_; i < items_.size() && i < frontier_ + kWindow; ++i) {
    if (items_[i].state != State::kWaiting) continue;
    if (ahead_bytes_ != 0 && ahead_bytes_ + items_[i].size > kAheadBytes) break;
    return i;
  }
  return items_.size();
}

void PayloadSource::Load(std::unique_lock<std::mutex>& lock, Item& item) {
  item.state = State::kLoading;
  ahead_bytes_ += item.size;
  const uint64_t size = item.size;
  const Hash128 hash = item.hash;
  lock.unlock();
  std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
  const bool ok = reader_.ReadPayload(hash, {bytes.get(), size}).has_value();
  lock.lock();
  item.bytes = std::move(bytes);
  item.failed = !ok;
  item.state = State::kReady;
  loaded_.notify_all();
}

void PayloadSource::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    const size_t next = NextToLoad();
    if (next == items_.size()) {
      if (frontier_ == items_.size()) return;
      wanted_.wait(lock);
      continue;
    }
    Load(lock, items_[next]);
  }
}

Status PayloadSource::ReadOutput(uint32_t call, uint32_t output, std::span<std::byte> out) {
  auto it = first_item_.find(call);
  if (it == first_item_.end())
    return Fail(ErrorCode::kNotFound, "the call has no recorded results");
  if (starts_later_ && starts_later_.exchange(false)) Start();
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t index = it->second + output;
  Item& item = items_[index];
  loaded_.wait(lock, [&] { return item.state != State::kLoading; });
  std::unique_ptr<std::byte[]> bytes = std::move(item.bytes);
  const bool ready = item.state == State::kReady && !item.failed && item.size == out.size();
  if (item.state == State::kReady) ahead_bytes_ -= item.size;
  item.state = State::kTaken;
  // Operations of several communicators come a little out of order; those before are still kept.
  if (index + 1 > frontier_) frontier_ = index + 1;
  lock.unlock();
  wanted_.notify_one();
  if (ready) {
    std::memcpy(out.data(), bytes.get(), out.size());
    return {};
  }
  return reader_.ReadPayload(item.hash, out);
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
