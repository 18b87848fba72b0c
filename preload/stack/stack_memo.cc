#include "preload/stack/stack_memo.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "common/runtime/own_mapping.h"
#include "common/runtime/spin_lock.h"
#include "preload/stack/modules.h"
#include "preload/stack/stack.h"

namespace deja::preload {
namespace {

// The words that a walk read in one page before it went on to another. `pairs` are of neighbours (a
// frame pointer and the return address above it), and `single` ones are alone. Both are filled up
// to multiples of kStride by repeating.
struct Page {
  uint8_t single;
  uint8_t pairs;
};
constexpr uint32_t kStride = 4;
constexpr uint32_t kMaxPages = 16;
constexpr uint32_t kMaxItems = 2 * WalkInputs::kMaxWords;
constexpr uint32_t kMaxValues = 2 * kMaxItems;

struct Memo {
  StackId id = 0;  // 0: none
  uint32_t epoch = 0;
  uint32_t version = 0;
  uint32_t python = 0;
  Registers start;
  bool uses_fp = false;
  bool lasting = false;
  Memo* next;  // the one that was true after this one the last time
  uint32_t page_count = 0;
  // These words, one page after the other, in the order of the walk.
  Page pages[kMaxPages];
  uint32_t offsets[kMaxItems];
  alignas(16) uint64_t values[kMaxValues];
};

constexpr uint32_t kWays = 4;
constexpr uint32_t kSets = 8;

struct Table {
  Memo memos[kSets * kWays];
  Memo* last = memos;      // the one that was true the last time
  Memo* expected = memos;  // the one that was true after that
  uint32_t victim = 0;     // the way that is overwritten next
  Table* next_free = nullptr;
};

constinit thread_local Table* t_table __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local volatile bool t_busy __attribute__((tls_model("initial-exec"))) = false;

// Tables of threads that have ended.
SpinLock g_memo_lock;
Table* g_free = nullptr;

std::atomic<uint32_t> g_epoch{1};

// While this thread's table is in use; a signal handler keeps off it.
class Busy {
 public:
  Busy() { Set(true); }
  ~Busy() { Set(false); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  static void Set(bool busy) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_busy = busy;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};

Table* NewTable() {
  // Not waited for: a thread of the parent may hold it in a child, and this one below a signal.
  if (g_memo_lock.TryLock()) {
    Table* table = g_free;
    if (table != nullptr) g_free = table->next_free;
    g_memo_lock.Unlock();
    if (table != nullptr) return new (table) Table;
  }
  void* memory = MapOwn(sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return memory == MAP_FAILED ? nullptr : new (memory) Table;
}

uint32_t SetOf(const Registers& here, uint32_t python) {
  const uint64_t key = here.sp ^ static_cast<uint64_t>(python) << 4;
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 32) % kSets * kWays;
}

bool IsStart(const Memo& memo, const Registers& here, uint32_t python) {
  return memo.id != 0 && memo.start.sp == here.sp && memo.start.pc == here.pc &&
         memo.python == python && (!memo.uses_fp || memo.start.fp == here.fp);
}

// What is read in a page that the walk has reached may by now be between two variables.
#define DEJA_READS_ANYTHING __attribute__((no_sanitize("address")))

// What differs between kStride words at `from` + offsets and `values`; 0: nothing.
DEJA_READS_ANYTHING uint64_t Difference(const char* from, const uint32_t* offsets,
                                        const uint64_t* values) {
  uint64_t difference = 0;
  for (uint32_t i = 0; i < kStride; ++i) {
    uint64_t word;
    std::memcpy(&word, from + offsets[i], sizeof word);
    // Gathered in vectors, which compilers like to do, they take twice as long.
    asm("" : "+r"(word));
    difference |= word ^ values[i];
  }
  return difference;
}

// The same for pairs.
DEJA_READS_ANYTHING uint64_t PairDifference(const char* from, const uint32_t* offsets,
                                            const uint64_t* values) {
  using Pair = uint64_t __attribute__((vector_size(16)));
  Pair difference{};
  for (uint32_t i = 0; i < kStride; ++i) {
    Pair words;
    Pair wanted;
    std::memcpy(&words, from + offsets[i], sizeof words);
    std::memcpy(&wanted, values + size_t{2} * i, sizeof wanted);
    difference |= words ^ wanted;
  }
  return difference[0] | difference[1];
}

// Page by page in the walk's order. If the first word of a page is where the walk would look next,
// the others of that page can be read as well.
bool WordsAreSame(const Memo& memo) {
  const char* from = reinterpret_cast<const char*>(memo.start.sp);
  const uint32_t* offset = memo.offsets;
  const uint64_t* value = memo.values;
  for (uint32_t page = 0; page < memo.page_count; ++page) {
    uint64_t difference = 0;
    const uint32_t* single_end = offset + memo.pages[page].single;
    for (; offset != single_end; offset += kStride, value += kStride)
      difference |= Difference(from, offset, value);
    const uint32_t* pairs_end = offset + memo.pages[page].pairs;
    for (; offset != pairs_end; offset += kStride, value += size_t{2} * kStride)
      difference |= PairDifference(from, offset, value);
    if (difference != 0) return false;
  }
  return true;
}

// The words [first, last) of `inputs`, all in one page.
bool AddPage(const WalkInputs& inputs, uint32_t first, uint32_t last, Memo& memo, uint32_t& items,
             uint32_t& values) {
  if (memo.page_count == kMaxPages) return false;
  auto is_pair = [&](uint32_t i) {
    return i + 1 < last && inputs.offsets[i + 1] + sizeof(uint64_t) == inputs.offsets[i];
  };
  auto add = [&](bool pairs) {
    const uint32_t before = items;
    uint32_t width = pairs ? 2 : 1;
    for (uint32_t i = first; i < last; i += is_pair(i) ? 2 : 1) {
      if (is_pair(i) != pairs) continue;
      if (items == kMaxItems) return UINT32_MAX;
      memo.offsets[items++] = inputs.offsets[i + width - 1];
      for (uint32_t k = width; k-- > 0;) memo.values[values++] = inputs.values[i + k];
    }
    while ((items - before) % kStride != 0) {
      if (items == kMaxItems) return UINT32_MAX;
      memo.offsets[items] = memo.offsets[items - 1];
      ++items;
      for (uint32_t k = 0; k < width; ++k, ++values)
        memo.values[values] = memo.values[values - width];
    }
    return items - before;
  };
  const uint32_t single = add(false);
  const uint32_t pairs = single == UINT32_MAX ? single : add(true);
  if (single > UINT8_MAX || pairs > UINT8_MAX) return false;
  memo.pages[memo.page_count++] = {static_cast<uint8_t>(single), static_cast<uint8_t>(pairs)};
  return true;
}

// False: they are too many.
bool SetWords(const WalkInputs& inputs, Memo& memo) {
  constexpr uint64_t kPageBytes = 4096;
  auto page_of = [&](uint32_t i) { return (memo.start.sp + inputs.offsets[i]) / kPageBytes; };
  memo.page_count = 0;
  uint32_t items = 0;
  uint32_t values = 0;
  for (uint32_t first = 0; first < inputs.count;) {
    uint32_t last = first + 1;
    while (last < inputs.count && page_of(last) == page_of(first)) ++last;
    if (!AddPage(inputs, first, last, memo, items, values)) return false;
    first = last;
  }
  return true;
}

bool RulesAreSame(const Memo& memo) {
  if (memo.epoch != g_epoch.load(std::memory_order_relaxed)) return false;
  return memo.lasting || (RefreshModules() && memo.version == ModuleVersion());
}

__attribute__((always_inline)) inline bool Holds(const Memo& memo, const Registers& here,
                                                 uint32_t python) {
  return IsStart(memo, here, python) && WordsAreSame(memo) && RulesAreSame(memo);
}

__attribute__((noinline)) Memo* Search(Table& table, const Registers& here, uint32_t python) {
  Memo* first = table.memos + SetOf(here, python);
  Memo* end = first + kWays;
  Memo* found = std::find_if(first, end, [&](Memo& memo) { return Holds(memo, here, python); });
  if (found == end) return nullptr;
  table.last->next = found;
  return found;
}

}  // namespace

StackId RecallStack(const Registers& here, uint32_t python) {
  Table* table = t_table;
  if (table == nullptr || t_busy) return 0;
  const Busy busy;
  Memo* memo = table->expected;
  if (!Holds(*memo, here, python)) memo = Search(*table, here, python);
  if (memo == nullptr) return 0;
  table->last = memo;
  table->expected = memo->next;
  return memo->id;
}

void RememberStack(const Registers& here, uint32_t python, uint32_t version,
                   const WalkInputs& inputs, StackId id) {
  if (t_busy) return;
  const Busy busy;
  if (t_table == nullptr) t_table = NewTable();
  Table* table = t_table;
  if (table == nullptr) return;
  Memo& memo = table->memos[SetOf(here, python) + table->victim++ % kWays];
  memo.id = 0;
  memo.epoch = g_epoch.load(std::memory_order_relaxed);
  memo.version = version;
  memo.python = python;
  memo.start = here;
  memo.uses_fp = inputs.uses_fp;
  memo.lasting = inputs.lasting;
  if (!SetWords(inputs, memo)) return;
  memo.id = id;
  memo.next = &memo;
  table->last->next = &memo;
  table->last = &memo;
  table->expected = &memo;
}

void EndThreadStacks() {
  Table* table = t_table;
  if (table == nullptr || t_busy) return;
  t_table = nullptr;
  if (!g_memo_lock.LockBriefly()) return;  // one table is lost
  table->next_free = g_free;
  g_free = table;
  g_memo_lock.Unlock();
}

void ForgetStacks() {
  g_epoch.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace deja::preload
