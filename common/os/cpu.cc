#include "common/os/cpu.h"

#include <cpuid.h>

#include <cstdint>
#include <cstring>

namespace deja {
namespace {

enum Register : uint8_t { kEbx, kEcx, kEdx, kEax };
// What must be on in XCR0 for the operating system to keep the registers.
constexpr uint64_t kAvxState = 0x6;
constexpr uint64_t kAvx512State = 0xe6;
constexpr uint64_t kAmxState = 0x60000;

struct Feature {
  const char* name;
  uint32_t leaf;
  uint32_t subleaf;
  Register where;
  uint8_t bit;
  uint64_t state;
};

constexpr Feature kFeatures[] = {
    {"ssse3", 1, 0, kEcx, 9, 0},
    {"sse4_1", 1, 0, kEcx, 19, 0},
    {"sse4_2", 1, 0, kEcx, 20, 0},
    {"popcnt", 1, 0, kEcx, 23, 0},
    {"avx", 1, 0, kEcx, 28, kAvxState},
    {"f16c", 1, 0, kEcx, 29, kAvxState},
    {"fma", 1, 0, kEcx, 12, kAvxState},
    {"bmi1", 7, 0, kEbx, 3, 0},
    {"avx2", 7, 0, kEbx, 5, kAvxState},
    {"bmi2", 7, 0, kEbx, 8, 0},
    {"erms", 7, 0, kEbx, 9, 0},
    {"avx_vnni", 7, 1, kEax, 4, kAvxState},
    {"avx512f", 7, 0, kEbx, 16, kAvx512State},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512State},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512State},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512State},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512State},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512State},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512State},
    {"avx512_vbmi2", 7, 0, kEcx, 6, kAvx512State},
    {"avx512_vnni", 7, 0, kEcx, 11, kAvx512State},
    {"avx512_bf16", 7, 1, kEax, 5, kAvx512State},
    {"avx512_fp16", 7, 0, kEdx, 23, kAvx512State},
    {"amx_bf16", 7, 0, kEdx, 22, kAmxState},
    {"amx_tile", 7, 0, kEdx, 24, kAmxState},
    {"amx_int8", 7, 0, kEdx, 25, kAmxState},
};

uint64_t EnabledStates() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  constexpr uint32_t kOsxsave = 1u << 27;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace

std::string CpuModel() {
  char text[49] = {};
  uint32_t words[12] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t* w = words + static_cast<size_t>(4) * i;
    if (__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3]) == 0) return {};
  }
  std::memcpy(text, words, sizeof words);
  std::string model(text);
  const size_t begin = model.find_first_not_of(' ');
  const size_t end = model.find_last_not_of(' ');
  return begin == std::string::npos ? std::string() : model.substr(begin, end - begin + 1);
}

std::string CpuFeatures() {
  std::string names;
  const uint64_t states = EnabledStates();
  for (const Feature& feature : kFeatures) {
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t ecx = 0;
    uint32_t edx = 0;
    if (__get_cpuid_count(feature.leaf, feature.subleaf, &eax, &ebx, &ecx, &edx) == 0) continue;
    const uint32_t value = feature.where == kEbx   ? ebx
                           : feature.where == kEcx ? ecx
                           : feature.where == kEdx ? edx
                                                   : eax;
    if ((value >> feature.bit & 1) == 0 || (states & feature.state) != feature.state) continue;
    if (!names.empty()) names += ' ';
    names += feature.name;
  }
  return names;
}

}  // namespace deja
