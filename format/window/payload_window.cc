#include "format/window/payload_window.h"

#include <algorithm>

namespace deja::format {
namespace {

// A window has about this many segments: one segment may be there beyond what was asked for.
constexpr uint64_t kSegments = 4;
constexpr uint64_t kSegmentsOfBytes = 8;
constexpr uint64_t kLeastSegmentBytes = 256 << 10;
constexpr uint64_t kMostSegmentBytes = 1 << 30;
constexpr uint64_t kNsPerSecond = 1000000000;
// So much of a budget is left for indexes and for what is written between two looks at it.
constexpr uint64_t kReservePart = 32;

uint64_t OrNone(uint64_t value) {
  return value == 0 ? ~uint64_t{0} : value;
}

uint64_t Usable(const WindowOptions& options) {
  return options.disk_budget - options.disk_budget / kReservePart;
}

uint64_t SegmentBytesOf(uint64_t limit) {
  return std::clamp(limit / kSegmentsOfBytes, kLeastSegmentBytes, kMostSegmentBytes);
}

// An equal part of a limit; none of none.
uint64_t PartOf(uint64_t limit, uint64_t parts) {
  return limit == 0 ? 0 : std::max<uint64_t>(limit / parts, 1);
}

}  // namespace

PayloadWindow::PayloadWindow(const WindowOptions& options)
    : options_(options),
      limit_(std::min(OrNone(options.keep_bytes),
                      OrNone(PartOf(options.disk_budget, options.machine_ranks)))),
      steps_in_segment_(std::max<uint64_t>(1, options.keep_steps / kSegments)),
      segment_bytes_(SegmentBytesOf(limit_)),
      board_(&own_board_),
      member_(own_board_.Join()),
      steps_(options.keep_steps) {}

bool PayloadWindow::Join(WindowBoard& shared, uint32_t name) {
  watched_.store(nullptr);
  const int member = shared.Join(name);
  if (member < 0) return false;
  owner_.store(-1);
  member_.store(member);
  board_.store(&shared, std::memory_order_release);
  return true;
}

void PayloadWindow::Watch(WindowBoard& shared, const WindowOrigin& origin) {
  origin_ = origin;
  watched_.store(&shared);
  LookForOwner();
}

void PayloadWindow::LookForOwner() {
  WindowBoard* shared = watched_.load();
  if (shared == nullptr) return;
  const int owner = shared->OwnerOf(origin_.root, origin_.path);
  // Numbers never go back.
  if (owner < 0 || shared->segment() < segment()) return;
  watched_.store(nullptr);
  member_.store(-1);
  board_.store(shared, std::memory_order_release);
  owner_.store(owner, std::memory_order_release);
}

void PayloadWindow::BeginStep(uint64_t step) {
  if (options_.keep_steps == 0 || step == 0) {
    step_.store(step, std::memory_order_relaxed);
    return;
  }
  steps_mutex_.lock();
  // What follows is kept with this step, and not with what came before the first one, in any
  // process.
  const bool advanced =
      board().AdvanceForPart((step - 1) / steps_in_segment_ + 1,
                             std::min(options_.shared_bytes, limit_ / kSegmentsOfBytes));
  if (board().BeginStep(member_.load(), step) && !advanced) board().Advance(segment());
  step_.store(step, std::memory_order_relaxed);
  steps_[step % options_.keep_steps] = {segment(), false};
  SetFirstStep(FirstStepOf(step));
  steps_mutex_.unlock();
}

void PayloadWindow::KeepCheckpoint(uint64_t step) {
  if (options_.keep_steps == 0 || step == 0) return;
  steps_mutex_.lock();
  steps_[step % options_.keep_steps].checkpoint = true;
  if (FirstStepOf(step) == step) SetFirstStep(step);
  steps_mutex_.unlock();
}

void PayloadWindow::SetFirstStep(uint64_t first) {
  const StepBegin& begin = steps_[first % options_.keep_steps];
  if (begin.checkpoint) {
    has_checkpoint_ = true;
    checkpoint_segment_ = begin.segment;
  }
  board().SetFirst(member_.load(), has_checkpoint_ ? checkpoint_segment_ : begin.segment);
}

uint64_t PayloadWindow::SegmentBytes() const {
  return SegmentBytesOf(std::min(limit_, Budget()));
}

void PayloadWindow::AddBytes(uint32_t segment, uint64_t bytes, uint64_t waiting) {
  board().AddBytes(bytes);
  if (!has_limit()) return;
  // Threads that reach a segment at the same time may each take the other's bytes away: it turns
  // out a little larger.
  if (filled_.load(std::memory_order_relaxed) != segment) {
    filled_.store(segment, std::memory_order_relaxed);
    filled_bytes_.store(0, std::memory_order_relaxed);
  }
  const uint64_t filled = filled_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (std::min(filled, waiting) >= segment_bytes_.load(std::memory_order_relaxed))
    board().Advance(segment);
}

void PayloadWindow::Turn(uint32_t current, uint64_t bytes, uint64_t now_ns) {
  const uint32_t seen = segment();
  if (turned_ns_ == 0 || turned_ != seen) {
    turned_ = seen;
    turned_ns_ = now_ns;
  }
  if (has_limit()) segment_bytes_.store(SegmentBytes(), std::memory_order_relaxed);
  const bool full = has_limit() && current == seen && bytes >= segment_bytes_.load();
  const bool old = options_.keep_seconds != 0 &&
                   now_ns - turned_ns_ >= options_.keep_seconds * kNsPerSecond / kSegments;
  if (full || old) board().Advance(seen);
}

uint32_t PayloadWindow::Next(uint32_t current) {
  if (segment() <= current) board().Advance(current);
  return segment();
}

bool PayloadWindow::Expired(const Segment& segment, const SegmentRange& meant, uint64_t ended_ns,
                            uint64_t now_ns) {
  if (Marked(meant.first)) return false;
  if (options_.keep_seconds != 0 && now_ns - ended_ns >= options_.keep_seconds * kNsPerSecond)
    return true;
  // What came before the first step is what a replay from a later step begins with.
  if (options_.keep_steps == 0 || segment.last_step == 0) return false;
  for (uint32_t number = meant.first; number <= meant.last; ++number)
    if (follows() ? board().MayBeWanted(number) : board().Wanted(number)) return false;
  return true;
}

bool PayloadWindow::Hangs(uint64_t after_ns, uint64_t now_ns) {
  const uint64_t last = board().progress_ns();
  if (last == 0 || now_ns < last || now_ns - last < after_ns) return false;
  return board().TakeHang(last);
}

void PayloadWindow::ShareBudget(const std::string& directory, const std::string& job_id) {
  if (!has_limit() || ledger_ != nullptr) return;
  const uint64_t all = OrNone(Usable(options_));
  ledger_ =
      DiskLedger::Open(directory, job_id, {all, std::min(all / 2, OrNone(options_.keep_bytes))});
}

void PayloadWindow::Published(uint64_t bytes, bool last) {
  if (ledger_ == nullptr) return;
  ledger_->Publish(bytes);
  if (last) ledger_->Leave();
}

uint64_t PayloadWindow::Budget() const {
  if (ledger_ != nullptr) return ledger_->Share();
  return OrNone(PartOf(Usable(options_), options_.machine_ranks));
}

uint64_t PayloadWindow::Limit(uint64_t event_bytes) const {
  const uint64_t budget = Budget();
  // Events stay. However many there are, something is left for payloads.
  const uint64_t left =
      budget == kNoLimit ? kNoLimit : budget - std::min(event_bytes, budget / 4 * 3);
  return std::min(OrNone(options_.keep_bytes), left);
}

}  // namespace deja::format
