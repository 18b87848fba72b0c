// The random numbers of the trainer: xoshiro256++ by Blackman and Vigna (public domain), seeded by
// splitmix64. A plain struct, so that its state can be shown to Deja with deja_state(). Not for
// several threads at once.
#ifndef DEJA_EXAMPLES_DIGITS_RNG_H_
#define DEJA_EXAMPLES_DIGITS_RNG_H_

#include <cmath>
#include <cstdint>

namespace digits {

// One step of splitmix64: spreads what entropy there is over all 64 bits.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Rng {
  uint64_t state[4];

  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state) word = seed = Mix(seed);
  }

  uint64_t Next() {
    const uint64_t result = Rotate(state[0] + state[3], 23) + state[0];
    const uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = Rotate(state[3], 45);
    return result;
  }

  // Uniform in 0 < u <= 1, so that its logarithm is finite.
  double Uniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }

  // Uniform in 0 … n-1.
  uint32_t Below(uint32_t n) {
    return static_cast<uint32_t>((static_cast<uint64_t>(static_cast<uint32_t>(Next())) * n) >> 32);
  }

  // Standard normal, by Box and Muller. The second value is not kept: the state stays four words.
  float Normal() {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    return static_cast<float>(radius * std::cos(6.283185307179586 * Uniform()));
  }

 private:
  static uint64_t Rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_RNG_H_
