// With which --seed the digits example has its first NaN (--fault=nan) in the last tenth of a run,
// and about 50 steps behind a step that 100 divides: as far from a checkpoint in runs of any
// length.
//
// usage: late_nan_seed STEPS [RANKS [BATCH]]   prints the seed and the step
//
// The random numbers of each rank are those of examples/digits: where one of its 15-bit numbers is
// zero its logarithm is infinite. Once in 33,000 draws it is, so a long run without one is rare.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "examples/digits/data/seeds.h"
#include "examples/digits/rng.h"

namespace {

// The first step with a NaN on some rank; `end` if none comes before it.
uint64_t FirstNan(uint64_t seed, int ranks, uint64_t batch, uint64_t end) {
  for (int rank = 0; rank < ranks; ++rank) {
    const digits::Seeds seeds(seed, rank);
    digits::Rng random(seeds.Draw(digits::SeedUse::kSampleWeights));
    for (uint64_t draw = 0; draw < end * batch; ++draw)
      if (random.Next() >> 49 == 0) end = std::min(end, draw / batch);
  }
  return end;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  const uint64_t batch = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  if (steps < 10 || ranks < 1 || batch == 0) {
    std::fprintf(stderr, "usage: late_nan_seed STEPS [RANKS [BATCH]]\n");
    return 2;
  }
  constexpr uint64_t kMostSeeds = 10'000'000;
  constexpr uint64_t kEvery = 100;
  for (uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    const uint64_t step = FirstNan(seed, ranks, batch, steps);
    if (step < steps - steps / 10 || step >= steps) continue;
    if (step % kEvery < kEvery * 2 / 5 || step % kEvery >= kEvery * 3 / 5) continue;
    std::printf("%llu %llu\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(step));
    return 0;
  }
  std::fprintf(stderr, "none of the first %llu seeds has it there\n",
               static_cast<unsigned long long>(kMostSeeds));
  return 1;
}
