#pragma GCC visibility push(default)
#include "tests/fakes/cuda/cuda_sim.h"
#pragma GCC visibility pop

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "tests/fakes/cuda/kernels/sim_digest.h"
#include "tests/fakes/cuda/sim_board.h"
#include "tests/fakes/cuda/sim_driver.h"
#include "tests/fakes/cuda/sim_gate.h"
#include "tests/fakes/cuda/sim_graph.h"
#include "tests/fakes/cuda/sim_habits.h"
#include "tests/fakes/cuda/sim_memory.h"
#include "tests/fakes/cuda/sim_stream.h"
#include "tests/fakes/cuda/sim_version.h"

namespace {

using cusim::CheckUnsafeCall;
using cusim::Current;
using cusim::Enqueue;
using cusim::Memory;

struct Driver {
  std::mutex mutex;          // of captures and of what is made on first use
  std::vector<int> devices;  // by the program's number, that of the board
  CUcontext primary[cusim::kBoardDevices] = {};
  std::vector<CUcontext> contexts;  // all
  std::vector<CUgraph> captures;    // that are open
  int broken = 0;
  unsigned long long begun = 0;  // captures so far
};
Driver* g_driver = nullptr;
std::atomic<bool> g_ready{false};
std::atomic<int> g_host_functions{0};

thread_local std::vector<CUcontext> t_contexts;
thread_local CUstreamCaptureMode t_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local std::map<CUcontext, CUstream> t_streams;

void Break(CUgraph graph) {
  if (graph->broken) return;
  graph->broken = true;
  ++g_driver->broken;
}

// With the driver's mutex held.
void Capture(CUstream stream, CUgraph graph, CUstreamCaptureMode mode) {
  graph->mode = mode;
  graph->thread = std::this_thread::get_id();
  graph->capture_id = ++g_driver->begun;
  stream->capture = graph;
  g_driver->captures.push_back(graph);
}

bool IsLegacy(CUstream stream) {
  return stream == nullptr || stream == CU_STREAM_LEGACY;
}

// The stream behind a handle. With the driver's mutex held.
CUresult Find(CUstream handle, CUstream* stream) {
  if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    *stream = handle;
    return CUDA_SUCCESS;
  }
  CUcontext context = Current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (IsLegacy(handle)) {
    for (CUstream other : context->blocking)
      if (other->capture != nullptr) {
        Break(other->capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    *stream = context->legacy;
    return CUDA_SUCCESS;
  }
  CUstream& own = t_streams[context];
  if (own == nullptr) {
    own = new CUstream_st(context, true);
    std::lock_guard hold(context->mutex);
    context->streams.push_back(own);
    context->blocking.push_back(own);
  }
  *stream = own;
  return CUDA_SUCCESS;
}

// With the driver's mutex held. Null: the device has no memory for it.
CUcontext NewContext(CUdevice device) {
  void* memory = nullptr;
  if (const uint64_t bytes = cusim::Setting("CUDA_SIM_CONTEXT"); bytes != 0) {
    memory = cusim::Allocate(Memory::kDevice, bytes, device);
    if (memory == nullptr) return nullptr;
  }
  auto* context = new CUctx_st;
  context->device = device;
  context->memory = memory;
  context->legacy = new CUstream_st(context, true);
  context->streams.push_back(context->legacy);
  g_driver->contexts.push_back(context);
  return context;
}

// The board's numbers of the devices that the program is to see. A driver takes only the first of
// the names that begin with MIG-.
std::vector<int> VisibleDevices() {
  const char* text = std::getenv("CUDA_SIM_DEVICES");
  const int there = std::min(text == nullptr ? 2 : std::atoi(text), cusim::kBoardDevices);
  std::vector<int> devices;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr)
    for (int i = 0; i < there; ++i) devices.push_back(i);
  std::string_view rest(visible == nullptr ? "" : visible);
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const int number = std::atoi(std::string(name.substr(digits)).c_str());
    const bool is_name = name.starts_with("GPU-") || name.starts_with("MIG-");
    if (name.size() == digits || (digits != 0 && !is_name) || number >= there) break;
    devices.push_back(number);
    if (name.starts_with("MIG-")) break;
  }
  return devices;
}

}  // namespace

int cusim::OnBoard(int device) {
  return g_driver == nullptr ? device : g_driver->devices.at(static_cast<size_t>(device));
}

CUcontext cusim::Current() {
  return t_contexts.empty() ? nullptr : t_contexts.back();
}

CUresult cusim::CheckUnsafeCall() {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  if (t_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (CUgraph graph : g_driver->captures) {
    const bool forbids = graph->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                         (graph->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                          graph->thread == std::this_thread::get_id());
    if (!forbids) continue;
    Break(graph);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult cusim::Enqueue(CUstream handle, std::function<void()> work, CUgraphNodeType type) {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  return stream->Put(std::move(work), type);
}

bool cusim::IsReady() {
  return g_ready;
}

CUresult cusim::StreamOf(CUstream handle, CUstream* stream) {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  return Find(handle, stream);
}

CUcontext cusim::PrimaryOf(CUdevice device) {
  if (!g_ready || device < 0 || device >= kBoardDevices) return nullptr;
  std::lock_guard hold(g_driver->mutex);
  return g_driver->primary[device];
}

uint64_t cusim::Setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

bool cusim::StreamsHaveWork() {
  std::lock_guard hold(g_driver->mutex);
  for (CUcontext context : g_driver->contexts)
    if (context->work.load() != 0) return true;
  return false;
}

extern "C" {

void* cusim_backing(const void* address) {
  return cusim::Backing(address);
}

int cusim_digest_launches(void) {
  return cusim::DigestLaunches();
}

int cusim_host_functions(void) {
  return g_host_functions;
}

int cusim_broken_captures(void) {
  std::lock_guard hold(g_driver->mutex);
  return g_driver->broken;
}

CUresult cuInit(unsigned int) {
  static const CUresult result = [] {
    if (cusim::InitResult() != CUDA_SUCCESS) return cusim::InitResult();
    g_driver = new Driver;
    g_driver->devices = VisibleDevices();
    if (g_driver->devices.empty()) return CUDA_ERROR_NO_DEVICE;
    if (!cusim::StartHabits()) return CUDA_ERROR_UNKNOWN;
    g_ready = true;
    cusim::ServeCheckpoints();
    return CUDA_SUCCESS;
  }();
  return result;
}

CUresult cuDeviceGetCount(int* count) {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(g_driver->devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= g_driver->devices.size())
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUcontext& primary = g_driver->primary[device];
  if (primary == nullptr) primary = NewContext(device);
  *context = primary;
  return primary == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult CreateContext(CUcontext* context, CUdevice device) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  *context = NewContext(device);
  if (*context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  t_contexts.push_back(*context);
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice device) {
  return CreateContext(context, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned int,
                        CUdevice device) {
  return CreateContext(context, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int, CUdevice device) {
  return CreateContext(context, device);
}

// Its streams stay, and what they have to do.
CUresult cuCtxDestroy_v2(CUcontext context) {
  const cusim::ApiCall call;
  std::erase(t_contexts, context);
  if (context->memory != nullptr) cusim::Free(context->memory);
  context->memory = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  if (!t_contexts.empty()) t_contexts.pop_back();
  if (context != nullptr) t_contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  *context = Current();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = Current()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  t_contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  const cusim::ApiCall call;
  if (t_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = t_contexts.back();
  t_contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  CUcontext context = Current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
  *stream = new CUstream_st(context, blocking);
  std::lock_guard hold(context->mutex);
  context->streams.push_back(*stream);
  if (blocking) context->blocking.push_back(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  const cusim::ApiCall call;
  if (CUresult result = CheckUnsafeCall(); result != CUDA_SUCCESS) return result;
  auto mark = std::make_shared<cusim::Mark>();
  const CUresult result = Enqueue(handle, [mark] { mark->Reach(); });
  cusim::WaitingHabits();
  if (result == CUDA_SUCCESS) mark->Wait();
  return result;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  *context = stream->context;
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0)
    return stream->PutAtLaunch(CU_GRAPH_NODE_TYPE_WAIT_EVENT, [event] {
      std::lock_guard held(event->mutex);
      return [mark = event->mark] {
        if (mark != nullptr) mark->Wait();
      };
    });
  std::unique_lock held(event->mutex);
  if (event->capture != nullptr && stream->capture == nullptr) stream->capture = event->capture;
  if (stream->capture != nullptr && event->capture != stream->capture) {
    Break(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (stream->capture != nullptr)
    return CUDA_SUCCESS;  // the order of its work is that of the calls
  cusim::MarkPtr mark = event->mark;
  held.unlock();
  if (mark == nullptr) return CUDA_SUCCESS;
  return stream->Put([mark] { mark->Wait(); });
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                unsigned int flags) {
  const cusim::ApiCall call;
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_INVALID_VALUE;
  auto* word = static_cast<unsigned int*>(cusim::SeenByDevice(address));
  if (word == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Enqueue(stream, [word, value] {
    while (static_cast<int>(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  if (IsLegacy(handle) && Current() != nullptr)
    for (CUstream other : Current()->blocking)
      if (other->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->broken  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const cusim::ApiCall call;
  if (IsLegacy(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard hold(g_driver->mutex);
  Capture(stream, new CUgraph_st, mode);
  return CUDA_SUCCESS;
}

// Comes after all that the graph has.
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode*,
                                     const CUgraphEdgeData*, size_t, CUstreamCaptureMode mode) {
  const cusim::ApiCall call;
  if (IsLegacy(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard hold(g_driver->mutex);
  Capture(stream, graph, mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status,
                                unsigned long long* id) {
  const cusim::ApiCall call;
  if (CUresult result = cuStreamIsCapturing(handle, status); result != CUDA_SUCCESS) return result;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) *id = stream->capture->capture_id;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const cusim::ApiCall call;
  std::lock_guard hold(g_driver->mutex);
  *graph = stream->capture;
  for (CUcontext context : g_driver->contexts)
    for (size_t i = 0; i < context->blocking.size(); ++i)
      if (context->blocking[i]->capture == *graph) context->blocking[i]->capture = nullptr;
  stream->capture = nullptr;
  std::erase(g_driver->captures, *graph);
  if (!(*graph)->broken) return CUDA_SUCCESS;
  *graph = nullptr;
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, t_capture_mode);
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const cusim::ApiCall call;
  std::function<void()> launch = cusim::LaunchOf(exec);
  if (launch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Enqueue(stream, std::move(launch));
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  const cusim::ApiCall call;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st(Current());
  (*event)->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  const cusim::ApiCall call;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  std::lock_guard held(event->mutex);
  event->capture = stream->capture;
  if (stream->capture != nullptr) return CUDA_SUCCESS;
  auto mark = std::make_shared<cusim::Mark>();
  event->mark = mark;
  if (!event->timed) return stream->Put([mark] { mark->Reach(); });
  return stream->Put([mark] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    mark->ReachAt(static_cast<uint64_t>(now.tv_sec) * 1000000000 +
                  static_cast<uint64_t>(now.tv_nsec));
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags) {
  const cusim::ApiCall call;
  if ((flags & CU_EVENT_RECORD_EXTERNAL) == 0) return cuEventRecord(event, handle);
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard hold(g_driver->mutex);
  CUstream stream = nullptr;
  if (CUresult result = Find(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
  return stream->PutAtLaunch(CU_GRAPH_NODE_TYPE_EVENT_RECORD, [event] {
    std::lock_guard held(event->mutex);
    auto mark = std::make_shared<cusim::Mark>();
    event->mark = mark;
    return [mark] { mark->Reach(); };
  });
}

CUresult cuEventQuery(CUevent event) {
  const cusim::ApiCall call;
  if (CUresult result = CheckUnsafeCall(); result != CUDA_SUCCESS) return result;
  std::lock_guard held(event->mutex);
  if (event->capture != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return event->mark == nullptr || event->mark->reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  const cusim::ApiCall call;
  ++g_host_functions;
  return Enqueue(
      stream,
      [function, data] {
        const cusim::HostFunction running;
        function(data);
      },
      CU_GRAPH_NODE_TYPE_HOST);
}

}  // extern "C"
