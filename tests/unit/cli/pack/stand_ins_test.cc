#include "cli/pack/stand_ins.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

namespace deja::cli {
namespace {

std::string All(StandIns& names, std::string text) {
  const size_t size = text.size();
  names.ReplaceAll(text);
  EXPECT_EQ(text.size(), size);
  return text;
}

class StandInsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    names_.LearnHost("trainbox17.lab.example");
    names_.LearnUser("alice");
    names_.LearnWorkingFolder("/home/alice/secret-project");
    names_.LearnValue("TEAM", "falcon-nine");
    names_.LearnAddresses("at 10.44.7.193:29500 and [fd00::12:a1b2]");
    names_.Settle();
  }
  StandIns names_;
};

TEST_F(StandInsTest, TheSameStringHasTheSameStandInOfTheSameLength) {
  const std::string host = All(names_, "trainbox17");
  EXPECT_NE(host, "trainbox17");
  EXPECT_EQ(All(names_, "on trainbox17, trainbox17:1"), "on " + host + ", " + host + ":1");
  EXPECT_EQ(All(names_, "trainbox17.lab.example").substr(0, 10), host);
  EXPECT_EQ(All(names_, "trainbox178 xtrainbox17"), "trainbox178 xtrainbox17");
  StandIns others;
  others.LearnHost("trainbox17");
  others.LearnHost("trainbox18");
  others.Settle();
  EXPECT_NE(All(others, "trainbox17"), All(others, "trainbox18"));
}

TEST_F(StandInsTest, CommonNamesStay) {
  StandIns names;
  for (const char* name : {"localhost", "node", "10.0.0.1"}) names.LearnHost(name);
  for (const char* name : {"root", "ubuntu", "1000", "me"}) names.LearnUser(name);
  names.LearnWorkingFolder("/");
  names.LearnWorkingFolder("/root");
  names.Settle();
  EXPECT_EQ(All(names, "root@node runs in /root for me"), "root@node runs in /root for me");
}

TEST_F(StandInsTest, ShortNamesStayAndAreNotCounted) {
  StandIns names;
  names.LearnHost("vm");
  names.LearnUser("jd");
  names.Settle();
  EXPECT_EQ(All(names, "jd on vm"), "jd on vm");
  for (const size_t count : names.Counts()) EXPECT_EQ(count, 0U);
}

TEST_F(StandInsTest, BelowTheWorkingFolderNamesStay) {
  const std::string folder = names_.OfPath("/home/alice/secret-project");
  EXPECT_EQ(folder.substr(0, 6), "/home/");
  EXPECT_EQ(folder.find("alice"), std::string::npos);
  EXPECT_EQ(folder.find("secret"), std::string::npos);
  EXPECT_EQ(names_.OfPath("/home/alice/secret-project/data/a.bin"), folder + "/data/a.bin");
  const std::string other = names_.OfPath("/home/alice/private/weights.pt");
  EXPECT_EQ(other.substr(other.size() - 3), ".pt");
  EXPECT_EQ(other.find("private"), std::string::npos);
  EXPECT_EQ(other.find("weights"), std::string::npos);
}

TEST_F(StandInsTest, FoldersOfTheSystemStay) {
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/etc/hosts", "/proc/self/maps",
                           "/dev/shm/x", "relative/path", ""})
    EXPECT_EQ(names_.OfPath(path), path);
  EXPECT_EQ(names_.OfPath("/home/bob/venv/lib/python3.11/site-packages/torch/nn.py").substr(14),
            "/lib/python3.11/site-packages/torch/nn.py");
}

TEST_F(StandInsTest, PathsWithinATextAreFound) {
  const std::string folder = names_.OfPath("/home/alice/secret-project");
  EXPECT_EQ(All(names_, "--data=/home/alice/secret-project/x -I/home/alice/secret-project"),
            "--data=" + folder + "/x -I" + folder);
  EXPECT_EQ(All(names_, "PATH=/usr/bin:/home/alice/secret-project:/bin"),
            "PATH=/usr/bin:" + folder + ":/bin");
  EXPECT_EQ(All(names_, "https://example.org/a/b"), "https://example.org/a/b");
}

TEST_F(StandInsTest, AddressesInTextAndAsTheSystemHasThem) {
  const std::string address = All(names_, "10.44.7.193");
  EXPECT_NE(address, "10.44.7.193");
  in_addr parsed{};
  ASSERT_EQ(inet_pton(AF_INET, address.c_str(), &parsed), 1);
  sockaddr_in socket{};
  socket.sin_family = AF_INET;
  inet_pton(AF_INET, "10.44.7.193", &socket.sin_addr);
  EXPECT_TRUE(names_.ReplaceSocketAddress({reinterpret_cast<char*>(&socket), sizeof socket}));
  EXPECT_EQ(socket.sin_addr.s_addr, parsed.s_addr);
  for (const char* same : {"127.0.0.1", "0.0.0.0", "version 1.2.3", "libx.so.1.2.3.4", "12:34:56"})
    EXPECT_EQ(All(names_, same), same);
  EXPECT_NE(All(names_, "fd00::12:a1b2"), "fd00::12:a1b2");
}

TEST_F(StandInsTest, ValuesOfTheEnvironmentWhereverTheyStand) {
  EXPECT_EQ(All(names_, "falcon-nine"), All(names_, "TEAM=falcon-nine").substr(5));
  EXPECT_EQ(All(names_, "x falcon-nine y").find("falcon"), std::string::npos);
}

TEST_F(StandInsTest, BytesOfAnyKind) {
  std::string bytes("\0\x01 alice\xff/home/alice/secret-project\0", 36);
  EXPECT_TRUE(names_.ReplaceLearnt(bytes));
  EXPECT_EQ(bytes.find("alice"), std::string::npos);
  EXPECT_EQ(bytes.find("secret"), std::string::npos);
  std::string none("nothing of it");
  EXPECT_FALSE(names_.ReplaceLearnt(none));
}

}  // namespace
}  // namespace deja::cli
