// Threads of threads, made by pthread_create, std::thread and thrd_create; each draws for itself,
// in any order.
#include <pthread.h>
#include <sys/random.h>
#include <threads.h>

#include <cinttypes>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kWidth = 3;
constexpr int kDepth = 3;
uint64_t g_drawn[1 + kWidth + kWidth * kWidth + kWidth * kWidth * kWidth];

struct Place {
  int depth;
  int index;  // in g_drawn
};

void Visit(Place place);

void* PosixEntry(void* argument) {
  Visit(*static_cast<Place*>(argument));
  return nullptr;
}

int C11Entry(void* argument) {
  Visit(*static_cast<Place*>(argument));
  return 0;
}

void Visit(Place place) {
  if (getrandom(&g_drawn[place.index], sizeof(uint64_t), 0) != sizeof(uint64_t)) return;
  if (place.depth == kDepth) return;
  Place below[kWidth];
  for (int i = 0; i < kWidth; ++i) below[i] = {place.depth + 1, place.index * kWidth + 1 + i};
  pthread_t posix;
  pthread_create(&posix, nullptr, PosixEntry, &below[0]);
  std::thread cxx(Visit, below[1]);
  thrd_t c11;
  thrd_create(&c11, C11Entry, &below[2]);
  pthread_join(posix, nullptr);
  cxx.join();
  thrd_join(c11, nullptr);
}

}  // namespace

int main() {
  Visit({0, 0});
  for (uint64_t value : g_drawn) std::printf("%016" PRIx64 "\n", value);
  return 0;
}
