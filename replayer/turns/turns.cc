#include "replayer/turns/turns.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/env_vars.h"

namespace deja::replayer {
namespace {

// The bells ring; this is for a `deja replay` that has died.
constexpr uint32_t kLookAgainMs = 100;

std::atomic<Turns*> g_turns{nullptr};

pid_t LivePid() {
  return static_cast<pid_t>(syscall(SYS_getpid));
}

// The device behind the number that the program uses. With one name that is no number: that number.
int DeviceBehind(int device) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int i = 0; visible != nullptr && i < device; ++i) {
    visible = std::strchr(visible, ',');
    if (visible != nullptr) ++visible;
  }
  if (visible == nullptr) return device;
  int behind = device;
  std::from_chars(visible, visible + std::strlen(visible), behind);
  return behind;
}

}  // namespace

Status Turns::Open(const char* place) {
  if (place == nullptr) return {};
  const std::string text(place);
  const size_t colon = text.find(':');
  uint32_t index = 0;
  std::from_chars(text.data(), text.data() + text.size(), index);
  DEJA_ASSIGN_OR_RETURN(const TurnArea area, TurnArea::Open(text.substr(colon + 1)));
  if (colon == std::string::npos || index >= area.ranks())
    return Fail(ErrorCode::kInvalidArgument,
                std::string(env::kTurns.name) + ": not a rank's place: " + text);
  g_turns.store(new Turns(area, index));  // never destroyed: hooks are called until the very end
  return {};
}

Turns* Turns::OfRank() {
  Turns* turns = g_turns.load(std::memory_order_acquire);
  return turns != nullptr && turns->pid_ == LivePid() ? turns : nullptr;
}

Turns* Turns::Get() {
  Turns* turns = OfRank();
  return turns != nullptr && turns->area_.schedules().load() != 0 ? turns : nullptr;
}

Turns::Turns(const TurnArea& area, uint32_t index)
    : area_(area), cell_(&area.cell(index)), pid_(LivePid()) {
  cell_->pid.store(static_cast<uint32_t>(pid_));
}

void Turns::Uses(int device) {
  const int behind = DeviceBehind(device);
  if (behind < 0 || behind >= 64) return;
  const uint64_t bit = uint64_t{1} << static_cast<uint32_t>(behind);
  if ((cell_->devices.load(std::memory_order_relaxed) & bit) == 0) cell_->devices.fetch_or(bit);
}

uint64_t Turns::HeldByOthers(int device) const {
  const int behind = DeviceBehind(device);
  uint64_t held = 0;
  for (uint32_t i = 0; behind >= 0 && behind < 64 && i < area_.ranks(); ++i) {
    const TurnCell& other = area_.cell(i);
    if (&other != cell_ && ((other.devices.load() >> static_cast<uint32_t>(behind)) & 1) != 0 &&
        other.place.load() != Place::kOut)
      held += other.held.load();
  }
  return held;
}

Turns::Rest::Rest() : turns_(OfRank()) {
  if (turns_ == nullptr) return;
  turns_->cell_->rests.fetch_add(1);
  turns_->cell_->resting.fetch_add(1);
  TurnArea::Ring(turns_->area_.bell());
}

Turns::Rest::~Rest() {
  if (turns_ == nullptr) return;
  turns_->cell_->resting.fetch_sub(1);
  turns_->cell_->rests.fetch_add(1);
  turns_->ComeIn();
}

void Turns::ComeIn() {
  // The second to look sees what the other has done: `deja replay` says kLeaving and then looks
  // whether the rank still rests.
  if (cell_->place.load() == Place::kIn) return;
  cell_->wants_in.fetch_add(1);
  TurnArea::Ring(area_.bell());
  for (;;) {
    const uint32_t seen = cell_->bell.load();
    if (cell_->place.load() == Place::kIn) break;
    TurnArea::WaitFor(cell_->bell, seen, kLookAgainMs);
  }
  cell_->wants_in.fetch_sub(1);
}

bool Turns::WaitsForOthers() const {
  if (cell_->wants_in.load() != 0 || cell_->asks.load() % 2 == 1) return true;
  if (area_.all_still().load() != 0) return false;
  // What a thread does that does not rest may have to wait until it is back.
  if (cell_->place.load() != Place::kIn) return true;
  if (cell_->resting.load() == 0) return false;
  for (uint32_t i = 0; i < area_.ranks(); ++i) {
    const TurnCell& other = area_.cell(i);
    if (&other == cell_ || other.ended.load() != 0) continue;
    if (other.resting.load() == 0 || other.place.load() != Place::kIn || other.asks.load() % 2 == 1)
      return true;
  }
  return false;
}

bool Turns::MakeRoom(const Shortage& shortage) {
  std::lock_guard<std::mutex> lock(asking_);
  if (shortage.device != kOwnDevice) Uses(shortage.device);
  const uint64_t used = cell_->devices.load();
  if (used == 0) return false;
  const int device =
      shortage.device == kOwnDevice ? std::countr_zero(used) : DeviceBehind(shortage.device);
  cell_->asked_bytes.store(shortage.bytes);
  cell_->asked_device.store(static_cast<uint64_t>(device));
  cell_->free_bytes.store(shortage.free_bytes);
  cell_->total_bytes.store(shortage.total_bytes);
  cell_->answer.store(MemoryAnswer::kNone);
  cell_->asks.fetch_add(1);
  TurnArea::Ring(area_.bell());
  MemoryAnswer answer = MemoryAnswer::kNone;
  for (;;) {
    const uint32_t seen = cell_->bell.load();
    answer = cell_->answer.load();
    if (answer != MemoryAnswer::kNone) break;
    TurnArea::WaitFor(cell_->bell, seen, kLookAgainMs);
  }
  cell_->asks.fetch_add(1);
  return answer == MemoryAnswer::kTryAgain;
}

}  // namespace deja::replayer
