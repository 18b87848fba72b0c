/* Uses what Deja hooks, threads included, and never makes a communicator. */
#include <pthread.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/apps/record/job.h"

static void* consume(void* unused) {
  char bytes[256];
  for (int i = 0; i < 1000; ++i)
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes || time(NULL) == 0) exit(3);
  return unused;
}

int main(void) {
  pthread_t threads[4];
  int version = 0;
  JOB_CHECK(ncclGetVersion(&version));
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, consume, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  consume(NULL);
  printf("rank %d: nothing\n", job_rank());
  return 0;
}
