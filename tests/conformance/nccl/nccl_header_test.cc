// include/compat/nccl.h against what NVIDIA's header says, where that is installed, and against the
// sizes that are known from its releases.
#include "tests/conformance/nccl/nccl_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "api/nccl_table.h"

namespace {

std::map<std::string, long long> ByName(const NcclLayout& layout) {
  std::map<std::string, long long> rows;
  for (const LayoutRow& row : layout.rows) rows[row.what] = row.value;
  return rows;
}

TEST(NcclHeaderTest, ConfigGrowsAtItsEndAsInTheReleases) {
  auto rows = ByName(CompatLayout());
  // sizeof(ncclConfig_t) of a release is where the next release's first field lies.
  EXPECT_EQ(rows["ncclConfig_t.splitShare"], 40);           // 2.17
  EXPECT_EQ(rows["ncclConfig_t.commName"], 48);             // 2.18 to 2.26
  EXPECT_EQ(rows["ncclConfig_t.nChannelsPerNetPeer"], 72);  // 2.27; 68 bytes of fields
  EXPECT_EQ(rows["ncclConfig_t.graphUsageMode"], 80);       // 2.28
  EXPECT_EQ(rows["ncclConfig_t.maxP2pPeers"], 88);          // 2.29
  EXPECT_EQ(rows["ncclConfig_t.graphStreamOrdering"], 92);  // 2.30: 96
  EXPECT_EQ(rows["ncclConfig_t.launchOrderImplicit"], 96);
  EXPECT_EQ(rows["ncclConfig_t.nvlsHostMode"], 112);              // 2.31: 112, 2.32: 120
  EXPECT_EQ(rows["ncclCollConfig_t.launchCompletionEvent"], 64);  // 2.31: 64, 2.32: 72
  EXPECT_EQ(rows["sizeof ncclUniqueId"], 128);
  EXPECT_EQ(rows["ncclTimeout"], 8);
}

TEST(NcclHeaderTest, AgreesWithTheInstalledHeader) {
#ifdef DEJA_HAVE_SYSTEM_NCCL_H
  auto ours = ByName(CompatLayout());
  NcclLayout system = SystemLayout();
  for (const LayoutRow& row : system.rows) {
    ASSERT_TRUE(ours.contains(row.what)) << row.what;
    EXPECT_EQ(ours[row.what], row.value) << row.what << ", NCCL " << system.version;
  }
  EXPECT_GT(system.rows.size(), 50u);
#else
  GTEST_SKIP() << "no nccl.h was found: install it (libnccl-dev), or configure with "
                  "-DDEJA_NCCL_INCLUDE=FOLDER";
#endif
}

TEST(NcclTableTest, FindsRowsByIdAndName) {
  using deja::api::FindNccl;
  for (const deja::api::ApiInfo& info : deja::api::NcclTable()) {
    EXPECT_EQ(FindNccl(info.id), &info);
    EXPECT_EQ(FindNccl(info.name), &info);
  }
  EXPECT_EQ(FindNccl("ncclNoSuchFunction"), nullptr);
  EXPECT_EQ(FindNccl(deja::api::kLibcFamily), nullptr);
  EXPECT_EQ(FindNccl(0xffffffff), nullptr);
}

TEST(NcclTableTest, IdsOnDiskNeverChange) {
  using deja::api::NcclApi;
  EXPECT_EQ(static_cast<int>(NcclApi::ncclGetVersion), 0);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclCommInitRank), 2);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclCommSplit), 6);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclAllReduce), 27);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclRecv), 34);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclGroupEnd), 39);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclCommWindowRegister), 47);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclParamDumpAll), 63);
  EXPECT_EQ(static_cast<int>(NcclApi::ncclSetEncryption), 72);
}

TEST(NcclTableTest, RolesAreComplete) {
  using deja::api::ApiClass;
  using deja::api::Role;
  for (const deja::api::ApiInfo& info : deja::api::NcclTable()) {
    SCOPED_TRACE(info.name);
    bool moves_data = info.klass == ApiClass::kCollective || info.klass == ApiClass::kP2p;
    if (moves_data) {
      for (Role role : {Role::kCount, Role::kDType, Role::kComm, Role::kStream})
        EXPECT_GE(info.Find(role), 0);
    }
    if (info.klass == ApiClass::kP2p) {
      EXPECT_GE(info.Find(Role::kPeer), 0);
    }
    if (info.Find(Role::kIntArray) >= 0 || info.Find(Role::kSignalDescs) >= 0) {
      EXPECT_GE(info.Find(Role::kIntCount), 0);
    }
    if (info.Find(Role::kDeviceArray) >= 0) {
      EXPECT_GE(info.Find(Role::kNRanks), 0);
    }
  }
}

}  // namespace
