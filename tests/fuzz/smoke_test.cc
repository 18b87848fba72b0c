// Every fuzz target on its seeds and on a fixed series of mutations of them: what every build runs,
// with any compiler. The search itself is libFuzzer's (preset asan).
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/fuzz/targets.h"

namespace deja::format::fuzz {
namespace {

class FuzzSmokeTest : public testing::TestWithParam<std::string> {};

std::vector<std::byte> Mutate(std::vector<std::byte> bytes, std::mt19937& random) {
  const auto byte = [&] {
    constexpr int kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    return static_cast<std::byte>(random() % 2 == 0 ? kEdges[random() % 5] : random());
  };
  for (uint32_t changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random() % bytes.size();
    const size_t size = std::min<size_t>(1 + random() % 16, bytes.size() - at);
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
    const auto end = begin + static_cast<ptrdiff_t>(size);
    switch (random() % 5) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(begin, end);
        break;
      case 2: {
        const std::vector<std::byte> copy(begin, end);
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(random() % bytes.size()), copy.begin(),
                     copy.end());
        break;
      }
      default:
        *begin = byte();
    }
  }
  return bytes;
}

TEST_P(FuzzSmokeTest, SeedsAndTheirMutationsKeepTheProperties) {
  const Target* target = FindTarget(GetParam());
  ASSERT_NE(target, nullptr);
  target->run({});
  std::mt19937 random(1);
  for (const auto& seed : target->seeds()) {
    target->run(seed);
    for (int i = 0; i < target->mutations; ++i) target->run(Mutate(seed, random));
  }
}

INSTANTIATE_TEST_SUITE_P(, FuzzSmokeTest, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Target& target : Targets()) names.emplace_back(target.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace deja::format::fuzz
