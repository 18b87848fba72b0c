// An NCCL for the simulated driver: calls return at once, and what they do is done by their
// streams, between processes as loopback/ does it. Made from the API's table.
//
// As in NCCL: a collective is ordered with what is on its stream and with the communicator's other
// operations; a group's operations start together, on all their streams, when the group ends. Work
// is done on threads that belong to the library.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "preload/api/nccl_table.h"
#include "preload/api/table.h"
#include "preload/buffers.h"
#include "tests/fakes/cuda/cuda_sim.h"
#include "tests/fakes/cuda/sim_stream.h"

namespace {

using deja::preload::ApiClass;
using deja::preload::ApiInfo;
using deja::preload::NcclApi;
using deja::preload::Role;

struct Operation {
  uint64_t comm;
  CUstream stream;
  std::function<ncclResult_t()> run;
};

thread_local int t_depth = 0;
thread_local std::vector<Operation> t_group;
std::mutex g_mutex;
std::map<uint64_t, CUevent> g_last;  // by communicator: its latest operations

// It lies in a place that this library's own gives: in a build tree, or beside what is installed.
void* OpenLoopback() {
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&OpenLoopback), &own) == 0) return nullptr;
  std::string folder(own.dli_fname);
  folder.resize(folder.rfind('/') + 1);
  for (const char* place : {"../../lib/libdeja_loopback.so", "../../lib/deja/libdeja_loopback.so"})
    if (void* library = dlopen((folder + place).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

void* Loopback(const char* name) {
  static void* const library = OpenLoopback();
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) {
    std::fprintf(stderr, "device_nccl: no %s of loopback/\n", name);
    std::abort();
  }
  return function;
}

template <typename Function>
Function LoopbackAs(const char* name) {
  return reinterpret_cast<Function>(Loopback(name));
}

void Must(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "device_nccl: %s failed\n", what);
  std::abort();
}

CUevent Recorded(CUstream stream) {
  CUevent event = nullptr;
  Must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS, "cuEventCreate");
  Must(cuEventRecord(event, stream) == CUDA_SUCCESS, "cuEventRecord");
  return event;
}

// The device of a stream is the current one for as long as this lives, as in NCCL. Default streams
// are those of the current device.
class DeviceOf {
 public:
  explicit DeviceOf(CUstream stream) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return;
    CUcontext context = nullptr;
    Must(cuStreamGetCtx(stream, &context) == CUDA_SUCCESS, "cuStreamGetCtx");
    Must(cuCtxPushCurrent_v2(context) == CUDA_SUCCESS, "cuCtxPushCurrent");
    pushed_ = true;
  }
  ~DeviceOf() {
    if (pushed_) cuCtxPopCurrent_v2(nullptr);
  }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;

 private:
  bool pushed_ = false;
};

// What a stream does when it comes to the operations: it lets their thread go on, and waits for it.
// When a graph is launched again there is no thread, and the stream does it.
struct Launch {
  std::vector<Operation> operations;
  cusim::Mark reached;
  cusim::Mark done;
  std::once_flag first;

  void Do() {
    auto start = LoopbackAs<ncclResult_t (*)()>("pncclGroupStart");
    auto end = LoopbackAs<ncclResult_t (*)()>("pncclGroupEnd");
    Must(start() == ncclSuccess, "pncclGroupStart");
    for (const Operation& operation : operations) Must(Started(operation.run()), "operation");
    Must(Started(end()), "pncclGroupEnd");
    for (const Operation& operation : operations) WaitUntilDone(operation.comm);
  }

  // Communicators that do not block leave the work to a thread of loopback's.
  static bool Started(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
  }
  static void WaitUntilDone(uint64_t comm) {
    auto ask = LoopbackAs<ncclResult_t (*)(uint64_t, ncclResult_t*)>("pncclCommGetAsyncError");
    ncclResult_t state = ncclInProgress;
    while (ask(comm, &state) == ncclSuccess && state == ncclInProgress) std::this_thread::yield();
    Must(state == ncclSuccess, "the work of a communicator that does not block");
  }
};

void Enqueue(std::vector<Operation> operations) {
  auto* launch = new Launch;
  CUstream stream = operations.front().stream;
  const DeviceOf device(stream);
  std::set<CUstream> others;
  std::set<uint64_t> comms;
  for (const Operation& operation : operations) {
    comms.insert(operation.comm);
    if (operation.stream != stream) others.insert(operation.stream);
  }
  launch->operations = std::move(operations);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  Must(cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS, "cuStreamIsCapturing");
  const bool captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
  std::lock_guard hold(g_mutex);
  for (CUstream other : others)
    Must(cuStreamWaitEvent(stream, Recorded(other), 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  for (uint64_t comm : comms)
    if (!captured && g_last[comm] != nullptr)
      Must(cuStreamWaitEvent(stream, g_last[comm], 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  if (!captured)
    std::thread([launch] {
      launch->reached.Wait();
      launch->Do();
      launch->done.Reach();
    }).detach();
  auto run = [](void* data) {
    auto* it = static_cast<Launch*>(data);
    it->reached.Reach();
    it->done.Wait();
  };
  auto run_captured = [](void* data) { static_cast<Launch*>(data)->Do(); };
  Must(cuLaunchHostFunc(stream, captured ? +run_captured : +run, launch) == CUDA_SUCCESS,
       "cuLaunchHostFunc");
  CUevent after = Recorded(stream);
  for (CUstream other : others)
    Must(cuStreamWaitEvent(other, after, 0) == CUDA_SUCCESS, "cuStreamWaitEvent");
  for (uint64_t comm : comms)
    if (!captured) g_last[comm] = after;
}

void WaitFor(uint64_t comm) {
  CUevent last = nullptr;
  {
    std::lock_guard hold(g_mutex);
    last = g_last[comm];
  }
  while (last != nullptr && cuEventQuery(last) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
}

// Buffers are given to loopback/ where their bytes are.
template <typename T>
T Reachable(const ApiInfo& info, int arg, T value) {
  if constexpr (std::is_pointer_v<T>) {
    const Role role = info.params[arg].role;
    if (deja::preload::IsInputRole(role) || deja::preload::IsOutputRole(role) ||
        role == Role::kScalarPtr)
      return static_cast<T>(cusim_backing(value));
  }
  return value;
}

template <typename Function, typename... Args>
ncclResult_t CallOn(const ApiInfo& info, Function real, Args... args) {
  int arg = 0;
  [[maybe_unused]] auto bind = [&]<typename T>(T value) { return Reachable(info, arg++, value); };
  // Braces: from left to right.
  return std::apply(real, std::tuple<Args...>{bind(args)...});
}

template <typename... Args>
uint64_t WordOf(const ApiInfo& info, Role role, const Args&... args) {
  const uint64_t words[] = {deja::preload::ToWord(args)..., 0};
  const int at = info.Find(role);
  return at < 0 ? 0 : words[at];
}

// Memory that NCCL allocates is the device's.
ncclResult_t Allocate(void** memory, size_t bytes) {
  CUdeviceptr made = 0;
  if (memory == nullptr || cuMemAlloc_v2(&made, bytes) != CUDA_SUCCESS) return ncclInvalidArgument;
  *memory = reinterpret_cast<void*>(static_cast<uintptr_t>(made));
  return ncclSuccess;
}

ncclResult_t Free(void* memory) {
  return cuMemFree_v2(reinterpret_cast<uintptr_t>(memory)) == CUDA_SUCCESS ? ncclSuccess
                                                                           : ncclInvalidArgument;
}

template <typename Result, typename... Args>
Result Route(NcclApi api, const char* second_name, Args... args) {
  const ApiInfo& info = deja::preload::NcclInfo(api);
  auto real = LoopbackAs<Result (*)(Args...)>(second_name);
  if constexpr (std::is_same_v<Result, ncclResult_t> &&
                std::is_same_v<std::tuple<Args...>, std::tuple<void**, size_t>>)
    if (api == NcclApi::ncclMemAlloc) return Allocate(args...);
  if constexpr (std::is_same_v<Result, ncclResult_t> &&
                std::is_same_v<std::tuple<Args...>, std::tuple<void*>>)
    if (api == NcclApi::ncclMemFree) return Free(args...);
  if constexpr (std::is_same_v<Result, ncclResult_t>) {
    if (info.klass == ApiClass::kCollective || info.klass == ApiClass::kP2p) {
      int arg = 0;
      auto bind = [&]<typename T>(T value) { return Reachable(info, arg++, value); };
      // Braces: from left to right.
      std::tuple<Args...> reachable{bind(args)...};
      t_group.push_back({WordOf(info, Role::kComm, args...),
                         reinterpret_cast<CUstream>(WordOf(info, Role::kStream, args...)),
                         [real, reachable] { return std::apply(real, reachable); }});
      if (t_depth == 0) Enqueue(std::exchange(t_group, {}));
      return ncclSuccess;
    }
    if (api == NcclApi::ncclGroupStart) ++t_depth;
    if (info.klass == ApiClass::kLifecycle) WaitFor(WordOf(info, Role::kComm, args...));
    const ncclResult_t result = CallOn(info, real, args...);
    if (api == NcclApi::ncclGroupEnd && --t_depth == 0 && !t_group.empty())
      Enqueue(std::exchange(t_group, {}));
    return result;
  } else {
    return real(args...);
  }
}

}  // namespace

extern "C" {
#define DEJA_COMMA_NAME(p) , DEJA_PARAM_NAME_ p
#define DEJA_FN(id, result, name, since, klass, ...)                                            \
  __attribute__((visibility("default"))) result p##name DEJA_PARAMS(__VA_ARGS__) {              \
    return Route<result>(NcclApi::name, "p" #name DEJA_FOR_EACH(DEJA_COMMA_NAME, __VA_ARGS__)); \
  }                                                                                             \
  __attribute__((weak, alias("p" #name), visibility("default")))                                \
  result name DEJA_PARAMS(__VA_ARGS__);
#include "preload/api/nccl.def"
#undef DEJA_FN
}
