// libFuzzer's entry for one target, which the build names. With DEJA_FUZZ_SEEDS=DIR the seeds are
// written there first, as a corpus to start from.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/targets.h"
#include "tests/support/sample_trace.h"

namespace {
const deja::format::fuzz::Target* g_target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  g_target = deja::format::fuzz::FindTarget(DEJA_FUZZ_TARGET);
  if (g_target == nullptr) std::abort();
  if (const char* folder = std::getenv("DEJA_FUZZ_SEEDS")) {
    int number = 0;
    for (const auto& seed : g_target->seeds()) {
      deja::format::samples::WriteFileBytes(
          std::string(folder) + "/seed-" + std::to_string(number++), seed);
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  g_target->run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
