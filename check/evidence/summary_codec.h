// A RankSummary as bytes, and back.
//
// The bytes are those of one revision: another one refuses them. The n-th fields of all calls lie
// together, numbers as differences to the one before, so that zstd finds what repeats. Decoding
// takes hostile input. It allocates no more than a constant multiple of the input. Numbers of
// signatures, sites and names that are not there fail. Pure functions; any thread.
#ifndef DEJA_CHECK_EVIDENCE_SUMMARY_CODEC_H_
#define DEJA_CHECK_EVIDENCE_SUMMARY_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "check/evidence/summary.h"

namespace deja::check {

// To be raised with each change of a summary's fields or of what they mean.
inline constexpr uint32_t kSummaryRevision = 2;

std::string EncodeSummary(const RankSummary& summary);
// False: the bytes are no summary of this revision; `summary` is then of no use.
bool DecodeSummary(std::string_view bytes, RankSummary& summary);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SUMMARY_CODEC_H_
