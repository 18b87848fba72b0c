// Bytes of a fuzzer as the recording of a rank. The first half is the file of events, the second
// half the file of payloads.
#ifndef DEJA_TESTS_FUZZ_RANK_INPUT_H_
#define DEJA_TESTS_FUZZ_RANK_INPUT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {

// Makes `folder` hold these two files and nothing else. A file that does not begin as files of a
// rank do gets their first bytes in front.
void WriteRankInput(std::span<const std::byte> bytes, const std::string& folder);

// Bytes of which WriteRankInput makes `rank`.
std::vector<std::byte> RankInputOf(const samples::SampleRank& rank);

// The recording in `folder`. Null: it cannot be read, or its header names a tail, which would be a
// file of this machine.
std::unique_ptr<RankReader> OpenRankInput(const std::string& folder);

}  // namespace deja::format::fuzz

#endif  // DEJA_TESTS_FUZZ_RANK_INPUT_H_
