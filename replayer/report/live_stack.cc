#include "replayer/report/live_stack.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "preload/process/fault_escape.h"
#include "preload/stack/modules.h"
#include "preload/stack/python_stack.h"

namespace deja::replayer {
namespace {

// By module number; an entry is complete once its path is set. Read by signal handlers.
constexpr uint32_t kMaxModules = preload::kEndOfPythonModules;
struct LiveModule {
  std::atomic<const char*> path{nullptr};
  const char* build_id = nullptr;
  size_t build_id_size = 0;
};
LiveModule g_modules[kMaxModules];

std::atomic<preload::StackSink*> g_forward{nullptr};

const char* CopyForGood(std::string_view text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

class LiveSink final : public preload::StackSink {
 public:
  void OnModule(const format::ModuleLoaded& module) override {
    if (module.module >= kMaxModules) return;
    LiveModule& out = g_modules[module.module];
    out.build_id = CopyForGood(module.build_id);
    out.build_id_size = module.build_id.size();
    out.path.store(CopyForGood(module.path), std::memory_order_release);
    if (preload::StackSink* forward = g_forward.load()) forward->OnModule(module);
  }
  void OnStack(const format::StackDefined& stack) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stacks_[stack.stack].assign(stack.frames.begin(), stack.frames.end());
    }
    if (preload::StackSink* forward = g_forward.load()) forward->OnStack(stack);
  }
  std::vector<format::StackFrame> Frames(StackId stack) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = stacks_.find(stack);
    return it == stacks_.end() ? std::vector<format::StackFrame>() : it->second;
  }

 private:
  std::mutex mutex_;
  std::map<StackId, std::vector<format::StackFrame>> stacks_;
};

LiveSink& Sink() {
  static LiveSink* sink = new LiveSink();  // never destroyed: used until the very end
  return *sink;
}

}  // namespace

std::vector<StackLine> LiveStack() {
  std::vector<StackLine> lines;
  for (const format::StackFrame& frame : Sink().Frames(LiveStackNumber())) {
    const CrashPlace place = PlaceOf(frame);
    StackLine line;
    line.offset = frame.offset;
    if (place.path != nullptr) {
      const LiveModule& module = g_modules[frame.module];
      line.module = place.path;
      line.build_id.assign(module.build_id, module.build_id_size);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

StackId LiveStackNumber() {
  return preload::CaptureStack(Sink());
}

void ForwardStacks(preload::StackSink* sink) {
  g_forward.store(sink);
}

std::string LiveBuildId(std::string_view path) {
  for (const LiveModule& module : g_modules) {
    const char* known = module.path.load(std::memory_order_acquire);
    if (known != nullptr && path == known) return {module.build_id, module.build_id_size};
  }
  return {};
}

void LearnModules() {
  preload::ReportModules(Sink());
}

void CrashStack(void* ucontext, CrashFrames& frames) {
  preload::CaptureStackInSignal(ucontext, frames);
  preload::Frames with_python = frames;
  const auto add = [](void* to) {
    preload::AddPythonFramesInSignal(*static_cast<preload::Frames*>(to));
  };
  if (preload::WithoutFault(add, &with_python)) frames = with_python;
}

CrashPlace PlaceOf(const format::StackFrame& frame) {
  CrashPlace place;
  place.offset = frame.offset;
  if (frame.module >= preload::kFirstPythonModule)
    place.path = preload::PathOfPythonModule(frame.module);
  else if (frame.module != 0)
    place.path = preload::ModuleAt(frame.module).path;
  return place;
}

}  // namespace deja::replayer
