// Threads that allocate, change and free blocks of random sizes, and check what is in them. Prints
// a number that depends on all of it and on random bytes.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { kThreads = 4, kBlocks = 200, kRounds = 4000 };

static uint64_t Next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void Check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

static unsigned char* Allocate(uint64_t random, size_t size) {
  void* block = NULL;
  switch (random % 5) {
    case 0:
      block = calloc(1, size);
      break;
    case 1:
      block = aligned_alloc(64, (size + 63) / 64 * 64);
      break;
    case 2:
      Check(posix_memalign(&block, 4096, size) == 0, "posix_memalign");
      break;
    default:
      block = malloc(size);
  }
  Check(block != NULL && malloc_usable_size(block) >= size, "a block is too small");
  return block;
}

static void* Work(void* argument) {
  uint64_t state = *(uint64_t*)argument;
  unsigned char* blocks[kBlocks] = {0};
  size_t sizes[kBlocks] = {0};
  uint64_t sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const size_t i = Next(&state) % kBlocks;
    if (blocks[i] == NULL) {
      sizes[i] = 1 + Next(&state) % (round % 50 == 0 ? 200000 : 900);
      blocks[i] = Allocate(Next(&state), sizes[i]);
      memset(blocks[i], (int)(i ^ sizes[i]), sizes[i]);
      continue;
    }
    Check(blocks[i][sizes[i] - 1] == (unsigned char)(i ^ sizes[i]), "a block has changed");
    sum = sum * 31 + sizes[i];
    if (Next(&state) % 3 == 0) {
      const size_t more = sizes[i] + 100;
      blocks[i] = realloc(blocks[i], more);
      Check(blocks[i] != NULL, "realloc");
      sizes[i] = more;
      memset(blocks[i], (int)(i ^ more), more);
    } else {
      free(blocks[i]);
      blocks[i] = NULL;
    }
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  *(uint64_t*)argument = sum;
  return NULL;
}

int main(void) {
  uint64_t seeds[kThreads];
  Check(getrandom(seeds, sizeof seeds, 0) == sizeof seeds, "getrandom");
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    seeds[i] |= 1;
    Check(pthread_create(&threads[i], NULL, Work, &seeds[i]) == 0, "pthread_create");
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  uint64_t sum = (uint64_t)time(NULL);
  for (int i = 0; i < kThreads; ++i) sum = sum * 31 + seeds[i];
  char* text = NULL;
  Check(asprintf(&text, "sum %016llx", (unsigned long long)sum) > 0, "asprintf");
  puts(text);
  free(text);
  return 0;
}
