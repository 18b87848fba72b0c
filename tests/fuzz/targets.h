// The fuzz targets: each takes bytes, reads them with one of the parsers and checks what must hold
// whatever the bytes are. Run by libFuzzer (DEJA_BUILD_FUZZERS) and, on mutations of its seeds, by
// the smoke test of every build.
#ifndef DEJA_TESTS_FUZZ_TARGETS_H_
#define DEJA_TESTS_FUZZ_TARGETS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace deja::format::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::span<const std::byte> bytes);
  std::vector<std::vector<std::byte>> (*seeds)();
  int mutations = 400;  // of each seed, in the short run
};

// By name: in tests/fuzz/CMakeLists.txt, too.
const std::vector<Target>& Targets();

// Null if there is none of that name.
const Target* FindTarget(std::string_view name);

}  // namespace deja::format::fuzz

#endif  // DEJA_TESTS_FUZZ_TARGETS_H_
