// TrustStore: which traces this user has recorded on this machine, packed, or agreed to run.
//
// Nothing that a trace says of itself counts, since any user can write it. A folder is known again
// by its identity on the disk (device, inode, birth), a bundle by its SHA-256, in parts, too. Both
// hold only while the files belong to this user and no other user can change them. The store is a
// folder of small files with these names: $XDG_STATE_HOME/deja/trusted, or
// ~/.local/state/deja/trusted.
//
// Main thread of a command; several commands may use it at once. Where there is no such folder,
// nothing is known.
#ifndef DEJA_CLI_FENCE_TRUST_STORE_H_
#define DEJA_CLI_FENCE_TRUST_STORE_H_

#include <string>

#include "common/result.h"

namespace deja::cli {

enum class Trust {
  kNone,
  kAgreed,  // another user's, that this user has agreed to run
  kOwn,
};

class TrustStore {
 public:
  TrustStore();

  // `trace`: a trace's folder, a bundle, or the first part of one.
  [[nodiscard]] Trust Of(const std::string& trace) const;
  Status Add(const std::string& trace, Trust trust) const;

 private:
  std::string folder_;  // empty: there is none
};

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_TRUST_STORE_H_
