#include "tests/fakes/cuda/sim_board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace cusim {
namespace {

constexpr int kSlots = 64;

struct Board {
  std::atomic<int> holder;  // pid of the process that looks at the sums; 0: none
  Slot slots[kSlots];
};

int OwnPid() {
  return static_cast<int>(syscall(SYS_getpid));
}

Board& TheBoard() {
  static Board* board = [] {
    const char* key = std::getenv("CUDA_SIM_KEY");
    void* memory = MAP_FAILED;
    if (key != nullptr && key[0] == '/') {
      const int file = open(key, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (file >= 0 && ftruncate(file, sizeof(Board)) == 0)
        memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (file >= 0) close(file);
    } else if (key == nullptr) {
      memory =
          mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    } else {
      const int id = shmget(static_cast<key_t>(std::atol(key)), sizeof(Board), IPC_CREAT | 0600);
      if (id >= 0) memory = shmat(id, nullptr, 0);
    }
    if (memory == MAP_FAILED) std::abort();
    return static_cast<Board*>(memory);
  }();
  return *board;
}

// Across processes, also such as die within.
class Hold {
 public:
  Hold() {
    for (;;) {
      int nobody = 0;
      if (TheBoard().holder.compare_exchange_strong(nobody, OwnPid())) return;
      if (!IsAlive(nobody) && TheBoard().holder.compare_exchange_strong(nobody, OwnPid())) return;
      usleep(100);
    }
  }
  ~Hold() { TheBoard().holder.store(0); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

uint64_t Used(int device) {
  uint64_t sum = 0;
  for (Slot& slot : TheBoard().slots) {
    const int pid = slot.pid.load();
    if (pid != 0 && IsAlive(pid)) sum += slot.used[device].load();
  }
  return sum;
}

Slot& TakeSlot() {
  const Hold hold;
  for (Slot& slot : TheBoard().slots) {
    const int pid = slot.pid.load();
    if (pid != 0 && pid != OwnPid() && IsAlive(pid)) continue;
    for (auto& bytes : slot.used) bytes.store(0);
    slot.state.store(0);
    slot.answer.store(slot.request.load());
    slot.pid.store(OwnPid());
    return slot;
  }
  std::abort();
}

}  // namespace

uint64_t DeviceLimit() {
  static const uint64_t limit = [] {
    const char* text = std::getenv("CUDA_SIM_MEMORY");
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  }();
  return limit;
}

bool IsAlive(int pid) {
  return syscall(SYS_kill, pid, 0) == 0 || errno == EPERM;
}

Slot& OwnSlot() {
  static Slot& slot = TakeSlot();
  return slot;
}

Slot* FindSlot(int pid) {
  for (Slot& slot : TheBoard().slots)
    if (slot.pid.load() == pid && IsAlive(pid)) return &slot;
  return nullptr;
}

bool Reserve(int device, uint64_t bytes) {
  if (DeviceLimit() == 0) return true;
  Slot& own = OwnSlot();
  const Hold hold;
  const uint64_t used = Used(device);
  if (used > DeviceLimit() || bytes > DeviceLimit() - used) return false;
  own.used[device].fetch_add(bytes);
  return true;
}

void Release(int device, uint64_t bytes) {
  if (DeviceLimit() != 0) OwnSlot().used[device].fetch_sub(bytes);
}

uint64_t FreeBytes(int device) {
  const Hold hold;
  const uint64_t used = Used(device);
  return used > DeviceLimit() ? 0 : DeviceLimit() - used;
}

void WaitOn(std::atomic<uint32_t>& word, uint32_t seen, uint32_t limit_ms) {
  const timespec limit{static_cast<time_t>(limit_ms / 1000),
                       static_cast<long>(limit_ms % 1000) * 1000000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace cusim
