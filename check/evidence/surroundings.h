// What a rank ran on, as far as it may change what the rank does: executable, shared libraries,
// versions, environment, processor.
//
// Pure functions over headers and events.
#ifndef DEJA_CHECK_EVIDENCE_SURROUNDINGS_H_
#define DEJA_CHECK_EVIDENCE_SURROUNDINGS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/wire/messages.h"

namespace deja::check {

using Surroundings = std::vector<std::pair<std::string, std::string>>;

void AddLibrary(std::string_view path, std::string_view build_id, Surroundings& surroundings);
// What the header says; sorts all.
void AddSurroundings(const format::TraceHeader& header, Surroundings& surroundings);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SURROUNDINGS_H_
