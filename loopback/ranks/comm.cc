#include "loopback/ranks/comm.h"

#include <algorithm>

namespace deja::loopback {
namespace {

pthread_rwlock_t g_lock = PTHREAD_RWLOCK_INITIALIZER;

// Never destroyed: the program may use communicators in its exit handlers.
std::vector<const ncclComm*>& Comms() {
  static auto* comms = new std::vector<const ncclComm*>;
  return *comms;
}

}  // namespace

void AddComm(ncclComm* comm) {
  pthread_rwlock_wrlock(&g_lock);
  Comms().push_back(comm);
  pthread_rwlock_unlock(&g_lock);
}

void RemoveComm(ncclComm* comm) {
  pthread_rwlock_wrlock(&g_lock);
  auto& comms = Comms();
  comms.erase(std::remove(comms.begin(), comms.end(), comm), comms.end());
  pthread_rwlock_unlock(&g_lock);
}

bool IsComm(const ncclComm* comm) {
  pthread_rwlock_rdlock(&g_lock);
  auto& comms = Comms();
  bool found = std::find(comms.begin(), comms.end(), comm) != comms.end();
  pthread_rwlock_unlock(&g_lock);
  return found;
}

}  // namespace deja::loopback

using deja::loopback::ProcessId;
using deja::loopback::RankCell;
using deja::loopback::RankState;
using deja::loopback::Turnstile;

void ncclComm::Size() {
  auto n = static_cast<size_t>(nranks);
  sends = std::vector<Turnstile>(n);
  receives = std::vector<Turnstile>(n);
}

void ncclComm::Break(ncclResult_t result) {
  ncclResult_t none = ncclSuccess;
  failure.compare_exchange_strong(none, result);
}

ProcessId ncclComm::ProcessOf(int peer) const {
  if (area.valid()) {
    const RankCell& cell = area.cell(peer);
    if (cell.state.load(std::memory_order_acquire) != static_cast<uint32_t>(RankState::kAbsent))
      return {cell.pid, cell.start_time, cell.pid_namespace};
  }
  auto index = static_cast<size_t>(peer);
  return index < expected.size() ? expected[index] : ProcessId{};
}

bool ncclComm::HasLeft(int peer) const {
  if (area.valid()) {
    auto state = static_cast<RankState>(area.cell(peer).state.load(std::memory_order_acquire));
    if (state == RankState::kAborted || state == RankState::kLeft) return true;
  }
  ProcessId process = ProcessOf(peer);
  static const int32_t self = deja::loopback::ThisProcess().pid;
  if (process.pid == 0 || process.pid == self) return false;
  return deja::loopback::HasEnded(process);
}
