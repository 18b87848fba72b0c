// A program's own allocator: blocks of powers of two from mapped memory, kept in lists, behind one
// lock. It asks for the page size when it is first used.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kClasses = 40, kSmallest = 5 };

struct Header {
  uint32_t order;
  uint32_t before;  // bytes between the block's beginning and this
  size_t usable;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* free_blocks[kClasses];
static size_t page;

static void* Fresh(size_t size) {
  if (page == 0) page = (size_t)sysconf(_SC_PAGESIZE);
  size = (size + page - 1) / page * page;
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static void* Take(uint32_t order) {
  void* block = free_blocks[order];
  if (block != NULL) {
    memcpy(&free_blocks[order], block, sizeof block);
    return block;
  }
  const size_t size = (size_t)1 << order;
  if (size >= 65536) return Fresh(size);
  char* many = Fresh(65536);
  if (many == NULL) return NULL;
  for (size_t at = size; at + size <= 65536; at += size) {
    memcpy(many + at, &free_blocks[order], sizeof(void*));
    free_blocks[order] = many + at;
  }
  return many;
}

static void* Allocate(size_t alignment, size_t size) {
  const size_t all = size + sizeof(struct Header) + alignment;
  if (all < size) return NULL;
  uint32_t order = kSmallest;
  while (order < kClasses && ((size_t)1 << order) < all) ++order;
  if (order == kClasses) return NULL;
  pthread_mutex_lock(&lock);
  char* block = Take(order);
  pthread_mutex_unlock(&lock);
  if (block == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  const uintptr_t first = (uintptr_t)block + sizeof(struct Header);
  char* given = block + sizeof(struct Header) + ((alignment - first % alignment) % alignment);
  struct Header* header = (struct Header*)given - 1;
  header->order = order;
  header->before = (uint32_t)((char*)header - block);
  header->usable = ((size_t)1 << order) - (size_t)(given - block);
  return given;
}

void* malloc(size_t size) {
  return Allocate(16, size);
}

void free(void* memory) {
  if (memory == NULL) return;
  struct Header* header = (struct Header*)memory - 1;
  char* block = (char*)header - header->before;
  const uint32_t order = header->order;
  pthread_mutex_lock(&lock);
  memcpy(block, &free_blocks[order], sizeof(void*));
  free_blocks[order] = block;
  pthread_mutex_unlock(&lock);
}

size_t malloc_usable_size(void* memory) {
  return memory == NULL ? 0 : ((struct Header*)memory - 1)->usable;
}

void* calloc(size_t count, size_t size) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) return NULL;
  void* memory = malloc(all);
  if (memory != NULL) memset(memory, 0, all);
  return memory;
}

void* realloc(void* old, size_t size) {
  void* memory = malloc(size);
  if (memory == NULL || old == NULL) return memory;
  const size_t had = malloc_usable_size(old);
  memcpy(memory, old, had < size ? had : size);
  free(old);
  return memory;
}

void* aligned_alloc(size_t alignment, size_t size) {
  return Allocate(alignment < 16 ? 16 : alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}
