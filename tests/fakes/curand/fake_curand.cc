// libcurand.so.10 of the tests: host API, numbers of its own.
//
// A number depends on the generator's type, seed, order and dimensions and on its place in the
// sequence. So any loss of these shows. What cuRAND refuses is refused. Generators of the device
// need the simulated driver, and write when their stream reaches them.
//
// FAKE_CURAND names a file that says what kind of library this is. A number other than 0 is another
// release with other numbers, -1 one that can make no generator. So a test can change it between a
// recording and its replay, which has the recorded environment.
#pragma GCC visibility push(default)
#include "include/compat/curand.h"
#pragma GCC visibility pop

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "tests/fakes/cuda/cuda_sim.h"

struct curandGenerator_st {
  curandRngType_t type;
  bool on_host;
  uint64_t seed = 0;
  uint64_t offset = 0;
  curandOrdering_t order = CURAND_ORDERING_PSEUDO_DEFAULT;
  unsigned dimensions = 1;
  cudaStream_t stream = nullptr;
};

namespace {

uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

bool IsQuasi(curandRngType_t type) {
  return type >= CURAND_RNG_QUASI_DEFAULT;
}

bool Is64Bit(curandRngType_t type) {
  return type == CURAND_RNG_QUASI_SOBOL64 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

bool Exists(curandRngType_t type) {
  switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT:
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_MTGP32:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
    case CURAND_RNG_QUASI_DEFAULT:
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64:
    case CURAND_RNG_QUASI_SCRAMBLED_SOBOL64:
      return true;
    default:
      return false;
  }
}

// The driver's functions, if the program has loaded one.
void* Driver(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  return driver == nullptr ? nullptr : dlsym(driver, name);
}

// Read once: when the library is used for the first time.
int Release() {
  static const int kRelease = [] {
    int release = 0;
    const char* path = std::getenv("FAKE_CURAND");
    FILE* file = path == nullptr ? nullptr : std::fopen(path, "r");
    if (file == nullptr) return 0;
    if (std::fscanf(file, "%d", &release) != 1) release = 0;
    std::fclose(file);
    return release;
  }();
  return kRelease;
}

// The parameters of a distribution: as many as it has.
struct Shape {
  double a = 0;
  double b = 1;
};

enum class Kind : uint64_t { kBits, kUniform, kNormal, kLogNormal, kPoisson };

template <typename T>
T Number(uint64_t bits, Kind kind, Shape shape) {
  if constexpr (std::is_integral_v<T>) {
    if (kind != Kind::kPoisson) return static_cast<T>(bits);
    return static_cast<T>(shape.a + static_cast<double>(bits % 7));
  } else {
    const double unit = static_cast<double>((bits >> 11) + 1) * 0x1p-53;
    if (kind == Kind::kUniform) return static_cast<T>(unit);
    const double normal = shape.a + shape.b * (unit * 6 - 3);
    return static_cast<T>(kind == Kind::kNormal ? normal : std::exp(normal));
  }
}

// What one call writes: everything that it needs is a copy.
template <typename T>
struct Work {
  curandGenerator_st state;
  T* out;
  size_t count;
  Kind kind;
  Shape shape;

  void Do(T* to) const {
    uint64_t key = Mixed(static_cast<uint64_t>(state.type) ^ Mixed(state.seed));
    key = Mixed(key ^ static_cast<uint64_t>(state.order) ^ state.dimensions << 16 ^
                static_cast<uint64_t>(Release()) << 32);
    for (size_t i = 0; i < count; ++i)
      to[i] = Number<T>(Mixed(key + (state.offset + i) * 0x9e3779b97f4a7c15u), kind, shape);
  }
};

template <typename T>
curandStatus_t Produce(curandGenerator_t generator, T* out, size_t count, Kind kind,
                       Shape shape = {}) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (std::is_same_v<T, unsigned long long> && !Is64Bit(generator->type))
    return CURAND_STATUS_TYPE_ERROR;
  if (IsQuasi(generator->type) && count % generator->dimensions != 0)
    return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  const bool in_pairs = kind == Kind::kNormal || kind == Kind::kLogNormal;
  if (!IsQuasi(generator->type) && in_pairs && count % 2 != 0)
    return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  auto* work = new Work<T>{*generator, out, count, kind, shape};
  generator->offset += count;
  if (generator->on_host) {
    work->Do(out);
    delete work;
    return CURAND_STATUS_SUCCESS;
  }
  using Launch = CUresult (*)(CUstream, CUhostFn, void*);
  auto launch = reinterpret_cast<Launch>(Driver("cuLaunchHostFunc"));
  auto run = [](void* data) {  // once a launch, if it is captured: never freed
    auto* it = static_cast<Work<T>*>(data);
    using Backing = void* (*)(const void*);
    static auto backing = reinterpret_cast<Backing>(Driver("cusim_backing"));
    it->Do(static_cast<T*>(backing(it->out)));
    it->state.offset += it->count;
  };
  const CUresult result = launch(reinterpret_cast<CUstream>(generator->stream), run, work);
  return result == CUDA_SUCCESS ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

curandStatus_t Create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  if (Release() < 0) return CURAND_STATUS_INITIALIZATION_FAILED;
  if (!on_host && Driver("cusim_backing") == nullptr) return CURAND_STATUS_INITIALIZATION_FAILED;
  if (!Exists(type)) return CURAND_STATUS_TYPE_ERROR;
  *generator = new curandGenerator_st{type, on_host};
  if (IsQuasi(type)) (*generator)->order = CURAND_ORDERING_QUASI_DEFAULT;
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return Create(generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return Create(generator, type, true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (IsQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  generator->seed = seed;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->type == CURAND_RNG_PSEUDO_MT19937) return CURAND_STATUS_TYPE_ERROR;
  generator->offset = offset;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (IsQuasi(generator->type) != (order == CURAND_ORDERING_QUASI_DEFAULT))
    return CURAND_STATUS_OUT_OF_RANGE;
  generator->order = order;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
                                                       unsigned int dimensions) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (!IsQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions == 0 || dimensions > 20000) return CURAND_STATUS_OUT_OF_RANGE;
  generator->dimensions = dimensions;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return generator == nullptr ? CURAND_STATUS_NOT_INITIALIZED : CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* out, size_t num) {
  return Produce(generator, out, num, Kind::kBits);
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* out,
                                      size_t num) {
  return Produce(generator, out, num, Kind::kBits);
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t num) {
  return Produce(generator, out, num, Kind::kUniform);
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out, size_t num) {
  return Produce(generator, out, num, Kind::kUniform);
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* out, size_t n, float mean,
                                    float stddev) {
  return Produce(generator, out, n, Kind::kNormal, {mean, stddev});
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* out, size_t n,
                                          double mean, double stddev) {
  return Produce(generator, out, n, Kind::kNormal, {mean, stddev});
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* out, size_t n,
                                       float mean, float stddev) {
  return Produce(generator, out, n, Kind::kLogNormal, {mean, stddev});
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* out, size_t n,
                                             double mean, double stddev) {
  return Produce(generator, out, n, Kind::kLogNormal, {mean, stddev});
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* out, size_t n,
                                     double lambda) {
  return Produce(generator, out, n, Kind::kPoisson, {lambda});
}
curandStatus_t curandGeneratePoissonMethod(curandGenerator_t generator, unsigned int* out, size_t n,
                                           double lambda, curandMethod_t method) {
  return Produce(generator, out, n, Kind::kPoisson, {lambda + static_cast<double>(method)});
}
curandStatus_t curandGetVersion(int* version) {
  *version = 10000 + Release();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
  if (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL)
    return CURAND_STATUS_OUT_OF_RANGE;
  *value = type == MAJOR_VERSION ? 10 : Release();
  return CURAND_STATUS_SUCCESS;
}

}  // extern "C"
