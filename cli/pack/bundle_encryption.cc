#include "cli/pack/bundle_encryption.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace deja::cli {
namespace {

bool IsForAge(std::string_view recipient) {
  return recipient.substr(0, 4) == "age1" || recipient.substr(0, 4) == "ssh-";
}

bool IsInstalled(const std::string& program) {
  const char* path = getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

Result<int> RunToItsEnd(std::vector<std::string> words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return FailErrno("starting " + words[0], errno);
  if (pid == 0) {
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Status CanEncryptTo(const std::string& recipient) {
  const std::string program = IsForAge(recipient) ? "age" : "gpg";
  if (recipient.empty() || recipient[0] == '-') {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "encrypting: '{}': not a recipient; give one of age (age1…, ssh-…) or a key of gpg",
            recipient));
  }
  if (IsInstalled(program)) return {};
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("encrypting: {}: {} is not in PATH; install it, or leave out --encrypt-to",
                  recipient, program));
}

Result<std::string> EncryptFile(const std::string& path, const std::string& recipient) {
  DEJA_RETURN_IF_ERROR(CanEncryptTo(recipient));
  const bool age = IsForAge(recipient);
  const std::string out = path + (age ? ".age" : ".gpg");
  const std::vector<std::string> words =
      age ? std::vector<std::string>{"age", "--recipient", recipient, "--output", out, path}
          : std::vector<std::string>{"gpg",     "--batch",  "--encrypt", "--recipient",
                                     recipient, "--output", out,         path};
  DEJA_ASSIGN_OR_RETURN(const int code, RunToItsEnd(words));
  if (code != 0) {
    return Fail(ErrorCode::kIo,
                fmt::format("encrypting: {} to {}: {} ended with exit code {}; nothing was written",
                            path.substr(path.rfind('/') + 1), recipient, words[0], code));
  }
  if (unlink(path.c_str()) != 0) return FailErrno("removing: " + path, errno);
  return out;
}

}  // namespace deja::cli
