// CommNames: which hashes in the recordings of different ranks name the same communicator.
//
// They are equal, but for one made by ncclCommGrow: who joins it knows nothing of the communicator
// that it has grown from. One of its old ranks knows both hashes, and its recording says so.
// A value; to be filled with all ranks before it is asked.
#ifndef DEJA_CLI_EVENTS_COMM_NAMES_H_
#define DEJA_CLI_EVENTS_COMM_NAMES_H_

#include <cstdint>
#include <map>

namespace deja::cli {

class CommNames {
 public:
  // Arguments: those of CommCreated or of a CommSummary.
  void Add(uint64_t hash, uint64_t joined_as) {
    if (joined_as != 0) old_[joined_as] = hash;
  }
  // The hash that its old ranks have.
  [[nodiscard]] uint64_t Of(uint64_t hash) const {
    const auto known = old_.find(hash);
    return known == old_.end() ? hash : known->second;
  }

 private:
  std::map<uint64_t, uint64_t> old_;  // by that of newcomers
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_COMM_NAMES_H_
