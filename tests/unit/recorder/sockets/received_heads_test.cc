#include "recorder/sockets/received_heads.h"

#include <gtest/gtest.h>

#include <string>

namespace deja::recorder {
namespace {

// A client's end of a connection to an HTTP server. What is stored of what it receives is gathered.
class ReceivedHeadsTest : public testing::Test {
 protected:
  void Sends(std::string_view bytes) { sent_ += bytes.size(); }
  void Receives(std::string bytes) {
    if (heads_.in_head() || ReceivedHeads::MayBegin(bytes)) heads_.Mask(bytes, sent_);
    stored_ += bytes;
  }

  std::string stored_;

 private:
  const SecretRule rule_{};
  ReceivedHeads heads_{rule_};
  uint64_t sent_ = 0;
};

constexpr const char* kQuestion = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
constexpr const char* kHead = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
constexpr const char* kSecretHead =
    "HTTP/1.1 200 OK\r\nSet-Cookie: id=0123456789\r\nX-Api-Key: abcdef\r\n\r\n";
constexpr const char* kMaskedHead =
    "HTTP/1.1 200 OK\r\nSet-Cookie: *************\r\nX-Api-Key: ******\r\n\r\n";

TEST_F(ReceivedHeadsTest, AHeadAfterABodyWithoutALinesEnd) {
  Sends(kQuestion);
  Receives(kHead);
  Receives("body");
  Sends(kQuestion);
  Receives(kSecretHead);
  EXPECT_EQ(stored_, std::string(kHead) + "body" + kMaskedHead);
}

TEST_F(ReceivedHeadsTest, OneThatComesInPieces) {
  Sends(kQuestion);
  Receives(kHead);
  Receives("body");
  Sends(kQuestion);
  for (const char c : std::string_view(kSecretHead)) Receives(std::string(1, c));
  EXPECT_EQ(stored_, std::string(kHead) + "body" + kMaskedHead);
}

TEST_F(ReceivedHeadsTest, TheSecondAnswerToWhatWasAskedAtOnce) {
  Sends(std::string(kQuestion) + kQuestion);
  Receives(kHead);
  Receives("body");
  Receives(kSecretHead);
  EXPECT_EQ(stored_, std::string(kHead) + "body" + kMaskedHead);
}

TEST_F(ReceivedHeadsTest, BodiesPassUnchanged) {
  Sends(kQuestion);
  Receives(kHead);
  Receives("Set-Cookie: in a body\n");
  Receives(std::string(1000, 'x') + "\nSet-Cookie: in a body\n");
  EXPECT_EQ(stored_, std::string(kHead) + "Set-Cookie: in a body\n" + std::string(1000, 'x') +
                         "\nSet-Cookie: in a body\n");
}

}  // namespace
}  // namespace deja::recorder
