// Device memory that a replayed program asks for, where ranks share devices: what the driver
// refuses for want of it is tried again when other ranks have made room (turns.h). What the program
// has is counted, for whoever wants to know who holds it all.
//
// Any thread, also within the runtime's and PyTorch's own locks: others of the process may wait
// here for those, but no other rank does.
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "include/compat/cuda.h"
#include "preload/guard.h"
#include "preload/hooks/export.h"
#include "replayer/driver_hooks.h"
#include "replayer/turns.h"

namespace deja::replayer {
namespace {

constexpr int kCurrent = -1;              // device
constexpr uint64_t kPerThreadStream = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

// What is allocated, by address or handle; both are the driver's, and differ.
class Allocations {
 public:
  void Add(uint64_t name, uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes_[name] = bytes;
  }
  // How many bytes it had; 0: it is not known.
  uint64_t Remove(uint64_t name) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = bytes_.find(name);
    if (it == bytes_.end()) return 0;
    const uint64_t bytes = it->second;
    bytes_.erase(it);
    return bytes;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> bytes_;
};

Allocations& TheAllocations() {
  static auto* all = new Allocations;  // programs free memory in static destructors
  return *all;
}

Turns::Shortage Describe(uint64_t bytes, int device) {
  static const auto get_info = Real<CUresult (*)(size_t*, size_t*)>("cuMemGetInfo_v2");
  static const auto get_device = Real<CUresult (*)(CUdevice*)>("cuCtxGetDevice");
  Turns::Shortage shortage{bytes, device, 0, 0};
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (device == kCurrent && (get_device == nullptr || get_device(&shortage.device) != CUDA_SUCCESS))
    shortage.device = 0;
  if (get_info != nullptr && get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS) {
    shortage.free_bytes = free_bytes;
    shortage.total_bytes = total_bytes;
  }
  return shortage;
}

void NoteUse(Turns& turns) {
  static const auto get_device = Real<CUresult (*)(CUdevice*)>("cuCtxGetDevice");
  CUdevice device = 0;
  if (get_device != nullptr && get_device(&device) == CUDA_SUCCESS) turns.Uses(device);
}

// `attempt` asks the driver for `bytes` of `device`.
template <typename Attempt>
CUresult Get(uint64_t bytes, int device, const Attempt& attempt) {
  CUresult result = attempt();
  preload::Guard guard;
  Turns* turns = Turns::Get();
  while (result == CUDA_ERROR_OUT_OF_MEMORY && turns != nullptr) {
    if (!turns->MakeRoom(Describe(bytes, device))) break;
    result = attempt();
  }
  return result;
}

template <typename Name>
void NoteAllocation(CUresult result, const Name* name, uint64_t bytes) {
  Turns* turns = Turns::Get();
  if (turns == nullptr || result != CUDA_SUCCESS || name == nullptr) return;
  preload::Guard guard;
  NoteUse(*turns);
  TheAllocations().Add(*name, bytes);
  turns->Holds(static_cast<int64_t>(bytes));
}

template <typename Attempt>
CUresult GiveBack(uint64_t name, const Attempt& attempt) {
  Turns* turns = Turns::Get();
  // First, since the driver may give the same address to somebody else at once.
  const uint64_t bytes = turns == nullptr ? 0 : TheAllocations().Remove(name);
  const CUresult result = attempt();
  if (bytes == 0) return result;
  if (result == CUDA_SUCCESS)
    turns->Holds(-static_cast<int64_t>(bytes));
  else
    TheAllocations().Add(name, bytes);
  return result;
}

using AllocAsync = CUresult (*)(CUdeviceptr*, size_t, CUstream);
using FreeAsync = CUresult (*)(CUdeviceptr, CUstream);

CUresult GetAsync(AllocAsync real, CUdeviceptr* address, size_t bytes, CUstream stream) {
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = Get(bytes, kCurrent, [&] { return real(address, bytes, stream); });
  NoteAllocation(result, address, bytes);
  return result;
}

CUresult GiveBackAsync(FreeAsync real, CUdeviceptr address, CUstream stream) {
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return GiveBack(address, [&] { return real(address, stream); });
}

}  // namespace
}  // namespace deja::replayer

using deja::replayer::Real;

DEJA_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  static const auto real = Real<CUresult (*)(CUdeviceptr*, size_t)>("cuMemAlloc_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result =
      deja::replayer::Get(bytes, deja::replayer::kCurrent, [&] { return real(address, bytes); });
  deja::replayer::NoteAllocation(result, address, bytes);
  return result;
}

DEJA_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  static const auto real = Real<CUresult (*)(CUdeviceptr)>("cuMemFree_v2");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return deja::replayer::GiveBack(address, [&] { return real(address); });
}

DEJA_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  static const auto real = Real<deja::replayer::AllocAsync>("cuMemAllocAsync");
  return deja::replayer::GetAsync(real, address, bytes, stream);
}

DEJA_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  static const auto real = Real<deja::replayer::AllocAsync>("cuMemAllocAsync_ptsz");
  return deja::replayer::GetAsync(real, address, bytes, stream);
}

DEJA_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  static const auto real = Real<deja::replayer::FreeAsync>("cuMemFreeAsync");
  return deja::replayer::GiveBackAsync(real, address, stream);
}

DEJA_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  static const auto real = Real<deja::replayer::FreeAsync>("cuMemFreeAsync_ptsz");
  return deja::replayer::GiveBackAsync(real, address, stream);
}

DEJA_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                 const CUmemAllocationProp* properties, uint64_t flags) {
  using Create =
      CUresult (*)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, uint64_t);
  static const auto real = Real<Create>("cuMemCreate");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = deja::replayer::Get(
      bytes, deja::replayer::kCurrent, [&] { return real(handle, bytes, properties, flags); });
  deja::replayer::NoteAllocation(result, handle, bytes);
  return result;
}

DEJA_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  static const auto real = Real<CUresult (*)(CUmemGenericAllocationHandle)>("cuMemRelease");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return deja::replayer::GiveBack(handle, [&] { return real(handle); });
}

DEJA_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  static const auto real = Real<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  if (real == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = deja::replayer::Get(0, device, [&] { return real(context, device); });
  if (deja::replayer::Turns* turns = deja::replayer::Turns::Get(); turns != nullptr)
    turns->Uses(device);
  return result;
}

namespace deja::replayer {
namespace {

struct Hook {
  const char* name;
  const char* symbol;
  bool per_thread;
  void* function;
};
const Hook kHooks[] = {
#define DEJA_CU_MEMORY(name, symbol, per_thread) \
  {#name, #symbol, (per_thread) != 0, reinterpret_cast<void*>(&::name)},
#include "replayer/device_memory.def"
#undef DEJA_CU_MEMORY
};

}  // namespace

void* MemoryHook(const char* name) {
  if (Turns::Get() == nullptr) return nullptr;
  for (const Hook& hook : kHooks)
    if (std::strcmp(hook.name, name) == 0) return hook.function;
  return nullptr;
}

void* MemoryHookFor(const char* symbol, uint64_t flags) {
  if (Turns::Get() == nullptr) return nullptr;
  const bool per_thread = (flags & kPerThreadStream) != 0;
  void* found = nullptr;
  // Most functions are the same for both kinds of default streams.
  for (const Hook& hook : kHooks)
    if (std::strcmp(hook.symbol, symbol) == 0 &&
        (found == nullptr || hook.per_thread == per_thread))
      found = hook.function;
  return found;
}

}  // namespace deja::replayer
