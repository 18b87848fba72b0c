// Encrypts a bundle for a recipient, by age or gpg, whichever fits the recipient and is installed.
#ifndef DEJA_CLI_PACK_BUNDLE_ENCRYPTION_H_
#define DEJA_CLI_PACK_BUNDLE_ENCRYPTION_H_

#include <string>

#include "common/result.h"

namespace deja::cli {

// Fails if nothing is installed that can do it; to be asked before the work begins.
Status CanEncryptTo(const std::string& recipient);

// Returns the name of the encrypted file, PATH.age or PATH.gpg; `path` is removed. Recipients that
// begin with "age1" or "ssh-" are age's, others gpg's (a key's id, fingerprint or address).
Result<std::string> EncryptFile(const std::string& path, const std::string& recipient);

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_BUNDLE_ENCRYPTION_H_
