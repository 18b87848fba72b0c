// Imported traces: made of what another recorder has written. They hold operations and their times;
// no tensors, no inputs and no program. The header's producer says it. Any thread.
#ifndef DEJA_FORMAT_READER_IMPORTED_H_
#define DEJA_FORMAT_READER_IMPORTED_H_

#include <string_view>

namespace deja::format {

// Ends TraceHeader.producer, after the name and version of the program that has imported.
inline constexpr std::string_view kImportedSuffix = ", import";

// True of a header whose producer is `producer`.
constexpr bool IsImported(std::string_view producer) {
  return producer.ends_with(kImportedSuffix);
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_IMPORTED_H_
