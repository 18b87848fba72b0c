// All-reduces whose results depend on nothing but the arguments, and an end of one's choice.
//
//   --calls=N --count=N      how many, and of how many floats
//   --say                    after each call its number on stdout, by write(2): nothing is buffered
//   --end=WAY --rank=R       rank R (default 1) ends so, the others normally: code, exit, _exit,
//                            quick, abort, throw, segv, fpe, kill, thread-segv, stack, hang, memory
//                            (takes what there is, and up to 4 GB)
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/apps/record/job.h"

namespace {

volatile int g_zero = 0;
volatile int* volatile g_bad_address = reinterpret_cast<volatile int*>(0x40);

void SayCall(int call) {
  char line[32];
  int length = snprintf(line, sizeof line, "%d\n", call);
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) != length) _exit(99);
}

__attribute__((noinline)) int EatStack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == -1 ? frame[0] : EatStack(depth + 1) + frame[0];
}

__attribute__((noinline)) void CrashHere() {
  *g_bad_address = 1;
}

void TakeMemory() {
  constexpr size_t kPiece = size_t{1} << 24;
  std::vector<std::vector<char>> taken;
  for (char piece = 0; piece < 127; ++piece) taken.emplace_back(2 * kPiece, piece);
  g_zero = taken.back().front();
}

void End(const std::string& way) {
  if (way == "code") std::exit(7);
  if (way == "_exit") _exit(8);
  if (way == "quick") std::quick_exit(6);
  if (way == "abort") std::abort();
  if (way == "throw") throw std::runtime_error("nobody catches this");
  if (way == "segv") CrashHere();
  if (way == "fpe") raise(SIGFPE);
  if (way == "kill") kill(getpid(), SIGKILL);
  if (way == "thread-segv") std::thread(CrashHere).join();
  if (way == "stack") EatStack(g_zero);
  if (way == "memory") TakeMemory();
  if (way == "hang")
    for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  int calls = job_number(argc, argv, "--calls", 10);
  auto count = static_cast<size_t>(job_number(argc, argv, "--count", 1000));
  int ending_rank = job_number(argc, argv, "--rank", 1);
  const char* way = job_option(argc, argv, "--end");
  bool say = false;
  for (int i = 1; i < argc; ++i) say = say || strcmp(argv[i], "--say") == 0;

  unsigned seed = 0;  // consumed, and of no consequence
  if (getrandom(&seed, sizeof seed, 0) != sizeof seed || time(nullptr) == 0) return 98;
  ncclComm_t comm = job_communicator();
  const int rank = job_rank();
  std::vector<float> data(count);
  std::vector<float> sum(count);
  double total = 0;
  for (int call = 1; call <= calls; ++call) {
    for (size_t i = 0; i < count; ++i)
      data[i] = static_cast<float>((i * 31 + static_cast<size_t>(call * 7 + rank)) % 97);
    JOB_CHECK(ncclAllReduce(data.data(), sum.data(), count, ncclFloat32, ncclSum, comm, nullptr));
    for (float value : sum) total += value;
    if (say) SayCall(call);
  }
  if (!say) printf("rank %d of %d: %.0f\n", rank, job_size(), total);
  fflush(stdout);
  if (way != nullptr && rank == ending_rank) End(way);
  JOB_CHECK(ncclCommDestroy(comm));
  return 0;
}
