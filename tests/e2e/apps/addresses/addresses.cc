// Prints where its memory is and what fresh memory holds, for comparison between runs.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace {

thread_local char t_own[64];

uint64_t Mixed(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15 + (hash >> 29);
}

// 2,500 allocations of many sizes, each third one freed at once and the others later.
void Allocate(const char* name) {
  uint64_t places = 0;
  uint64_t contents = 0;
  uint64_t state = 12345;
  void* kept[64] = {};
  for (int i = 0; i < 2500; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const size_t bytes = (state >> 33) % (i % 100 == 99 ? 300000 : 2000) + 8;
    auto* fresh = static_cast<unsigned char*>(malloc(bytes));
    places = Mixed(places, reinterpret_cast<uintptr_t>(fresh));
    for (size_t k = 0; k < bytes; ++k) contents = Mixed(contents, fresh[k]);
    memset(fresh, i & 0xff, bytes);
    if (i % 3 == 0) {
      free(fresh);
    } else {
      free(kept[i % 64]);
      kept[i % 64] = fresh;
    }
    timespec now;
    if (i % 250 == 0) clock_gettime(CLOCK_REALTIME, &now);
    char drawn[4];
    if (i % 500 == 0 && getrandom(drawn, sizeof drawn, 0) != sizeof drawn) abort();
  }
  for (void* one : kept) free(one);
  printf("%s: heap %016lx, fresh memory %016lx\n", name, places, contents);
}

void* Thread(void* name) {
  char local = 0;
  printf("%s: stack %p, thread-local %p\n", static_cast<char*>(name), static_cast<void*>(&local),
         static_cast<void*>(t_own));
  Allocate(static_cast<char*>(name));
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  char local = 0;
  printf("program %p, break %p, libc %p\n", reinterpret_cast<void*>(&main), sbrk(0),
         dlsym(RTLD_DEFAULT, "strlen"));
  printf("main: stack %p, arguments %p, environment %p, thread-local %p\n",
         static_cast<void*>(&local), static_cast<void*>(argv[0]), static_cast<void*>(environ),
         static_cast<void*>(t_own));
  Allocate("main");
  for (size_t size : {4096UL, 1UL << 20, 64UL << 20})
    printf("mapping of %zu at %p\n", size,
           mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  FILE* file = fopen("/proc/self/comm", "r");
  printf("stream %p\n", static_cast<void*>(file));
  fclose(file);
  char names[][8] = {"one", "two", "three"};
  for (char* name : names) {
    pthread_t thread;
    pthread_create(&thread, nullptr, &Thread, name);
    pthread_join(thread, nullptr);
  }
  pthread_t together[2];
  for (pthread_t& thread : together) {  // both are there at once, one after another at work
    pthread_create(
        &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
    printf("thread %lx\n", thread);
  }
  for (pthread_t thread : together) pthread_join(thread, nullptr);
  void* library = dlopen("libz.so.1", RTLD_NOW);
  printf("libz %p, handle %p\n", library != nullptr ? dlsym(library, "inflate") : nullptr, library);
  Allocate("main again");
  return 0;
}
