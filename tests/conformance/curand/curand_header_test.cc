// include/compat/curand.h against NVIDIA's header, where that is installed; and the table.
#include <gtest/gtest.h>

#include <bit>

#include "api/curand_table.h"
#include "api/find_api.h"
#include "api/table.h"
#include "preload/calls/buffers.h"
#include "tests/conformance/curand/curand_numbers.h"

namespace {

using deja::api::ApiClass;
using deja::api::ApiInfo;
using deja::api::CurandApi;
using deja::api::Role;

TEST(CurandHeaderTest, AgreesWithTheInstalledHeader) {
  EXPECT_EQ(CompatCurandNumbers()["CURAND_RNG_PSEUDO_PHILOX4_32_10"], 161);
#ifdef DEJA_HAVE_SYSTEM_CURAND_H
  EXPECT_EQ(CompatCurandNumbers(), SystemCurandNumbers());
#else
  GTEST_SKIP() << "no curand.h was found: install it (libcurand-dev of CUDA's toolkit), or "
                  "configure with -DDEJA_CURAND_INCLUDE=FOLDER";
#endif
}

TEST(CurandTableTest, FindsRowsByIdAndName) {
  for (const ApiInfo& info : deja::api::CurandTable()) {
    EXPECT_EQ(deja::api::FindCurand(info.id), &info);
    EXPECT_EQ(deja::api::FindCurand(info.name), &info);
    EXPECT_EQ(deja::api::FindApi(info.id), &info);
    EXPECT_TRUE(deja::api::IsCurand(info.id));
  }
  EXPECT_EQ(deja::api::FindCurand("curandNoSuchFunction"), nullptr);
  EXPECT_EQ(deja::api::FindCurand(deja::api::kC10dFamily), nullptr);
}

TEST(CurandTableTest, IdsOnDiskNeverChange) {
  EXPECT_EQ(static_cast<int>(CurandApi::curandCreateGenerator), 0x1400);
  EXPECT_EQ(static_cast<int>(CurandApi::curandGenerateSeeds), 0x1408);
  EXPECT_EQ(static_cast<int>(CurandApi::curandGenerateUniform), 0x140b);
  EXPECT_EQ(static_cast<int>(CurandApi::curandGetProperty), 0x1414);
}

TEST(CurandTableTest, TheTypeOfABufferIsThatOfItsElements) {
  // ncclUint32, ncclUint64, ncclFloat32, ncclFloat64.
  const std::pair<CurandApi, std::pair<uint32_t, uint64_t>> kExpected[] = {
      {CurandApi::curandGenerate, {3, 4}},
      {CurandApi::curandGenerateLongLong, {5, 8}},
      {CurandApi::curandGenerateLogNormal, {7, 4}},
      {CurandApi::curandGenerateNormalDouble, {8, 8}},
  };
  uint64_t args[deja::api::kMaxArgs] = {1, 0x1000, 10};
  for (const auto& [api, expected] : kExpected) {
    const ApiInfo& info = deja::api::CurandInfo(api);
    SCOPED_TRACE(info.name);
    const deja::preload::BufferUse use = deja::preload::OutputBuffer(info, args, 1, 0);
    EXPECT_EQ(use.dtype, expected.first);
    EXPECT_EQ(use.elements, 10u);
    EXPECT_EQ(use.bytes, 10 * expected.second);
  }
  for (const ApiInfo& info : deja::api::CurandTable()) {
    if (info.klass != ApiClass::kCollective) continue;
    EXPECT_GT(deja::preload::OutputBuffer(info, args, 1, 0).bytes, 0u) << info.name;
    EXPECT_TRUE(deja::preload::InputBuffer(info, args, 1, 0).empty()) << info.name;
  }
}

TEST(CurandTableTest, NumbersWithAFractionAreTheBitsOfADouble) {
  using deja::api::FromWord;
  using deja::api::ToWord;
  EXPECT_EQ(ToWord(0.1), std::bit_cast<uint64_t>(0.1));
  EXPECT_EQ(FromWord<double>(ToWord(0.1)), 0.1);
  EXPECT_EQ(ToWord(0.1f), std::bit_cast<uint64_t>(static_cast<double>(0.1f)));
  EXPECT_EQ(FromWord<float>(ToWord(-0.1f)), -0.1f);
}

TEST(CurandTableTest, ValuesHaveTheirNames) {
  EXPECT_STREQ(deja::api::CurandValueName("curandRngType_t", 161), "PSEUDO_PHILOX4_32_10");
  EXPECT_STREQ(deja::api::CurandValueName("curandOrdering_t", 101), "PSEUDO_DEFAULT");
  EXPECT_EQ(deja::api::CurandValueName("curandRngType_t", 162), nullptr);
  EXPECT_EQ(deja::api::CurandValueName("int", 161), nullptr);
  EXPECT_STREQ(deja::api::CurandResultName(0), "ok");
  EXPECT_STREQ(deja::api::CurandResultName(203), "INITIALIZATION_FAILED");
  EXPECT_EQ(deja::api::CurandResultName(-1), nullptr);
}

}  // namespace
