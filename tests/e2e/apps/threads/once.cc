// Routines that run once: who runs them.
#include <pthread.h>

#include <array>
#include <memory>
#include <sstream>
#include <string>

#include "tests/e2e/apps/threads/behaviours.h"

namespace threads {
namespace {

constexpr size_t kObjects = 60;

void CallOnce() {
  std::array<std::once_flag, kObjects> flags;
  std::array<int, kObjects> made_by{};
  RunThreads(4, [&](int me) {
    for (size_t i = 0; i < kObjects; ++i) {
      std::call_once(flags[i], [&] {
        Work(static_cast<int>(i % 5));
        made_by[i] = me;
      });
      Work((me + static_cast<int>(i)) % 6);
    }
  });
  for (const int maker : made_by) std::printf("%d", maker);
  std::puts("");
}

// The first two to come fail.
void CallOnceThrows() {
  std::array<std::once_flag, kObjects> flags;
  std::array<std::string, kObjects> made_by;
  RunThreads(4, [&](int me) {
    for (size_t i = 0; i < kObjects; ++i) {
      for (;;) {
        try {
          std::call_once(flags[i], [&] {
            made_by[i] += static_cast<char>('0' + me);
            if (made_by[i].size() < 3) throw me;
          });
          break;
        } catch (int) {
          Work(me + 1);
        }
      }
    }
  });
  for (const std::string& makers : made_by) std::printf(" %s", makers.c_str());
  std::puts("");
}

int g_inner = 0;
int g_outer = 0;
int g_made = 0;
pthread_once_t g_inner_once = PTHREAD_ONCE_INIT;
pthread_once_t g_outer_once = PTHREAD_ONCE_INIT;

// One within another, both found done by the others.
void NestedOnce() {
  std::mutex mutex;
  Log log;
  RunThreads(4, [&](int me) {
    Work(me % 3);
    pthread_once(&g_outer_once, [] {
      pthread_once(&g_inner_once, [] { g_inner = ++g_made; });
      g_outer = ++g_made;
    });
    std::lock_guard lock(mutex);
    log.Add(me, g_outer * 10 + g_inner);
  });
  log.Print("nested");
}

// What is made at the first use; no thread looks at it without the lock.
void DoubleChecked() {
  struct Cell {
    std::shared_ptr<int> value;
    std::mutex mutex;
    std::once_flag once;
  };
  std::vector<Cell> cells(30);
  std::mutex mutex;
  int next = 0;
  Log log;
  RunThreads(4, [&](int me) {
    for (size_t i = 0; i < cells.size(); ++i) {
      Cell& cell = cells[(i * 7 + static_cast<size_t>(me)) % cells.size()];
      std::call_once(cell.once, [&] {
        std::lock_guard lock(mutex);
        cell.value = std::make_shared<int>(next++);
        log.Add(me, *cell.value);
      });
      std::lock_guard lock(cell.mutex);
      *cell.value = *cell.value * 5 % 1009 + me;
    }
  });
  for (const Cell& cell : cells) std::printf("%d ", *cell.value);
  log.Print("cells");
}

// The locale's routine has run when the second thread comes.
void Streams() {
  const auto text = [](int number) {
    std::ostringstream stream;
    stream << number;
    return stream.str();
  };
  std::string whole = text(1);
  RunThreads(1, [&](int) { whole += text(2); });
  std::printf("%s%s\n", whole.c_str(), text(3).c_str());
}

}  // namespace

std::vector<Behaviour> OnceBehaviours() {
  return {{"call_once", CallOnce},
          {"call_once_throws", CallOnceThrows},
          {"nested_once", NestedOnce},
          {"double_checked", DoubleChecked},
          {"streams", Streams}};
}

}  // namespace threads
