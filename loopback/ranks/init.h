// The making of communicators: init, split, shrink and grow.
#ifndef DEJA_LOOPBACK_RANKS_INIT_H_
#define DEJA_LOOPBACK_RANKS_INIT_H_

#include <memory>
#include <vector>

#include "loopback/ranks/op.h"
#include "loopback/ranks/rendezvous.h"

namespace deja::loopback {

// Checks a program's ncclConfig_t, of whatever version, and takes from it what matters. Null: the
// defaults.
ncclResult_t ParseConfig(const ncclConfig_t* config, Settings* settings);

// A communicator that is being made. Operations own it until they hand it to the program.
std::unique_ptr<ncclComm> NewComm(int rank, int nranks, const Settings& settings);

// All ranks know who they are and the key of the communicator. With `early`, `*out` is set at once
// (the program polls it), otherwise when all is done.
std::unique_ptr<Op> MakeInit(std::unique_ptr<ncclComm> child, const Key& key, ncclComm_t* out,
                             bool early);

// From `parent`, whose ranks first tell each other colour and key.
std::unique_ptr<Op> MakeSplit(ncclComm* parent, int color, int key, const Settings& settings,
                              ncclComm_t* out);
// From `parent` without the ranks in `excluded` (sorted), which do not take part.
std::unique_ptr<Op> MakeShrink(ncclComm* parent, const std::vector<int>& excluded,
                               const Settings& settings, ncclComm_t* out);
// From `parent` and newcomers, who use MakeInit with the key of the id; one rank of `parent` knows
// it too (the others pass null). `*child` is what is being made.
std::unique_ptr<Op> MakeGrow(ncclComm* parent, int nranks, const ncclUniqueId* id,
                             const Settings& settings, ncclComm_t* out, bool early,
                             ncclComm** child);

}  // namespace deja::loopback

#endif  // DEJA_LOOPBACK_RANKS_INIT_H_
