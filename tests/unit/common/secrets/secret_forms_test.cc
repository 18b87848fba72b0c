#include "common/secrets/secret_forms.h"

#include <gtest/gtest.h>

#include <string>

namespace deja {
namespace {

std::string Found(const std::string& text) {
  const FoundForm found = FindSecretForm(text, 0);
  return std::string(found.rule) + "|" + text.substr(found.begin, found.end - found.begin);
}

TEST(SecretFormsTest, ATokenAnywhereInAText) {
  const std::string token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  EXPECT_EQ(Found(token), "github-token|" + token);
  EXPECT_EQ(Found("url=x;" + token + ";"), "github-token|" + token);
  EXPECT_EQ(Found("x-" + token + "0123"), "github-token|" + token + "0123");
  EXPECT_EQ(Found("ghp_short"), "|");
  EXPECT_EQ(Found(""), "|");
}

TEST(SecretFormsTest, OnlyTheGroupIsTheSecret) {
  EXPECT_EQ(Found("Authorization: Bearer abc123def456"), "bearer-token|abc123def456");
  EXPECT_EQ(Found("bearer authentication is used"), "|");  // no digit
  EXPECT_EQ(Found("https://discord.com/api/webhooks/0123456789/abcDEF-0123456789"),
            "discord-webhook|0123456789/abcDEF-0123456789");
}

TEST(SecretFormsTest, TheNextOneIsFoundAfterTheFirst) {
  const std::string text = "AKIAIOSFODNN7EXAMPLE and AKIAIOSFODNN7EXAMPLF";
  const FoundForm first = FindSecretForm(text, 0);
  const FoundForm second = FindSecretForm(text, first.end);
  EXPECT_EQ(first.begin, 0u);
  EXPECT_EQ(second.begin, 25u);
  EXPECT_EQ(second.end, text.size());
  EXPECT_TRUE(FindSecretForm(text, second.end).rule.empty());
}

TEST(SecretFormsTest, TheNextTextMayHaveTheSameCharacters) {
  // [a-z0-9]{14} in front of a fixed word, [\w-]+ in front of a dot.
  const std::string terraform = "abcdefghij1234.atlasv1." + std::string(64, 'k');
  EXPECT_EQ(Found(terraform), "hashicorp-tf-api-token|" + terraform);
  const std::string token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
  EXPECT_EQ(Found(token), "json-web-token|" + token);
}

TEST(SecretFormsTest, AValueAfterTheNameOfAService) {
  const std::string hex(40, 'a');
  EXPECT_EQ(FindSecretFormOf("my_Datadog-thing", hex), "datadog-access-token");
  EXPECT_EQ(FindSecretFormOf("my_Datadog-thing", hex + "a"), "");
  EXPECT_EQ(FindSecretFormOf("my_thing", hex), "");
  EXPECT_EQ(FindSecretFormOf("", ""), "");
}

TEST(SecretFormsTest, NoTextTakesLong) {
  // 256 KiB of what many forms may begin or go on with.
  for (const char* piece : {"a", "eyJ.", "s.", "0", "-", "\xff"}) {
    std::string text;
    while (text.size() < (256u << 10)) text += piece;
    (void)FindSecretForm(text, 0);
  }
}

}  // namespace
}  // namespace deja
