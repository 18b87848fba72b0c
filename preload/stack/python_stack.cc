#include "preload/stack/python_stack.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

#include "common/runtime/spin_lock.h"
#include "digest/digest.h"
#include "preload/stack/python_frames.h"

namespace deja::preload {
namespace {

constexpr std::string_view kPrefix = "python:";

struct Function {
  const char* path = nullptr;
  uint32_t size = 0;
  uint64_t hash = 0;
};

struct KeptStack {
  uint32_t first = 0;  // in g_frames
  uint32_t count = 0;
  Hash128 hash;
};

constexpr uint32_t kMaxFunctions = kEndOfPythonModules - kFirstPythonModule;
constexpr uint32_t kMaxPythonStacks = 8192;

SpinLock g_python_lock;  // of all that follows; what a number stands for never changes
Function g_functions[kMaxFunctions];
std::atomic<uint32_t> g_function_count{0};
std::atomic<uint32_t> g_told{0};
char g_text[2 << 20];
size_t g_text_size = 0;
format::StackFrame g_frames[kMaxPythonStacks * 16];
uint32_t g_frame_count = 0;
KeptStack g_python_stacks[kMaxPythonStacks];  // by number, from 1
std::atomic<uint32_t> g_python_stack_count{0};
// Numbers by hash; 0: free. At most half full.
uint32_t g_function_slots[kMaxFunctions * 2];
uint32_t g_stack_slots[kMaxPythonStacks * 2];

constinit thread_local uint32_t t_stack __attribute__((tls_model("initial-exec"))) = 0;

std::atomic<DumpTraceback> g_dump{nullptr};
std::atomic<ThisThreadState> g_state{nullptr};
PythonLayout g_layout;
std::atomic<bool> g_has_layout{false};
// The numbers of stacks that were read, by what KeyOfPythonFrames says of them. Full: what comes
// later is read each time.
struct ReadStack {
  Hash128 key;
  uint32_t stack = 0;  // 0: free
};
ReadStack g_read[kMaxPythonStacks * 2];
uint32_t g_read_count = 0;

// The slot of what `is` recognises, or the free one where it belongs.
template <size_t N, typename Is>
uint32_t& SlotOf(uint32_t (&slots)[N], uint64_t hash, Is is) {
  for (uint64_t i = hash;; ++i) {
    uint32_t& slot = slots[i % N];
    if (slot == 0 || is(slot)) return slot;
  }
}

uint32_t AddFunction(std::string_view name, std::string_view file, uint64_t hash) {
  const uint32_t count = g_function_count.load(std::memory_order_relaxed);
  const size_t size = kPrefix.size() + name.size() + 1 + file.size();
  if (count + 1 >= kMaxFunctions || size >= sizeof g_text - g_text_size) return 0;
  char* text = g_text + g_text_size;
  char* at = text;
  for (std::string_view part : {kPrefix, name, std::string_view(":"), file})
    at = std::copy(part.begin(), part.end(), at);
  *at = '\0';
  g_text_size += size + 1;
  Function& function = g_functions[count];
  function.path = text;
  function.size = static_cast<uint32_t>(size);
  function.hash = hash;
  g_function_count.store(count + 1, std::memory_order_release);
  return count + 1;
}

uint32_t AddStack(std::span<const format::StackFrame> frames, const Hash128& hash) {
  const uint32_t count = g_python_stack_count.load(std::memory_order_relaxed);
  if (count + 1 >= kMaxPythonStacks || frames.size() > std::size(g_frames) - g_frame_count)
    return 0;
  KeptStack& stack = g_python_stacks[count + 1];
  stack.first = g_frame_count;
  stack.count = static_cast<uint32_t>(frames.size());
  stack.hash = hash;
  std::copy(frames.begin(), frames.end(), g_frames + g_frame_count);
  g_frame_count += stack.count;
  g_python_stack_count.store(count + 1, std::memory_order_release);
  return count + 1;
}

// One line of a dump: `  File "/x/train.py", line 88 in train_step`.
bool ParseLine(std::string_view line, format::StackFrame& frame) {
  constexpr std::string_view kFile = "  File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = " in ";
  const size_t after_file = line.find(kLine);
  if (line.substr(0, kFile.size()) != kFile || after_file == std::string_view::npos) return false;
  const std::string_view file = line.substr(kFile.size(), after_file - kFile.size());
  const std::string_view rest = line.substr(after_file + kLine.size());
  uint64_t number = 0;
  const char* end = std::from_chars(rest.data(), rest.data() + rest.size(), number).ptr;
  const std::string_view name = rest.substr(static_cast<size_t>(end - rest.data()));
  if (name.substr(0, kIn.size()) != kIn) return false;
  frame = {PythonModule(name.substr(kIn.size()), file), number};
  return frame.module != 0;
}

ReadStack& ReadSlotOf(const Hash128& key) {
  for (uint64_t i = key.Prefix();; ++i) {
    ReadStack& slot = g_read[i % std::size(g_read)];
    if (slot.stack == 0 || slot.key == key) return slot;
  }
}

void RememberRead(const Hash128& key, uint32_t stack) {
  if (!g_python_lock.LockBriefly()) return;
  ReadStack& slot = ReadSlotOf(key);
  if (slot.stack == 0 && g_read_count < kMaxPythonStacks) {
    slot = {key, stack};
    ++g_read_count;
  }
  g_python_lock.Unlock();
}

void FramesOfDump(DumpTraceback dump, void* state, PythonFrames& frames) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "deja-stack", 1U /* MFD_CLOEXEC */));
  if (fd < 0) return;
  dump(fd, state);
  char text[8 << 10];
  const long size = syscall(SYS_pread64, fd, text, sizeof text, 0L);
  syscall(SYS_close, fd);
  std::string_view rest(text, size < 0 ? 0 : static_cast<size_t>(size));
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return;
    format::StackFrame frame;
    if (ParseLine(rest.substr(0, end), frame) && !frames.push_back(frame)) return;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

uint32_t PythonModule(std::string_view name, std::string_view file) {
  const uint64_t hash = digest::HashBytes(std::as_bytes(std::span(name))).Prefix() * 31 +
                        digest::HashBytes(std::as_bytes(std::span(file))).Prefix();
  if (!g_python_lock.LockBriefly()) return 0;
  uint32_t& slot = SlotOf(g_function_slots, hash,
                          [hash](uint32_t number) { return g_functions[number - 1].hash == hash; });
  if (slot == 0) slot = AddFunction(name, file, hash);
  const uint32_t number = slot;
  g_python_lock.Unlock();
  return number == 0 ? 0 : kFirstPythonModule + number - 1;
}

const char* PathOfPythonModule(uint32_t module) {
  const uint32_t index = module - kFirstPythonModule;
  return index < g_function_count.load(std::memory_order_acquire) ? g_functions[index].path
                                                                  : nullptr;
}

uint32_t InternPythonStack(std::span<const format::StackFrame> frames) {
  frames = frames.first(std::min(frames.size(), kMaxPythonFrames));
  if (frames.empty()) return 0;
  uint64_t words[2 * kMaxPythonFrames];
  size_t n = 0;
  for (const format::StackFrame& frame : frames) {
    words[n++] = frame.module;
    words[n++] = frame.offset;
  }
  const Hash128 hash = digest::HashBytes(std::as_bytes(std::span(words, n)));
  if (!g_python_lock.LockBriefly()) return 0;
  uint32_t& slot = SlotOf(g_stack_slots, hash.Prefix(), [&hash](uint32_t number) {
    return g_python_stacks[number].hash == hash;
  });
  if (slot == 0) slot = AddStack(frames, hash);
  const uint32_t number = slot;
  g_python_lock.Unlock();
  return number;
}

uint32_t EnterPythonStack(uint32_t stack) {
  const uint32_t before = t_stack;
  t_stack = stack <= g_python_stack_count.load(std::memory_order_acquire) ? stack : 0;
  return before;
}

std::span<const format::StackFrame> PythonStack(uint32_t number) {
  if (number == 0) return {};
  const KeptStack& stack = g_python_stacks[number];
  return {g_frames + stack.first, stack.count};
}

uint32_t FindPythonStack() {
  if (t_stack != 0 || !g_has_layout.load(std::memory_order_acquire)) return t_stack;
  const void* state = g_layout.is_alive() == 0 ? nullptr : g_layout.state();
  Hash128 key;
  if (state == nullptr || !KeyOfPythonFrames(g_layout, state, key)) return 0;
  if (!g_python_lock.LockBriefly()) return 0;
  const ReadStack* known = &ReadSlotOf(key);
  const uint32_t number = known->stack;
  g_python_lock.Unlock();
  if (number != 0) return number;
  PythonFrames frames;
  ReadPythonFrames(g_layout, state, OwnFrames::kHidden, frames);
  const uint32_t fresh = InternPythonStack({frames.begin(), frames.size()});
  if (fresh != 0) RememberRead(key, fresh);
  return fresh;
}

void SetInterpreter(DumpTraceback dump, ThisThreadState state) {
  g_dump.store(dump, std::memory_order_relaxed);
  g_state.store(state, std::memory_order_release);
}

void SetInterpreter(const PythonLayout& layout) {
  g_has_layout.store(false, std::memory_order_relaxed);
  g_layout = layout;
  g_has_layout.store(layout.state != nullptr, std::memory_order_release);
}

void PythonFramesInSignal(PythonFrames& frames) {
  frames.clear();
  const bool by_layout = g_has_layout.load(std::memory_order_acquire);
  const ThisThreadState this_thread =
      by_layout ? g_layout.state : g_state.load(std::memory_order_acquire);
  void* state = this_thread == nullptr ? nullptr : this_thread();
  if (state == nullptr) return;
  if (by_layout) return ReadPythonFrames(g_layout, state, OwnFrames::kShown, frames);
  FramesOfDump(g_dump.load(std::memory_order_relaxed), state, frames);
}

void TellPythonModules(void (*tell)(uint32_t number, std::string_view path, void* context),
                       void* context) {
  const uint32_t count = g_function_count.load(std::memory_order_acquire);
  for (uint32_t i = g_told.load(std::memory_order_relaxed); i < count; ++i) {
    const Function& function = g_functions[i];
    tell(kFirstPythonModule + i, {function.path, function.size}, context);
  }
  g_told.store(count, std::memory_order_relaxed);
}

void ResetPythonStacksInChild() {
  g_told.store(0, std::memory_order_relaxed);
}

}  // namespace deja::preload
