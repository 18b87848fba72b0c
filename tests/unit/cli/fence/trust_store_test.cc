#include "cli/fence/trust_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

class TrustStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
    fs::create_directory(Trace());
    fs::permissions(Trace(), fs::perms::owner_all);
    WriteBundle("the bytes");
  }
  void TearDown() override { unsetenv("XDG_STATE_HOME"); }

  [[nodiscard]] std::string Trace() const { return folder_.path() + "/run.deja"; }
  [[nodiscard]] std::string Bundle() const { return folder_.path() + "/run.zip"; }
  void WriteBundle(const std::string& bytes) const {
    fs::remove(Bundle());
    std::ofstream(Bundle()) << bytes;
    fs::permissions(Bundle(), fs::perms::owner_read | fs::perms::owner_write);
  }

  TempDir folder_;
};

TEST_F(TrustStoreTest, KnowsWhatItLearned) {
  const TrustStore store;
  EXPECT_EQ(store.Of(Trace()), Trust::kNone);
  ASSERT_TRUE(store.Add(Trace(), Trust::kOwn));
  EXPECT_EQ(store.Of(Trace()), Trust::kOwn);
  ASSERT_TRUE(store.Add(Bundle(), Trust::kAgreed));
  EXPECT_EQ(store.Of(Bundle()), Trust::kAgreed);
}

TEST_F(TrustStoreTest, AFolderIsKnownByWhatItIsAndNotByItsName) {
  const TrustStore store;
  ASSERT_TRUE(store.Add(Trace(), Trust::kOwn));
  fs::rename(Trace(), folder_.path() + "/moved");
  EXPECT_EQ(store.Of(folder_.path() + "/moved"), Trust::kOwn);
  fs::create_directory(Trace());
  EXPECT_EQ(store.Of(Trace()), Trust::kNone);
}

TEST_F(TrustStoreTest, ABundleIsKnownByItsBytes) {
  const TrustStore store;
  ASSERT_TRUE(store.Add(Bundle(), Trust::kAgreed));
  fs::copy(Bundle(), folder_.path() + "/copy.zip");
  EXPECT_EQ(store.Of(folder_.path() + "/copy.zip"), Trust::kAgreed);
  WriteBundle("other bytes");
  EXPECT_EQ(store.Of(Bundle()), Trust::kNone);
}

TEST_F(TrustStoreTest, AFileThatOthersCanChangeIsNotKnown) {
  const TrustStore store;
  for (const std::string& trace : {Trace(), Bundle()}) {
    ASSERT_TRUE(store.Add(trace, Trust::kOwn));
    fs::permissions(trace, fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(store.Of(trace), Trust::kNone);
  }
}

TEST_F(TrustStoreTest, NoOtherRankWritesWhatThisOneKnows) {
  const TrustStore store;
  ASSERT_TRUE(store.Add(Trace(), Trust::kOwn));
  const std::string folder = folder_.path() + "/state/deja/trusted";
  struct stat info {};
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0700u);
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(store.Of(Trace()), Trust::kNone);
}

}  // namespace
}  // namespace deja::cli
