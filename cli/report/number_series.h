// NumberSeries: what the digests of a rank's recording show over steps: scalars, norms, snapshots.
//
// An operation with one element gives its value, a larger one the norm of its tensor. Results are
// taken where they are recorded, inputs otherwise. One series is one place of the program, one
// signature and one place within the step. Reads the events once; one thread.
#ifndef DEJA_CLI_REPORT_NUMBER_SERIES_H_
#define DEJA_CLI_REPORT_NUMBER_SERIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/summary.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

struct NumberPoint {
  uint64_t x = 0;  // step, or number of the operation if there are no steps
  double value = 0;
  bool is_nan = false;  // the tensor has a NaN; `value` means nothing
};

struct NumberSeries {
  std::string title;  // "AllReduce float32[1] sum at train.py:88 in step"
  bool is_scalar = false;
  bool has_steps = false;
  std::vector<NumberPoint> points;
};

struct SeriesLimits {
  size_t series = 16;
  size_t points = 500;  // of one series; more are thinned out, but for those with NaNs
};

// Scalars first, the longest first. Empty at level order.
std::vector<NumberSeries> ReadNumberSeries(const format::RankReader& reader,
                                           const check::RankSummary& summary,
                                           const SeriesLimits& limits);

}  // namespace deja::cli

#endif  // DEJA_CLI_REPORT_NUMBER_SERIES_H_
