// A library with the functions of a newer NCCL that a recorded program is linked to or looks up.
//
// The replay library stands in for NCCL, and has what Deja knows. A program that needs more would
// not start. Each function of the library that is made here leads to deja_newer_nccl_call of the
// replay library, which ends the replay with the function's name. Any thread. Errors name the file.
#ifndef DEJA_CLI_REPLAY_START_NEWER_NCCL_H_
#define DEJA_CLI_REPLAY_START_NEWER_NCCL_H_

#include <string>
#include <vector>

#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

// The names that the recording has of such functions, each once, in their order.
std::vector<std::string> NewerNcclFunctions(const format::RankReader& reader);

// An ELF shared object for x86-64 with these functions, as bytes.
std::string NewerNcclLibrary(const std::vector<std::string>& functions);

// Writes that library into `folder`. Its path; empty if the recording has no such function.
Result<std::string> MakeNewerNccl(const format::RankReader& reader, const std::string& folder);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPLAY_START_NEWER_NCCL_H_
