#include "common/secrets.h"

#include <gtest/gtest.h>

#include <string>

namespace deja {
namespace {

std::string MaskedValue(const std::string& name, std::string value, const SecretRule& rule = {}) {
  const size_t size = value.size();
  const std::string before = value;
  const bool masked = rule.MaskValue(name, value);
  EXPECT_EQ(value.size(), size);
  EXPECT_EQ(masked, value != before) << name << "=" << before;
  return value;
}

std::string MaskedArgument(const std::string& previous, std::string argument,
                           const SecretRule& rule = {}) {
  rule.MaskArgument(previous, argument);
  return argument;
}

TEST(SecretsTest, NamesOfSecrets) {
  const SecretRule rule;
  for (const char* name : {"PASSWORD",
                           "DB_PASSWORD",
                           "db-password",
                           "dbPassword",
                           "MYSQL_PWD",
                           "DB_PASS",
                           "HF_TOKEN",
                           "token",
                           "accessToken",
                           "HUGGING_FACE_HUB_TOKEN",
                           "GITHUB_TOKEN",
                           "WANDB_API_KEY",
                           "api-key",
                           "apiKey",
                           "APIKEY",
                           "AWS_SECRET_ACCESS_KEY",
                           "AWS_SESSION_TOKEN",
                           "AZURE_STORAGE_KEY",
                           "ssh_private_key",
                           "CLIENT_SECRET",
                           "Authorization",
                           "Proxy-Authorization",
                           "Cookie",
                           "Set-Cookie",
                           "X-Api-Key",
                           "X-Auth-Token",
                           "SLURM_JWT",
                           "REDIS_AUTH",
                           "GPG_PASSPHRASE"})
    EXPECT_TRUE(rule.IsSecretName(name)) << name;
}

TEST(SecretsTest, NamesThatOnlySoundLikeIt) {
  const SecretRule rule;
  for (const char* name : {"",
                           "PATH",
                           "PWD",
                           "OLDPWD",
                           "TOKENIZERS_PARALLELISM",
                           "max_tokens",
                           "pad_token",
                           "eos-token",
                           "padToken",
                           "KEYMAP",
                           "sort-key",
                           "key",
                           "num_keys",
                           "monkey",
                           "compass",
                           "SSH_AUTH_SOCK",
                           "HF_TOKEN_PATH",
                           "PASSWORD_STORE_DIR",
                           "AWS_SHARED_CREDENTIALS_FILE",
                           "GIT_ASKPASS",
                           "Content-Type",
                           "NCCL_COMM_ID",
                           "LS_COLORS",
                           "author"})
    EXPECT_FALSE(rule.IsSecretName(name)) << name;
}

TEST(SecretsTest, PatternsKeepAndMask) {
  const SecretRule rule("HF_*,db_password", "MASTER_?DDR,*session*");
  EXPECT_FALSE(rule.IsSecretName("HF_TOKEN"));
  EXPECT_FALSE(rule.IsSecretName("DB_PASSWORD"));
  EXPECT_TRUE(rule.IsSecretName("MY_TOKEN"));
  EXPECT_TRUE(rule.IsSecretName("MASTER_ADDR"));
  EXPECT_TRUE(rule.IsSecretName("XDG_SESSION_ID"));
  EXPECT_FALSE(rule.IsSecretName("MASTER_ADDRESS"));
  EXPECT_EQ(MaskedValue("XDG_SESSION_ID", "1", rule), "*");
  EXPECT_EQ(MaskedValue("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz", rule),
            "hf_abcdefghijklmnopqrstuvwxyz");
}

TEST(SecretsTest, TheWholeValueOfASecretIsReplaced) {
  EXPECT_EQ(MaskedValue("DB_PASSWORD", "swordfish1234567"), "deja-masked*****");
  EXPECT_EQ(MaskedValue("DB_PASSWORD", "short"), "*****");
  EXPECT_EQ(MaskedValue("DB_PASSWORD", ""), "");
}

TEST(SecretsTest, FlagsAreNoSecrets) {
  for (const char* value : {"0", "1", "true", "False", "no", "none"})
    EXPECT_EQ(MaskedValue("HF_HUB_DISABLE_IMPLICIT_TOKEN", value), value);
}

TEST(SecretsTest, OrdinaryValuesStay) {
  for (const char* value :
       {"/usr/bin:/bin", "en_US.UTF-8", "http://proxy:3128", "ssh://git@host/repo", "a=b;c=d",
        "max_tokens=512,pad_token=<pad>", "task-abcdefghijklmnopqrstuvwxyz", "10.0.0.1:29500",
        "{\"tokens\": [1, 2]}"})
    EXPECT_EQ(MaskedValue("SOME_VALUE", value), value);
}

TEST(SecretsTest, SecretsInsideAValue) {
  EXPECT_EQ(MaskedValue("HTTPS_PROXY", "http://joe:swordfish@proxy:3128"),
            "http://joe:*********@proxy:3128");
  EXPECT_EQ(MaskedValue("DATABASE", "host=db password=swordfish12 port=5"),
            "host=db password=deja-masked port=5");
  EXPECT_EQ(MaskedValue("OPTS", R"({"api_key": "0123456789abcd", "x": 1})"),
            R"({"api_key": "deja-masked***", "x": 1})");
  EXPECT_EQ(MaskedValue("CURL", "-H 'Authorization: Bearer abcdef' -v"),
            "-H 'Authorization: deja-masked**' -v");
  EXPECT_EQ(MaskedValue("URL", "https://h/?user=joe&access_token=abc&x=1"),
            "https://h/?user=joe&access_token=***&x=1");
}

TEST(SecretsTest, TokensKnownByTheirForm) {
  for (const char* token :
       {"ghp_0123456789abcdefghijABCDEFGHIJ012345", "hf_abcdefghijklmnopqrstuvwxyzABCDEF",
        "sk-abcdefghijklmnopqrstuvwx", "AKIAIOSFODNN7EXAMPLE", "xoxb-1234567890-abc",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"}) {
    const std::string masked = MaskedValue("ANYTHING", "x " + std::string(token) + " y");
    EXPECT_EQ(masked.find(token), std::string::npos) << masked;
    EXPECT_EQ(masked.substr(0, 13), "x deja-masked") << masked;
    EXPECT_EQ(masked.substr(masked.size() - 2), " y") << masked;
  }
}

TEST(SecretsTest, PrivateKeys) {
  const std::string masked = MaskedValue(
      "ANYTHING", "-----BEGIN RSA PRIVATE KEY-----\nMIIBOg\nAAAA\n-----END RSA PRIVATE KEY-----\n");
  EXPECT_EQ(masked,
            "-----BEGIN RSA PRIVATE KEY-----\n******\n****\n-----END RSA PRIVATE KEY-----\n");
}

TEST(SecretsTest, Arguments) {
  EXPECT_EQ(MaskedArgument("--api-key", "0123456789ab"), "deja-masked*");
  EXPECT_EQ(MaskedArgument("train.py", "--api-key=0123456789ab"), "--api-key=deja-masked*");
  EXPECT_EQ(MaskedArgument("train.py", "model.hub_token=abc"), "model.hub_token=***");
  EXPECT_EQ(MaskedArgument("--pad-token", "<pad>"), "<pad>");
  EXPECT_EQ(MaskedArgument("--max-tokens", "512"), "512");
  EXPECT_EQ(MaskedArgument("--password", "--verbose"), "--verbose");
  EXPECT_EQ(MaskedArgument("--use-auth-token", "true"), "true");
  EXPECT_EQ(MaskedArgument("-", "abc"), "abc");
  EXPECT_EQ(MaskedArgument("--token", "abc", SecretRule("token", "")), "abc");
  EXPECT_EQ(MaskedArgument("-c", "export DB_PASSWORD=abc; ./run"), "export DB_PASSWORD=***; ./run");
}

std::string MaskedInPieces(const std::string& text, size_t piece) {
  const SecretRule rule;
  HeaderMasker masker(rule);
  std::string out = text;
  for (size_t at = 0; at < out.size(); at += piece)
    masker.Mask({out.data() + at, std::min(piece, out.size() - at)});
  return out;
}

TEST(SecretsTest, HeadersHoweverTheyAreCut) {
  const std::string request =
      "POST /v1/x HTTP/1.1\r\nHost: example.org:80\r\nAuthorization: Bearer abc\r\n"
      "X-API-Key:k\r\nContent-Length: 20\r\n\r\nAuthorization: body\n"
      "GET /next HTTP/1.1\r\ncookie: a=b; c\r\n\r\n";
  const std::string masked =
      "POST /v1/x HTTP/1.1\r\nHost: example.org:80\r\nAuthorization: ****** ***\r\n"
      "X-API-Key:*\r\nContent-Length: 20\r\n\r\nAuthorization: body\n"
      "GET /next HTTP/1.1\r\ncookie: **** *\r\n\r\n";
  for (size_t piece : {1000u, 1u, 2u, 3u, 7u, 50u})
    EXPECT_EQ(MaskedInPieces(request, piece), masked) << piece;
  EXPECT_EQ(MaskedInPieces("HTTP/1.1 200 OK\r\nSet-Cookie: id=1\r\n\r\nbody", 5),
            "HTTP/1.1 200 OK\r\nSet-Cookie: ****\r\n\r\nbody");
}

TEST(SecretsTest, WhatIsNotHttpPassesUnchanged) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7);
  bytes += "\ntoken: abc\n{\"token\": \"the\"}\n";
  EXPECT_EQ(MaskedInPieces(bytes, 64), bytes);
}

}  // namespace
}  // namespace deja
