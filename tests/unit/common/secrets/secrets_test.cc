#include "common/secrets/secrets.h"

#include <gtest/gtest.h>

#include <string>

namespace deja {
namespace {

std::string MaskedValue(const std::string& name, std::string value, const SecretRule& rule = {}) {
  const size_t size = value.size();
  const std::string before = value;
  const std::string_view by = rule.MaskValue(name, value);
  EXPECT_EQ(value.size(), size);
  EXPECT_EQ(!by.empty(), value != before) << name << "=" << before;
  return value;
}

std::string MaskedArgument(const std::string& previous, std::string argument,
                           const SecretRule& rule = {}) {
  rule.MaskArgument(previous, argument);
  return argument;
}

TEST(SecretsTest, TextsWithTheirLengthInFront) {
  const auto masked = [](std::string bytes) {
    const std::string_view rule = SecretRule().MaskCounted(bytes);
    return std::string(rule) + "|" + bytes;
  };
  using std::string_literals::operator""s;
  // pickle, protocol 4, 2 and 3 with bytes, 0's strings of Python 2; MessagePack with both lengths.
  EXPECT_EQ(masked("\x8c\x08password\x94\x8c\x05hunt2\x94s"s),
            "name|\x8c\x08password\x94\x8c\x05*****\x94s"s);
  EXPECT_EQ(masked("X\x08\0\0\0passwordq\x01X\x05\0\0\0hunt2q\x02"s),
            "name|X\x08\0\0\0passwordq\x01X\x05\0\0\0*****q\x02"s);
  EXPECT_EQ(masked("X\x08\0\0\0passwordr\1\1\0\0C\x05hu\0t2"s),
            "name|X\x08\0\0\0passwordr\1\1\0\0C\x05*****"s);
  EXPECT_EQ(
      masked("X\x08\0\0\0passwordq\1c_codecs\nencode\nq\2X\x05\0\0\0hunt2q\3X\6\0\0\0latin1"s),
      "name|X\x08\0\0\0passwordq\1c_codecs\nencode\nq\2X\x05\0\0\0*****q\3X\6\0\0\0latin1"s);
  EXPECT_EQ(masked("X\x08\0\0\0passwordq\1h\2X\x05\0\0\0hunt2"s),
            "name|X\x08\0\0\0passwordq\1h\2X\x05\0\0\0*****"s);
  EXPECT_EQ(masked("U\x08passwordU\x05hunt2"s), "name|U\x08passwordU\x05*****"s);
  EXPECT_EQ(masked("\xa8password\xa5hunt2"s), "name|\xa8password\xa5*****"s);
  EXPECT_EQ(masked("\xd9\x08password\xd9\x05hunt2"s), "name|\xd9\x08password\xd9\x05*****"s);
  EXPECT_EQ(masked("\xa8password\xda\0\x05hunt2"s), "name|\xa8password\xda\0\x05*****"s);
  // The value of one name is the name of the next value.
  EXPECT_EQ(masked("\xa4name\xa8password\xa5hunt2"s), "name|\xa4name\xa8password\xa5*****"s);
  // No secret; a length that goes beyond the end; a name that is cut off.
  for (const std::string& bytes : {"\xa4name\xa5hunt2"s, "\xa8password\xa6hunt2"s, "\xa8passwor"s,
                                   "\x8c"s, "X\xff\xff\xff\xff"s, ""s})
    EXPECT_EQ(masked(bytes), "|" + bytes);
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

std::string RuleFor(const std::string& name, std::string value) {
  return std::string(SecretRule().MaskValue(name, value));
}

TEST(SecretsTest, VariablesThatLookLikeSecretsAreMasked) {
  for (const char* name :
       {"PGPASSWORD", "SSHPASS", "DBPASSWORD", "MYSQLPASS", "CLIENTSECRET", "PASS", "DB_PW",
        "KAGGLE_KEY", "COMET_KEY", "GITHUB_PAT", "AZURE_DEVOPS_EXT_PAT", "HFTOKEN", "SMTP_PASS",
        "SESSION_SECRET", "MYSQLPWD", "ROBOFLOW_KEY", "SLACK_WEBHOOK"}) {
    EXPECT_EQ(MaskedValue(name, "swordfish4711"), "deja-masked**") << name;
    EXPECT_EQ(RuleFor(name, "swordfish4711"), "name") << name;
  }
  EXPECT_EQ(MaskedValue("HF_TOKEN_OLD", "a81nv04bsk38vnqp37"), "deja-masked*******");
  EXPECT_EQ(MaskedValue("DOCKER_AUTH_CONFIG", R"({"auths": {"r.io": {"auth": "am9lOnB3"}}})"),
            "deja-masked" + std::string(30, '*'));
  EXPECT_EQ(MaskedValue("KAGGLE_JSON", R"({"username":"joe","key":"0123456789abcdef0123"})"),
            R"({"username":"joe","key":"deja-masked*********"})");
}

TEST(SecretsTest, ValuesOfServicesAreMaskedByTheirNames) {
  const std::string hex = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(RuleFor("DATADOG_SITE_ID", hex + "01234567"), "datadog-access-token");
  EXPECT_EQ(RuleFor("DATADOG_SITE_ID", hex + "0123456789"), "");
  EXPECT_EQ(RuleFor("ALGOLIA", hex), "algolia-api-key");
  EXPECT_EQ(RuleFor("ALGOLIA_HOST", "search.example.org"), "");
}

TEST(SecretsTest, FormsThatAServiceGives) {
  const std::string hex = "0123456789abcdef0123456789abcdef";
  const struct {
    const char* rule;
    std::string value;
    std::string masked;
  } rows[] = {
      {"slack-webhook", "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXX",
       "https://hooks.slack.com/services/deja-masked" + std::string(25, '*')},
      {"password-in-url", "https://" + hex + "@o1.ingest.sentry.io/2",
       "https://deja-masked" + std::string(21, '*') + "@o1.ingest.sentry.io/2"},
      {"stripe-key", "sk_live_4eC39HqLyjWD", "deja-masked*********"},
      {"bearer-token", "Bearer a1b2c3d4e5f6", "Bearer deja-masked*"},
      {"name", "https://s3/x?X-Amz-Date=1&X-Amz-Signature=" + hex + "&z=1",
       "https://s3/x?X-Amz-Date=1&X-Amz-Signature=deja-masked" + std::string(21, '*') + "&z=1"},
      {"gitlab-token", "glpat-0123456789abcdefghij", "deja-masked***************"},
      {"aws-key-id", "AKIAIOSFODNN7EXAMPLE", "deja-masked*********"},
      {"user-password", "joe:Swordfish4711", "joe:deja-masked**"},
      {"age-secret-key", "AGE-SECRET-KEY-1" + std::string(58, 'Q'),
       "deja-masked" + std::string(63, '*')},
      {"databricks-api-token", "dapi" + hex, "deja-masked" + std::string(25, '*')},
      {"sendgrid-api-token", "SG." + std::string(66, 'x'), "deja-masked" + std::string(58, '*')},
      {"twilio-api-key", "SK" + hex, "deja-masked" + std::string(23, '*')},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(MaskedValue("ANYTHING", row.value), row.masked);
    EXPECT_EQ(RuleFor("ANYTHING", row.value), row.rule) << row.value;
  }
}

// What a job needs to be understood and replayed: of torchrun, Slurm, Open MPI, NCCL, a shell.
TEST(SecretsTest, TheEnvironmentOfATrainingJobStays) {
  const struct {
    const char* name;
    const char* value;
  } rows[] = {
      {"MASTER_ADDR", "node-07.cluster.example.org"},
      {"MASTER_PORT", "29500"},
      {"RANK", "3"},
      {"WORLD_SIZE", "8"},
      {"GROUP_RANK", "0"},
      {"ROLE_NAME", "default"},
      {"TORCHELASTIC_RUN_ID", "5f2c1b7e-0d7f-4a3a-9a34-1b0f1d2e3c4d"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_ERROR_FILE", "/tmp/torchelastic_7c2j3k/none_a1b2/attempt_0/0/error.json"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"TORCH_CUDA_ARCH_LIST", "7.0 8.0 9.0+PTX"},
      {"NCCL_SOCKET_IFNAME", "eth0"},
      {"NCCL_IB_HCA", "mlx5_0:1,mlx5_1:1"},
      {"NCCL_IB_PKEY", "0x7fff"},
      {"NCCL_TOPO_FILE", "/var/run/nvidia-topologyd/virtualTopology.xml"},
      {"NCCL_COMM_ID", "10.0.0.5:29501"},
      {"NCCL_TUNER_PLUGIN", "libnccl-tuner.so"},
      {"CUDA_VISIBLE_DEVICES", "GPU-8f3a1c2e-1b2c-3d4e-5f60-718293a4b5c6"},
      {"SLURM_JOB_ID", "4711002"},
      {"SLURM_JOB_NODELIST", "node-[07-08]"},
      {"SLURM_JOB_PARTITION", "gpu"},
      {"SLURM_JOB_ACCOUNT", "vision-2"},
      {"SLURM_JOB_USER", "joe"},
      {"SLURM_TASKS_PER_NODE", "4(x2)"},
      {"SLURM_STEP_NODELIST", "node-[07-08]"},
      {"SLURM_TOPOLOGY_ADDR", "switch-1.node-07"},
      {"SLURM_TRES_PER_TASK", "cpu:8"},
      {"SLURM_GTIDS", "0,1,2,3"},
      {"SLURM_SRUN_COMM_HOST", "10.0.0.5"},
      {"SLURM_MPI_TYPE", "pmix_v4"},
      {"PMIX_SERVER_URI41", "pmix-server.12345;tcp4://127.0.0.1:41573"},
      {"PMIX_SECURITY_MODE", "munge,native"},
      {"OMPI_MCA_btl", "^openib"},
      {"OMPI_COMM_WORLD_RANK", "3"},
      {"UCX_TLS", "rc,cuda_copy,cuda_ipc"},
      {"PATH", "/opt/conda/bin:/usr/local/cuda-12.4/bin:/usr/bin:/bin"},
      {"LD_LIBRARY_PATH", "/usr/local/cuda/lib64:/opt/nccl/lib"},
      {"LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:*.tar=01;31:*.key=01;32"},
      {"PYTHONPATH", "/home/joe/src"},
      {"SSH_AUTH_SOCK", "/tmp/ssh-XXXXXX1a2b3c/agent.4711"},
      {"SSH_CONNECTION", "10.0.0.9 50022 10.0.0.5 22"},
      {"XAUTHORITY", "/home/joe/.Xauthority"},
      {"DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"},
      {"XDG_SESSION_ID", "c42"},
      {"INVOCATION_ID", "0123456789abcdef0123456789abcdef"},
      {"GPG_TTY", "/dev/pts/3"},
      {"PWD", "/home/joe/project"},
      {"OLDPWD", "/home/joe"},
      {"LESSOPEN", "| /usr/bin/lesspipe %s"},
      {"HF_HOME", "/scratch/hf"},
      {"HF_TOKEN_PATH", "/home/joe/.cache/huggingface/token"},
      {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"},
      {"GOOGLE_APPLICATION_CREDENTIALS", "/home/joe/.config/gcp.json"},
      {"AWS_SHARED_CREDENTIALS_FILE", "/home/joe/.aws/credentials"},
      {"TOKENIZERS_PARALLELISM", "false"},
      {"TOKENIZER_NAME", "meta-llama/Llama-3.1-8B-Instruct"},
      {"MODEL_NAME", "facebook/opt-1.3b"},
      {"TRAIN_TOKENS", "300B"},
      {"MAX_NEW_TOKENS", "512"},
      {"PAD_TOKEN", "<|pad_id_12345|>"},
      {"SPECIAL_TOKENS", "<s>,</s>"},
      {"TOKEN_EMBEDDING_DIM", "4096"},
      {"NUM_KEY_VALUE_HEADS", "8"},
      {"ATTN_KEY", "model.layers.0.self_attn.k_proj"},
      {"SORT_KEY", "length2"},
      {"MONITOR_KEY", "val_loss_at_10"},
      {"KEY", "attention_key_padding_mask"},
      {"FORWARD_PASS", "fused_v2"},
      {"NUM_PASS", "2"},
      {"GIT_ASKPASS", "/usr/lib/git-core/git-gui--askpass"},
      {"DATA_URL", "s3://bucket/path/shard-{000000..000999}.tar"},
      {"WANDB_MODE", "offline"},
      {"WANDB_PROJECT", "pretrain-7b"},
      {"CONDA_PROMPT_MODIFIER", "(base) "},
      {"OMP_PLACES", "{0:8},{8:8}"},
      {"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"},
      {"IMAGE", "nvcr.io/nvidia/pytorch:24.05-py3"},
      {"GIT_COMMIT", "b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b"},
  };
  for (const auto& row : rows) EXPECT_EQ(RuleFor(row.name, row.value), "") << row.name;
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
  EXPECT_EQ(MaskedArgument("-p", "Hunter2"), "*******");
  EXPECT_EQ(MaskedArgument("-p", "8080"), "8080");
  EXPECT_EQ(MaskedArgument("-p", "gpu-long"), "gpu-long");
  EXPECT_EQ(MaskedArgument("-p", "runs/1A"), "runs/1A");
  EXPECT_EQ(MaskedArgument("--auth", "0123456789ab"), "deja-masked*");
  EXPECT_EQ(MaskedArgument("--auth", "basic"), "basic");
  EXPECT_EQ(MaskedArgument("-u", "joe:swordfish"), "joe:*********");
  EXPECT_EQ(MaskedArgument("--user", "joe:swordfish"), "joe:*********");
  EXPECT_EQ(MaskedArgument("curl", "--user=joe:swordfish"), "--user=joe:*********");
  EXPECT_EQ(MaskedArgument("--user", "1000:1000"), "1000:1000");
  EXPECT_EQ(MaskedArgument("train.py", "joe:Swordfish4711"), "joe:deja-masked**");
  EXPECT_EQ(MaskedArgument("train.py", "cuda:0"), "cuda:0");
  EXPECT_EQ(MaskedArgument("train.py", "master:29500"), "master:29500");
  EXPECT_EQ(MaskedArgument("train.py", "package.Module:Class2"), "package.Module:Class2");
  EXPECT_EQ(MaskedArgument("--header", "Authorization: token abc"), "Authorization: *********");
  EXPECT_EQ(MaskedArgument("-c", "export DB_PASSWORD=abc; ./run"), "export DB_PASSWORD=***; ./run");
}

TEST(SecretsTest, OptionsOfACommandLineWithinAnArgument) {
  EXPECT_EQ(MaskedArgument("-c", "curl -u joe:swordfish http://a/ | sh"),
            "curl -u joe:********* http://a/ | sh");
  EXPECT_EQ(MaskedArgument("-c", "mysql -p 'Hunter2' db && x --auth 0123456789ab"),
            "mysql -p '*******' db && x --auth deja-masked*");
  EXPECT_EQ(MaskedArgument("ssh", "curl --user joe:swordfish a"), "curl --user joe:********* a");
  for (const char* same : {"cp -p a b; sort -key 2", "x = a - b; y: dict[Key1Abc2, int]", "-",
                           "- -", "docker run -p 8080:80 -u 1000:1000 image", ""})
    EXPECT_EQ(MaskedArgument("-c", same), same);
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

TEST(SecretsTest, OtherProtocolsPassUnchanged) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 7);
  bytes += "\ntoken: abc\n{\"token\": \"the\"}\n";
  EXPECT_EQ(MaskedInPieces(bytes, 64), bytes);
}

}  // namespace
}  // namespace deja
