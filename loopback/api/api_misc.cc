// Version and errors, memory and registration, one-sided operations, parameters.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "common/text/nccl_result_text.h"
#include "loopback/api/api.h"
#include "loopback/ranks/last_error.h"
#include "loopback/ranks/parameters.h"

namespace deja::loopback {
namespace {

// ncclMemAlloc'ed blocks and their lengths. Never destroyed.
pthread_mutex_t g_memory_mutex = PTHREAD_MUTEX_INITIALIZER;
std::map<void*, size_t>& Blocks() {
  static auto* blocks = new std::map<void*, size_t>;
  return *blocks;
}

ncclResult_t Register(ncclComm* comm, void* buffer, size_t bytes, const char* function,
                      void** handle) {
  DEJA_NCCL_CHECK(CheckReady(comm, function));
  DEJA_NCCL_CHECK(CheckPointer(handle, function, "handle"));
  *handle = nullptr;
  if (bytes == 0) return ncclSuccess;
  DEJA_NCCL_CHECK(CheckPointer(buffer, function, "buff"));
  auto made = std::make_unique<Registration>();
  made->buffer = buffer;
  made->bytes = bytes;
  *handle = made.get();
  pthread_mutex_lock(&comm->mutex);
  comm->registrations.push_back(std::move(made));
  pthread_mutex_unlock(&comm->mutex);
  return ncclSuccess;
}

// Null when the handle is none of this communicator's.
const Registration* FindRegistration(const ncclComm* comm, const void* handle) {
  for (const auto& registration : comm->registrations)
    if (registration.get() == handle) return registration.get();
  return nullptr;
}

ncclResult_t Deregister(ncclComm* comm, const void* handle, const char* function) {
  DEJA_NCCL_CHECK(CheckComm(comm, function));
  if (handle == nullptr) return ncclSuccess;
  pthread_mutex_lock(&comm->mutex);
  auto& all = comm->registrations;
  auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& item) { return item.get() == handle; });
  bool known = found != all.end();
  if (known) all.erase(found);
  pthread_mutex_unlock(&comm->mutex);
  if (known) return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : handle %p is not registered with this communicator",
                function, handle);
}

ncclResult_t NoOneSided(const ncclComm* comm, const char* function) {
  DEJA_NCCL_CHECK(CheckUsable(comm, function));
  return Report(ncclInvalidUsage,
                "%s : one-sided operations are not available in host memory: ranks cannot write "
                "into each other's buffers",
                function);
}

const Parameter* FromHandle(ncclParamHandle_t handle) {
  for (const Parameter* parameter : AllParameters())
    if (static_cast<const void*>(parameter) == static_cast<const void*>(handle)) return parameter;
  return nullptr;
}

template <typename T>
ncclResult_t GetInteger(ncclParamHandle_t handle, T* out, const char* function) {
  const Parameter* parameter = FromHandle(handle);
  if (parameter == nullptr || out == nullptr || !parameter->is_integer)
    return Report(ncclInvalidArgument, "%s : no integer parameter, or nowhere to put it", function);
  int64_t value = parameter->Integer();
  bool fits = sizeof(T) == 8 ? (std::numeric_limits<T>::is_signed || value >= 0)
                             : value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                   value <= static_cast<int64_t>(std::numeric_limits<T>::max());
  if (!fits)
    return Report(ncclInvalidArgument, "%s : %s is %lld, which does not fit", function,
                  parameter->key, static_cast<long long>(value));
  *out = static_cast<T>(value);
  return ncclSuccess;
}

// The value as text, which is the calling thread's until it asks again.
const char* Text(const Parameter& parameter) {
  // Not in the thread's own block: a library that is loaded late gets little of that.
  static thread_local std::string* text = nullptr;
  if (text == nullptr) text = new std::string;
  *text = parameter.is_integer ? std::to_string(parameter.Integer()) : parameter.String();
  return text->c_str();
}

}  // namespace
}  // namespace deja::loopback

using deja::loopback::Parameter;
using deja::loopback::Report;

DEJA_NCCL_API(ncclResult_t, ncclGetVersion, (int* version)) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

// Nothing here goes over a network.
DEJA_NCCL_API(ncclResult_t, ncclSetEncryption, (const ncclEncryptionConfig_t* config)) {
  if (config != nullptr && config->magic == NCCL_API_MAGIC) return ncclSuccess;
  return Report(ncclInvalidArgument,
                "ncclEncryptionConfig_t argument not initialized via "
                "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
}

DEJA_NCCL_API(const char*, ncclGetErrorString, (ncclResult_t result)) {
  return deja::NcclResultText(result);
}

DEJA_NCCL_API(const char*, ncclGetLastError, (ncclComm_t)) {
  return deja::loopback::LastError();
}

DEJA_NCCL_API(void, ncclResetDebugInit, (void)) {}

DEJA_NCCL_API(ncclResult_t, ncclMemAlloc, (void** ptr, size_t size)) {
  if (ptr == nullptr || size == 0)
    return Report(ncclInvalidArgument, "ncclMemAlloc : invalid pointer, or a size of 0");
  *ptr = nullptr;
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (size > static_cast<size_t>(PTRDIFF_MAX) - page)
    return Report(ncclSystemError, "ncclMemAlloc : %zu bytes cannot be had", size);
  size_t length = (size + page - 1) / page * page;
  void* block = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    return Report(ncclSystemError, "ncclMemAlloc : %zu bytes cannot be had", size);
  pthread_mutex_lock(&deja::loopback::g_memory_mutex);
  deja::loopback::Blocks()[block] = length;
  pthread_mutex_unlock(&deja::loopback::g_memory_mutex);
  *ptr = block;
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclMemFree, (void* ptr)) {
  if (ptr == nullptr) return ncclSuccess;
  size_t length = 0;
  pthread_mutex_lock(&deja::loopback::g_memory_mutex);
  auto& blocks = deja::loopback::Blocks();
  if (auto found = blocks.find(ptr); found != blocks.end()) {
    length = found->second;
    blocks.erase(found);
  }
  pthread_mutex_unlock(&deja::loopback::g_memory_mutex);
  if (length == 0)
    return Report(ncclInvalidArgument, "ncclMemFree : %p was not allocated by ncclMemAlloc", ptr);
  munmap(ptr, length);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommRegister,
              (const ncclComm_t comm, void* buff, size_t size, void** handle)) {
  return deja::loopback::Register(comm, buff, size, "ncclCommRegister", handle);
}

DEJA_NCCL_API(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle)) {
  return deja::loopback::Deregister(comm, handle, "ncclCommDeregister");
}

DEJA_NCCL_API(ncclResult_t, ncclCommWindowRegister,
              (ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags)) {
  if ((winFlags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING)) != 0)
    return Report(ncclInvalidArgument, "ncclCommWindowRegister : invalid flags %d", winFlags);
  return deja::loopback::Register(comm, buff, size, "ncclCommWindowRegister",
                                  reinterpret_cast<void**>(win));
}

DEJA_NCCL_API(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t comm, ncclWindow_t win)) {
  return deja::loopback::Deregister(comm, win, "ncclCommWindowDeregister");
}

DEJA_NCCL_API(ncclResult_t, ncclWinGetUserPtr,
              (ncclComm_t comm, ncclWindow_t win, void** outUserPtr)) {
  constexpr const char* kName = "ncclWinGetUserPtr";
  DEJA_NCCL_CHECK(deja::loopback::CheckComm(comm, kName));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(outUserPtr, kName, "outUserPtr"));
  pthread_mutex_lock(&comm->mutex);
  const auto* found = deja::loopback::FindRegistration(comm, win);
  *outUserPtr = found == nullptr ? nullptr : found->buffer;
  pthread_mutex_unlock(&comm->mutex);
  if (found != nullptr) return ncclSuccess;
  return Report(ncclInvalidArgument, "%s : not a window of this communicator", kName);
}

DEJA_NCCL_API(ncclResult_t, ncclPutSignal,
              (const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
               unsigned int, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::NoOneSided(comm, "ncclPutSignal");
}

DEJA_NCCL_API(ncclResult_t, ncclSignal,
              (int, int, int, unsigned int, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::NoOneSided(comm, "ncclSignal");
}

DEJA_NCCL_API(ncclResult_t, ncclWaitSignal,
              (int, ncclWaitSignalDesc_t*, ncclComm_t comm, cudaStream_t)) {
  return deja::loopback::NoOneSided(comm, "ncclWaitSignal");
}

// There is no device memory to give back; the communicator only becomes unusable until it is
// resumed.
DEJA_NCCL_API(ncclResult_t, ncclCommSuspend, (ncclComm_t comm, int flags)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "ncclCommSuspend"));
  if (flags != NCCL_SUSPEND_MEM)
    return Report(ncclInvalidArgument, "ncclCommSuspend : invalid flags %d", flags);
  if (comm->suspended.exchange(true))
    return Report(ncclInvalidUsage, "ncclCommSuspend : communicator is suspended already");
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommResume, (ncclComm_t comm)) {
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, "ncclCommResume"));
  if (!comm->suspended.exchange(false))
    return Report(ncclInvalidUsage, "ncclCommResume : communicator is not suspended");
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclCommMemStats,
              (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value)) {
  constexpr const char* kName = "ncclCommMemStats";
  DEJA_NCCL_CHECK(deja::loopback::CheckReady(comm, kName));
  DEJA_NCCL_CHECK(deja::loopback::CheckPointer(value, kName, "value"));
  switch (static_cast<int>(stat)) {
    case ncclStatGpuMemSuspend:
      *value = 0;
      return ncclSuccess;
    case ncclStatGpuMemSuspended:
      *value = comm->suspended.load() ? 1 : 0;
      return ncclSuccess;
    case ncclStatGpuMemPersist:
    case ncclStatGpuMemTotal:
      *value = comm->area.size();
      return ncclSuccess;
    default:
      return Report(ncclInvalidArgument, "%s : invalid statistic %d", kName,
                    static_cast<int>(stat));
  }
}

DEJA_NCCL_API(ncclResult_t, ncclParamBind, (ncclParamHandle_t * out, const char* key)) {
  if (out == nullptr || key == nullptr)
    return Report(ncclInvalidArgument, "ncclParamBind : an argument is NULL");
  const Parameter* found = deja::loopback::FindParameter(key);
  *out = reinterpret_cast<ncclParamHandle_t>(const_cast<Parameter*>(found));
  if (found != nullptr) return ncclSuccess;
  return Report(ncclInvalidArgument, "ncclParamBind : there is no parameter %s", key);
}

#define DEJA_PARAM_GETTER(suffix, type)                                                  \
  DEJA_NCCL_API(ncclResult_t, ncclParamGet##suffix, (ncclParamHandle_t h, type * out)) { \
    return deja::loopback::GetInteger(h, out, "ncclParamGet" #suffix);                   \
  }
DEJA_PARAM_GETTER(I8, int8_t)
DEJA_PARAM_GETTER(I16, int16_t)
DEJA_PARAM_GETTER(I32, int32_t)
DEJA_PARAM_GETTER(I64, int64_t)
DEJA_PARAM_GETTER(U8, uint8_t)
DEJA_PARAM_GETTER(U16, uint16_t)
DEJA_PARAM_GETTER(U32, uint32_t)
DEJA_PARAM_GETTER(U64, uint64_t)
#undef DEJA_PARAM_GETTER

DEJA_NCCL_API(ncclResult_t, ncclParamGetStr, (ncclParamHandle_t h, const char** out)) {
  const Parameter* parameter = deja::loopback::FromHandle(h);
  if (parameter == nullptr || out == nullptr)
    return Report(ncclInvalidArgument, "ncclParamGetStr : no parameter, or nowhere to put it");
  *out = deja::loopback::Text(*parameter);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclParamGet, (ncclParamHandle_t h, void* out, int maxLen, int* len)) {
  const Parameter* parameter = deja::loopback::FromHandle(h);
  if (parameter == nullptr || out == nullptr || len == nullptr || maxLen < 0)
    return Report(ncclInvalidArgument, "ncclParamGet : no parameter, or nowhere to put it");
  int64_t integer = parameter->is_integer ? parameter->Integer() : 0;
  const void* value = parameter->is_integer ? static_cast<const void*>(&integer)
                                            : static_cast<const void*>(parameter->String());
  size_t bytes = parameter->is_integer ? sizeof integer : std::strlen(parameter->String()) + 1;
  *len = static_cast<int>(bytes);
  if (bytes > static_cast<size_t>(maxLen))
    return Report(ncclInvalidArgument, "ncclParamGet : %s takes %zu bytes, there is room for %d",
                  parameter->key, bytes, maxLen);
  std::memcpy(out, value, bytes);
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclParamGetParameter,
              (const char* key, const char** value, int* valueLen)) {
  if (key == nullptr || value == nullptr)
    return Report(ncclInvalidArgument, "ncclParamGetParameter : an argument is NULL");
  const Parameter* found = deja::loopback::FindParameter(key);
  if (found == nullptr)
    return Report(ncclInvalidArgument, "ncclParamGetParameter : there is no parameter %s", key);
  *value = deja::loopback::Text(*found);
  if (valueLen != nullptr) *valueLen = static_cast<int>(std::strlen(*value));
  return ncclSuccess;
}

DEJA_NCCL_API(ncclResult_t, ncclParamGetAllParameterKeys, (const char*** table, int* tableLen)) {
  if (table == nullptr || tableLen == nullptr)
    return Report(ncclInvalidArgument, "ncclParamGetAllParameterKeys : an argument is NULL");
  static const char** keys = [] {
    auto all = deja::loopback::AllParameters();
    auto* made = new const char*[all.size()];
    for (size_t i = 0; i < all.size(); ++i) made[i] = all[i]->key;
    return made;
  }();
  *table = keys;
  *tableLen = static_cast<int>(deja::loopback::AllParameters().size());
  return ncclSuccess;
}

DEJA_NCCL_API(void, ncclParamDumpAll, (void)) {
  for (const Parameter* parameter : deja::loopback::AllParameters())
    dprintf(STDERR_FILENO, "%s=%s\n", parameter->key, deja::loopback::Text(*parameter));
}
