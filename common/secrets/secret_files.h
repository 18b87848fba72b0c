// Files that hold secrets by what they are: keys, passwords of programs, tokens of services.
#ifndef DEJA_COMMON_SECRETS_SECRET_FILES_H_
#define DEJA_COMMON_SECRETS_SECRET_FILES_H_

#include <string_view>

namespace deja {

// True if a file with this path is one: ~/.netrc, ~/.aws/credentials, ~/.ssh/id_rsa, NAME.pem …
// Pure; no allocation, any thread.
bool IsSecretFile(std::string_view path);

}  // namespace deja

#endif  // DEJA_COMMON_SECRETS_SECRET_FILES_H_
