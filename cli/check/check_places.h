// CheckPlaces: the places of a program's own code, for `deja check`, by debug information.
//
// Remembers what it has looked up: the ranks of a job run the same code. Borrows the symbolizer,
// which nothing else may use meanwhile. Any thread; one looks up at a time.
#ifndef DEJA_CLI_CHECK_CHECK_PLACES_H_
#define DEJA_CLI_CHECK_CHECK_PLACES_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "check/evidence/place_finder.h"
#include "cli/events/symbolizer.h"

namespace deja::cli {

class CheckPlaces : public check::PlaceFinder {
 public:
  explicit CheckPlaces(Symbolizer& symbolizer) : symbolizer_(symbolizer) {}
  check::Site Find(const std::vector<check::CodeAddress>& stack, bool first_is_pc) override;

 private:
  // Innermost inlined function first; only the program's own.
  const std::vector<check::Place>& PlacesOf(const check::CodeAddress& address, bool is_return);

  std::mutex mutex_;  // guards what follows
  Symbolizer& symbolizer_;
  std::map<std::tuple<std::string, std::string, uint64_t, bool>, std::vector<check::Place>> known_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_CHECK_CHECK_PLACES_H_
