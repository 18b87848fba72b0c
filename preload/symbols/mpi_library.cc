#include "preload/symbols/mpi_library.h"

#include <dlfcn.h>

#include <atomic>
#include <iterator>
#include <string_view>

#include "api/mpi_table.h"
#include "common/runtime/errno_keeper.h"
#include "common/runtime/spin_lock.h"
#include "preload/symbols/opened_library.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constexpr MpiAbi kOpenMpi = {.in_place = 1,
                             .status_ignore = 0,
                             .handle_bytes = 8,
                             .status_bytes = 24,
                             .status_error_at = 8,
                             .error_other = 16,
                             .error_in_status = 18,
                             .is_open_mpi = true};
constexpr MpiAbi kMpich = {.in_place = ~uint64_t{0},
                           .status_ignore = 1,
                           .handle_bytes = 4,
                           .status_bytes = 20,
                           .status_error_at = 16,
                           .error_other = 15,
                           .error_in_status = 17,
                           .is_open_mpi = false};

// Open MPI; MPICH and its family; MPICH as Debian calls it.
constexpr const char* kMpiFiles[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"};

constinit OpenedLibrary g_mpi(kMpiFiles);
constinit std::atomic<const MpiAbi*> g_abi{nullptr};

// Addresses of Open MPI's predefined handles, by number - 1, and an index by address. A program
// that is not position-independent has copies of its own: the global scope knows them.
struct Predefined {
  uint64_t handles[api::kFirstMpiHandle] = {};
  struct Slot {
    uint64_t handle;
    uint64_t number;
  };
  static constexpr size_t kSlots = 1024;
  Slot slots[kSlots] = {};

  static size_t Home(uint64_t handle) {
    return static_cast<size_t>((handle * 0x9e3779b97f4a7c15u) >> 32) % kSlots;
  }
  void Add(uint64_t handle, uint64_t number) {
    handles[number] = handle;
    size_t at = Home(handle);
    while (slots[at].handle != 0) at = (at + 1) % kSlots;
    slots[at] = {handle, number};
  }
  [[nodiscard]] uint64_t Find(uint64_t handle) const {
    for (size_t at = Home(handle); slots[at].handle != 0; at = (at + 1) % kSlots)
      if (slots[at].handle == handle) return slots[at].number;
    return 0;
  }
};

constinit Predefined g_predefined;
constinit SpinLock g_predefined_lock;
constinit std::atomic<bool> g_predefined_known{false};

void LearnPredefined() {
  // Looked up without the lock, which is not held while the loader works.
  uint64_t found[api::kFirstMpiHandle] = {};
  const auto table = api::MpiPredefinedHandles();
  const ErrnoKeeper keep;
  for (size_t i = 0; i < table.size(); ++i) {
    void* address = TryDlsym(RTLD_DEFAULT, table[i].symbol);
    if (address == nullptr) address = g_mpi.Find(table[i].symbol);
    found[i] = reinterpret_cast<uint64_t>(address);
  }
  dlerror();
  g_predefined_lock.Lock();
  if (!g_predefined_known.load(std::memory_order_relaxed)) {
    for (size_t i = 0; i < table.size(); ++i)
      if (found[i] != 0) g_predefined.Add(found[i], i + 1);
    g_predefined_known.store(true, std::memory_order_release);
  }
  g_predefined_lock.Unlock();
}

const Predefined& TheOpenMpiHandles() {
  if (!g_predefined_known.load(std::memory_order_acquire)) LearnPredefined();
  return g_predefined;
}

// MPICH says in a handle's upper bits whether it is predefined; of the types of pairs it makes
// ordinary ones at its start.
bool IsMpichPredefined(uint64_t handle) {
  constexpr uint64_t kKind = 0xc0000000;
  constexpr uint64_t kPairs = 0x8c000000;
  return (handle & kKind) == 0x40000000 || (handle & kKind) == 0 ||
         (handle >= kPairs && handle < kPairs + 5);
}

// By the symbol in Open MPI, or its value in MPICH.
uint64_t Constant(std::string_view symbol, uint64_t mpich) {
  if (!TheMpiAbi().is_open_mpi) return mpich;
  const auto table = api::MpiPredefinedHandles();
  for (size_t i = 0; i < table.size(); ++i)
    if (symbol == table[i].symbol) return PredefinedHandle(i + 1);
  return 0;
}

}  // namespace

uint64_t NullMpiComm() {
  return Constant("ompi_mpi_comm_null", 0x04000000);
}

uint64_t NullMpiType() {
  return Constant("ompi_mpi_datatype_null", 0x0c000000);
}

uint64_t MpiCommWorld() {
  return Constant("ompi_mpi_comm_world", 0x44000000);
}

uint64_t MpiCommSelf() {
  return Constant("ompi_mpi_comm_self", 0x44000001);
}

void* RealMpi(const char* name) {
  return g_mpi.Find(name);
}

void RememberMpiHandle(void* handle, const char* name) {
  g_mpi.Remember(handle, name);
}

uint64_t MpiAbi::ReceivedBytes(const void* status) const {
  const auto* bytes = static_cast<const char*>(status);
  if (is_open_mpi) {
    uint64_t count;
    std::memcpy(&count, bytes + 16, sizeof count);
    return count;
  }
  uint32_t words[2];
  std::memcpy(words, bytes, sizeof words);
  return words[0] | static_cast<uint64_t>(words[1] >> 1) << 32;
}

const MpiAbi& TheMpiAbi() {
  const MpiAbi* abi = g_abi.load(std::memory_order_acquire);
  if (abi != nullptr) return *abi;
  if (RealMpi("ompi_mpi_comm_world") == nullptr && RealMpi("MPI_Init") == nullptr) return kOpenMpi;
  abi = RealMpi("ompi_mpi_comm_world") != nullptr ? &kOpenMpi : &kMpich;
  g_abi.store(abi, std::memory_order_release);
  return *abi;
}

uint64_t NumberOfPredefined(uint64_t handle) {
  if (handle == 0) return 0;
  if (!TheMpiAbi().is_open_mpi) return IsMpichPredefined(handle) ? handle | api::kMpichHandle : 0;
  return TheOpenMpiHandles().Find(handle);
}

uint64_t PredefinedHandle(uint64_t number) {
  if ((number & api::kMpichHandle) != 0) return number & 0xffffffff;
  return number == 0 || number >= api::kFirstMpiHandle ? 0 : TheOpenMpiHandles().handles[number];
}

}  // namespace deja::preload
