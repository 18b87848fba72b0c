#include "common/secrets/secret_files.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace deja {
namespace {

// The end of a path, from a slash on.
constexpr std::string_view kSecretEnds[] = {
    "/.netrc",
    "/.pgpass",
    "/.my.cnf",
    "/.npmrc",
    "/.pypirc",
    "/.git-credentials",
    "/.env",
    "/.aws/credentials",
    "/.aws/config",
    "/.kube/config",
    "/.docker/config.json",
    "/.config/gh/hosts.yml",
    "/.config/gcloud/credentials.db",
    "/.config/gcloud/access_tokens.db",
    "/.config/gcloud/application_default_credentials.json",
    "/.config/rclone/rclone.conf",
    "/.azure/accessTokens.json",
    "/.azure/msal_token_cache.json",
    "/.cache/huggingface/token",
    "/.cache/huggingface/stored_tokens",
    "/.huggingface/token",
    "/.kaggle/kaggle.json",
    "/.comet.config",
    "/.vault-token",
    "/.boto",
    "/.s3cfg",
    "/.htpasswd",
    "/etc/shadow",
    "/etc/munge/munge.key",
    "/krb5.keytab",
};
constexpr std::string_view kSecretEndings[] = {".pem", ".key", ".p12",    ".pfx",
                                               ".jks", ".ppk", ".keytab", ".kdbx"};

bool IsEndOf(std::string_view path, std::string_view end) {
  return path.size() >= end.size() && path.substr(path.size() - end.size()) == end;
}

}  // namespace

bool IsSecretFile(std::string_view path) {
  const auto ends = [path](std::string_view end) { return IsEndOf(path, end); };
  if (std::any_of(std::begin(kSecretEnds), std::end(kSecretEnds), ends) ||
      std::any_of(std::begin(kSecretEndings), std::end(kSecretEndings), ends))
    return true;
  if (path.find("/.gnupg/") != std::string_view::npos) return true;
  const size_t ssh = path.find("/.ssh/");
  if (ssh == std::string_view::npos) return false;
  // What is public there says nothing.
  return !ends(".pub") && !ends("/config") && !ends("/known_hosts") && !ends("/authorized_keys");
}

}  // namespace deja
