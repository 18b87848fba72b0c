// Random numbers of cuRAND's host generators: all kinds of generators, all distributions, settings
// that are refused. What was drawn, and every status, is one line.
//
//   --steps=N --count=N    how often, and how many numbers a call (60)
//   --seed=N               of all; without it from getrandom
//   --open                 the library is opened and its functions are looked up
//   --fault=WHAT           seed, offset, order, dimensions, mean, extra: in step 2 it is another
//   one
//                          than without the option (extra: one call more)
#include <dlfcn.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "include/compat/curand.h"
#include "include/deja.h"
#include "tests/e2e/apps/record/job.h"

namespace {

struct Library {
  explicit Library(bool open) : handle_(open ? dlopen("libcurand.so.10", RTLD_NOW) : nullptr) {
    if (open && handle_ == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
  }
  template <typename Function>
  Function Get(Function linked, const char* name) const {
    return handle_ == nullptr ? linked : reinterpret_cast<Function>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};
#define CURAND(name) library.Get(&name, #name)

// FNV-1a.
struct Hash {
  uint64_t value = 14695981039346656037u;
  void Add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) value = (value ^ bytes[i]) * 1099511628211u;
  }
  template <typename T>
  void AddAll(const std::vector<T>& values) {
    Add(values.data(), values.size() * sizeof(T));
  }
};

constexpr curandRngType_t kTypes[] = {
    CURAND_RNG_PSEUDO_XORWOW,  CURAND_RNG_PSEUDO_MRG32K3A,
    CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10,
    CURAND_RNG_QUASI_SOBOL32,  CURAND_RNG_QUASI_SCRAMBLED_SOBOL64};

struct Program {
  const Library library;
  const size_t count;
  std::vector<curandGenerator_t> generators;
  Hash hash;

  void Note(curandStatus_t status) { hash.Add(&status, sizeof status); }

  void Make(uint64_t seed) {
    for (curandRngType_t type : kTypes) {
      curandGenerator_t generator = nullptr;
      Note(CURAND(curandCreateGeneratorHost)(&generator, type));
      if (generator == nullptr) std::exit(3);
      generators.push_back(generator);
      // Each refuses some of these.
      const bool quasi = type >= CURAND_RNG_QUASI_DEFAULT;
      Note(CURAND(curandSetPseudoRandomGeneratorSeed)(generator, seed + type));
      Note(CURAND(curandSetGeneratorOffset)(generator, type * 10));
      Note(CURAND(curandSetGeneratorOrdering)(
          generator, quasi ? CURAND_ORDERING_QUASI_DEFAULT : CURAND_ORDERING_PSEUDO_LEGACY));
      Note(CURAND(curandSetQuasiRandomGeneratorDimensions)(generator, 3));
      Note(CURAND(curandGenerateSeeds)(generator));
    }
  }

  template <typename T, typename Function, typename... More>
  void Draw(Function function, curandGenerator_t generator, size_t n, More... more) {
    std::vector<T> numbers(n);
    Note(function(generator, numbers.data(), n, more...));
    hash.AddAll(numbers);
  }

  void Step(float mean) {
    for (curandGenerator_t generator : generators) {
      Draw<unsigned int>(CURAND(curandGenerate), generator, count);
      Draw<unsigned long long>(CURAND(curandGenerateLongLong), generator, count);
      Draw<float>(CURAND(curandGenerateUniform), generator, count);
      Draw<double>(CURAND(curandGenerateUniformDouble), generator, count);
      Draw<float>(CURAND(curandGenerateNormal), generator, count, mean, 2.5f);
      Draw<double>(CURAND(curandGenerateNormalDouble), generator, count, 0.1, 1e-3);
      Draw<float>(CURAND(curandGenerateLogNormal), generator, count, 0.f, 0.5f);
      Draw<double>(CURAND(curandGenerateLogNormalDouble), generator, count, -1.0, 0.25);
      Draw<unsigned int>(CURAND(curandGeneratePoisson), generator, count, 10.0);
      Draw<unsigned int>(CURAND(curandGeneratePoissonMethod), generator, count, 3.5, CURAND_KNUTH);
      Draw<float>(CURAND(curandGenerateNormal), generator, count + 1, 0.f, 1.f);
    }
  }

  void Change(const std::string& fault) {
    const auto odd = [&](const char* what) { return fault == what ? 1u : 0u; };
    Note(CURAND(curandSetPseudoRandomGeneratorSeed)(generators[0], 5 + odd("seed")));
    Note(CURAND(curandSetGeneratorOffset)(generators[1], 100 + odd("offset")));
    Note(CURAND(curandSetGeneratorOrdering)(generators[3], odd("order")
                                                               ? CURAND_ORDERING_PSEUDO_SEEDED
                                                               : CURAND_ORDERING_PSEUDO_LEGACY));
    Note(CURAND(curandSetQuasiRandomGeneratorDimensions)(generators[4], 5 + odd("dimensions")));
    if (fault == "extra") Draw<float>(CURAND(curandGenerateUniform), generators[0], count);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = job_number(argc, argv, "--steps", 3);
  const char* option = job_option(argc, argv, "--fault");
  const std::string fault = option == nullptr ? "" : option;
  bool open = false;
  for (int i = 1; i < argc; ++i) open = open || std::strcmp(argv[i], "--open") == 0;
  Program program{
      Library(open), static_cast<size_t>(job_number(argc, argv, "--count", 60)), {}, {}};
  const Library& library = program.library;
  uint64_t seed = static_cast<uint64_t>(job_number(argc, argv, "--seed", 0));
  if (seed == 0 && getrandom(&seed, sizeof seed, 0) != sizeof seed) return 98;
  int version = 0;
  int major = 0;
  program.Note(CURAND(curandGetVersion)(&version));
  program.Note(CURAND(curandGetProperty)(MAJOR_VERSION, &major));
  program.Make(seed);
  deja_register_state("hash", &program.hash, sizeof program.hash);
  for (int step = 0; step < steps; ++step) {
    step = static_cast<int>(deja_step(static_cast<uint64_t>(step)));
    if (step == 2) program.Change(fault);
    program.Step(step == 2 && fault == "mean" ? 1.f : 0.5f);
  }
  for (curandGenerator_t generator : program.generators)
    program.Note(CURAND(curandDestroyGenerator)(generator));
  std::printf("seed %016llx, version %d (%d), result %016llx\n",
              static_cast<unsigned long long>(seed), version, major,
              static_cast<unsigned long long>(program.hash.value));
  return 0;
}
