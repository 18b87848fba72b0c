// What a resumable operation did when it was given the chance. A plain value.
#ifndef DEJA_LOOPBACK_RANKS_PROGRESS_H_
#define DEJA_LOOPBACK_RANKS_PROGRESS_H_

namespace deja::loopback {

enum class Progress {
  kBlocked,  // nothing: it waits for another rank
  kMoved,    // something; there is more to do
  kDone,
};

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_PROGRESS_H_
