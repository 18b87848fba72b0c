#include "cli/replay/fold/turn_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/output.h"

namespace deja::cli {

TurnScheduler::TurnScheduler(const TurnArea& area, std::vector<uint32_t> ranks, OpenSwap open_swap,
                             Say say, const Rules& rules)
    : area_(area),
      ranks_(std::move(ranks)),
      open_swap_(std::move(open_swap)),
      say_(std::move(say)),
      rules_(rules),
      known_(ranks_.size()),
      rotate_after_(rules.rotate) {}

bool TurnScheduler::IsThere(size_t index) const {
  return !known_[index].ended && Cell(index).pid.load() != 0;
}

bool TurnScheduler::IsIn(size_t index) const {
  return IsThere(index) && Cell(index).place.load() == Place::kIn;
}

bool TurnScheduler::Asks(size_t index) const {
  return IsThere(index) && Cell(index).asks.load() % 2 == 1 &&
         Cell(index).answer.load() == MemoryAnswer::kNone;
}

bool TurnScheduler::Rests(size_t index) const {
  return IsThere(index) && Cell(index).resting.load() != 0;
}

bool TurnScheduler::Share(size_t index, size_t other) const {
  return index != other && (Cell(index).devices.load() & Cell(other).devices.load()) != 0;
}

size_t TurnScheduler::CountIn(uint64_t device_bit) const {
  size_t count = 0;
  for (size_t i = 0; i < known_.size(); ++i)
    if (IsIn(i) && (Cell(i).devices.load() & device_bit) != 0) ++count;
  return count;
}

size_t TurnScheduler::MostOn(uint64_t device_bit) const {
  const size_t wanted = rules_.at_once == 0 ? known_.size() : rules_.at_once;
  const auto known = most_.find(device_bit);
  return known == most_.end() ? wanted : std::min(wanted, known->second);
}

bool TurnScheduler::HasRoomFor(size_t index) const {
  const uint64_t devices = Cell(index).devices.load();
  for (uint64_t bit = 1; bit != 0; bit <<= 1u)
    if ((devices & bit) != 0 && CountIn(bit) >= MostOn(bit)) return false;
  return true;
}

bool TurnScheduler::Step(Clock::time_point now) {
  Look(now);
  const bool moved = AnswerAsks(now) || BringIn() || ThinOut() || Rotate(now);
  if (moved) still_since_ = now;
  return moved;
}

void TurnScheduler::Ended(size_t index) {
  known_[index].ended = true;
  Cell(index).ended.store(1);
  Cell(index).held.store(0);  // others look at it (replayer/turns/turns.h)
  ++change_;
  Moved();
}

void TurnScheduler::Moved() {
  rotations_ = 0;
  area_.all_still().store(0);
}

std::vector<size_t> TurnScheduler::TakeLost() {
  return std::exchange(lost_, {});
}

// Since when each rests or wants to come in, in the order in which that was seen.
void TurnScheduler::Look(Clock::time_point now) {
  if (still_since_ == Clock::time_point()) still_since_ = now;
  for (size_t i = 0; i < known_.size(); ++i) {
    Known& known = known_[i];
    const uint64_t rests = Cell(i).rests.load();
    if (rests != known.rests_seen) {
      known.rests_seen = rests;
      known.rests_since = 0;
      still_since_ = now;
      rotate_after_ = rules_.rotate;
      Moved();
    }
    if (!Rests(i))
      known.rests_since = 0;
    else if (known.rests_since == 0)
      known.rests_since = ++order_;
    // One that is out and does not rest would go on.
    const bool wants = IsThere(i) && !IsIn(i) && (Cell(i).wants_in.load() != 0 || !Rests(i));
    if (!wants)
      known.wants_since = 0;
    else if (known.wants_since == 0)
      known.wants_since = ++order_;
  }
}

bool TurnScheduler::AnswerAsks(Clock::time_point now) {
  bool moved = false;
  for (size_t i = 0; i < known_.size(); ++i)
    if (Asks(i) && IsIn(i)) moved = AnswerAsk(i, now) || moved;
  return moved;
}

bool TurnScheduler::AnswerAsk(size_t index, Clock::time_point now) {
  Known& known = known_[index];
  if (known.tried_at != change_) {
    // It may have failed before another rank ended, or was swapped out.
    known.tried_at = change_;
    Answer(index, MemoryAnswer::kTryAgain);
    return true;
  }
  const int victim = FindVictim(index, true);
  if (victim >= 0 && HasSwap()) {
    MakeWay(static_cast<size_t>(victim), index);
    return true;
  }
  bool others = false;   // that are on the device
  bool running = false;  // that may give memory back
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!Share(index, i) || !IsIn(i)) continue;
    others = true;
    running = running || (!Rests(i) && !Asks(i));
  }
  if (running) return false;
  if (others && now - still_since_ < rules_.refuse) return false;
  Refuse(index);
  return true;
}

void TurnScheduler::MakeWay(size_t victim, size_t for_whom) {
  const uint64_t devices = Cell(victim).devices.load() & Cell(for_whom).devices.load();
  if (!TakeOut(victim)) return;
  for (uint64_t bit = 1; bit != 0; bit <<= 1u) {
    if ((devices & bit) == 0) continue;
    const size_t left = std::max<size_t>(CountIn(bit), 1);
    const auto [entry, is_new] = most_.try_emplace(bit, left);
    if (!is_new) entry->second = std::min(entry->second, left);
  }
}

int TurnScheduler::FindVictim(size_t index, bool also_asking) const {
  int found = -1;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!IsIn(i) || !Share(index, i) || known_[i].stays || !Rests(i)) continue;
    if (found < 0 || known_[i].rests_since < known_[static_cast<size_t>(found)].rests_since)
      found = static_cast<int>(i);
  }
  if (found >= 0 || !also_asking) return found;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!IsIn(i) || !Share(index, i)) continue;
    // Those that run may end, or come to rest.
    if (!Asks(i)) return -1;
    if (!known_[i].stays) found = static_cast<int>(i);
  }
  return found;
}

bool TurnScheduler::BringIn() {
  int next = -1;
  for (size_t i = 0; i < known_.size(); ++i)
    if (known_[i].wants_since != 0 && IsThere(i) &&
        (next < 0 || known_[i].wants_since < known_[static_cast<size_t>(next)].wants_since))
      next = static_cast<int>(i);
  if (next < 0) return false;
  const auto index = static_cast<size_t>(next);
  if (HasRoomFor(index)) return BringBack(index);
  const int victim = FindVictim(index, true);
  return victim >= 0 && TakeOut(static_cast<size_t>(victim));
}

// More are there than shall be: some came after it had turned out how many fit.
bool TurnScheduler::ThinOut() {
  int victim = -1;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!IsIn(i) || !Rests(i) || known_[i].stays) continue;
    const uint64_t devices = Cell(i).devices.load();
    bool crowded = false;
    for (uint64_t bit = 1; bit != 0; bit <<= 1u)
      crowded = crowded || ((devices & bit) != 0 && CountIn(bit) > MostOn(bit));
    if (crowded &&
        (victim < 0 || known_[i].rests_since < known_[static_cast<size_t>(victim)].rests_since))
      victim = static_cast<int>(i);
  }
  return victim >= 0 && TakeOut(static_cast<size_t>(victim));
}

bool TurnScheduler::Rotate(Clock::time_point now) {
  int next = -1;
  for (size_t i = 0; i < known_.size(); ++i) {
    if (!IsThere(i)) continue;
    if (Cell(i).place.load() == Place::kIn) {
      if (!Rests(i)) return false;
    } else if (next < 0 || known_[i].rests_since < known_[static_cast<size_t>(next)].rests_since) {
      next = static_cast<int>(i);
    }
  }
  if (next < 0 || now - still_since_ < rotate_after_) return false;
  rotate_after_ = std::min(rotate_after_ * 2, rules_.rotate_most);
  if (++rotations_ > known_.size()) area_.all_still().store(1);
  const auto index = static_cast<size_t>(next);
  while (!HasRoomFor(index)) {
    const int victim = FindVictim(index, false);
    if (victim < 0 || !TakeOut(static_cast<size_t>(victim))) return true;
  }
  // It has had its turn, as far as can be seen.
  known_[index].rests_since = ++order_;
  BringBack(index);
  return true;
}

bool TurnScheduler::TakeOut(size_t victim) {
  TurnCell& cell = Cell(victim);
  if (!HasSwap()) return false;
  const bool asks = Asks(victim);
  cell.place.store(Place::kLeaving);
  if (!asks && cell.resting.load() == 0) {  // it has gone on in this moment
    cell.place.store(Place::kIn);
    TurnArea::Ring(cell.bell);
    return false;
  }
  const SwapResult result = swap_->TakeOut(static_cast<pid_t>(cell.pid.load()));
  if (result.how == SwapResult::How::kDone) {
    cell.place.store(Place::kOut);
    if (swaps_++ == 0)
      say_(rules_.at_once == 0
               ? "the ranks do not fit into the memory of their devices together: they take turns"
               : "the ranks take turns on their devices");
    ++change_;
    return true;
  }
  cell.place.store(Place::kIn);
  TurnArea::Ring(cell.bell);
  known_[victim].stays = true;
  if (result.how == SwapResult::How::kLost) {
    Lose(victim, result.why);
    return false;
  }
  no_swap_ = fmt::format("rank {} cannot be swapped out: {}", ranks_[victim], result.why);
  say_(no_swap_);
  return false;
}

bool TurnScheduler::BringBack(size_t index) {
  TurnCell& cell = Cell(index);
  const SwapResult result = swap_->BringBack(static_cast<pid_t>(cell.pid.load()));
  if (result.how == SwapResult::How::kDone) {
    cell.place.store(Place::kIn);
    TurnArea::Ring(cell.bell);
    return true;
  }
  // The ranks that are there have grown meanwhile: take one fewer, until no other is there.
  bool others = false;
  for (uint64_t bit = 1; bit != 0 && result.how == SwapResult::How::kNoRoom; bit <<= 1u) {
    if ((cell.devices.load() & bit) == 0) continue;
    const size_t there = CountIn(bit);
    others = others || there != 0;
    most_[bit] = std::max<size_t>(there, 1);
  }
  if (!others) Lose(index, result.why);
  return true;
}

void TurnScheduler::Lose(size_t index, const std::string& why) {
  known_[index].shortage = fmt::format(
      "the CUDA driver has lost its device memory while ranks took turns on the device: {}; replay "
      "fewer ranks at a time, or use more --devices",
      why);
  lost_.push_back(index);
}

void TurnScheduler::Answer(size_t index, MemoryAnswer answer) {
  Cell(index).answer.store(answer);
  TurnArea::Ring(Cell(index).bell);
}

void TurnScheduler::Refuse(size_t index) {
  known_[index].shortage = DescribeShortage(index);
  Answer(index, MemoryAnswer::kNo);
}

std::string TurnScheduler::DescribeShortage(size_t index) const {
  const TurnCell& cell = Cell(index);
  const uint64_t asked = cell.asked_bytes.load();
  const uint64_t free_bytes = cell.free_bytes.load();
  const uint64_t total = cell.total_bytes.load();
  std::string text =
      fmt::format("rank {} asked for {} on device {}", ranks_[index],
                  asked == 0 ? "a context" : HumanBytes(asked), cell.asked_device.load());
  if (total != 0) {
    text +=
        fmt::format(", which has {}, {} of them free", HumanBytes(total), HumanBytes(free_bytes));
    if (asked > free_bytes) text += fmt::format(": {} are missing", HumanBytes(asked - free_bytes));
  }
  text += fmt::format("; it holds {}", HumanBytes(cell.held.load()));
  for (size_t i = 0; i < known_.size(); ++i)
    if (IsIn(i) && Share(index, i))
      text += fmt::format(", rank {} {}", ranks_[i], HumanBytes(Cell(i).held.load()));
  if (!no_swap_.empty()) text += fmt::format("; ranks cannot take turns: {}", no_swap_);
  return text +
         "; use more --devices, or replay fewer ranks (--ranks), or one alone (--rank R) with a "
         "recording of level full";
}

bool TurnScheduler::HasSwap() {
  if (swap_opened_) return swap_ != nullptr;
  swap_opened_ = true;
  auto opened = open_swap_();
  if (opened)
    swap_ = std::move(*opened);
  else
    no_swap_ = opened.error().message;
  return swap_ != nullptr;
}

}  // namespace deja::cli
