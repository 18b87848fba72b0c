// The map: one rank's recording becomes its summary.
//
// Reads all events once, unless heads alone are wanted. Memory: one decoded batch and the summary.
// One thread a call; several ranks may be read side by side with a PlaceFinder each.
#ifndef DEJA_CHECK_EVIDENCE_SUMMARIZE_H_
#define DEJA_CHECK_EVIDENCE_SUMMARIZE_H_

#include "check/evidence/place_finder.h"
#include "check/evidence/summary.h"
#include "format/reader/rank_reader.h"

namespace deja::check {

struct SummarizeOptions {
  bool is_running = false;  // its process is alive: what is not there may still come
  // Communicators and the rank's end alone. Batches that say nothing of them are not read, so
  // damage in them does not show.
  bool only_heads = false;
};

RankSummary Summarize(const format::RankReader& reader, PlaceFinder& places,
                      const SummarizeOptions& options);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SUMMARIZE_H_
