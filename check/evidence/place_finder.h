// PlaceFinder: what gives code addresses the names of the program's source.
//
// The command line has the one that reads debug information; tests have their own. Called by one
// thread at a time.
#ifndef DEJA_CHECK_EVIDENCE_PLACE_FINDER_H_
#define DEJA_CHECK_EVIDENCE_PLACE_FINDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/evidence/summary.h"

namespace deja::check {

struct CodeAddress {
  std::string module;    // path, or "python:FUNCTION:FILE"
  std::string build_id;  // raw bytes; empty: unknown
  uint64_t offset = 0;
};

class PlaceFinder {
 public:
  virtual ~PlaceFinder() = default;
  // The frames of the program's own code, innermost first, at most kMostPlaces. `first_is_pc`: a
  // signal handler took the stack.
  virtual Site Find(const std::vector<CodeAddress>& stack, bool first_is_pc) = 0;

  static constexpr size_t kMostPlaces = 4;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_PLACE_FINDER_H_
