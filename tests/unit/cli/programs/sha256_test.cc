#include "cli/programs/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace deja::cli {
namespace {

std::string DigestOf(std::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.Finish();
}

// The vectors of FIPS 180-4.
TEST(Sha256Test, IsTheStandardsDigest) {
  EXPECT_EQ(DigestOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(DigestOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(DigestOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(DigestOf(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesMakeTheSameDigest) {
  const std::string bytes(1000, 'x');
  for (const size_t piece : {1, 63, 64, 65, 999}) {
    Sha256 digest;
    for (size_t at = 0; at < bytes.size(); at += piece)
      digest.Update(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(digest.Finish(), DigestOf(bytes)) << piece;
  }
}

TEST(Sha256Test, AFileThatIsNotThereIsAnError) {
  EXPECT_FALSE(Sha256OfFile("/nowhere/at/all"));
}

}  // namespace
}  // namespace deja::cli
