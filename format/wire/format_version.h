// The version of the trace format that this Deja writes; docs/FORMAT.md, "How the format may
// change".
//
// A header of its own, so that raising it does not rebuild whatever knows a message.
#ifndef DEJA_FORMAT_WIRE_FORMAT_VERSION_H_
#define DEJA_FORMAT_WIRE_FORMAT_VERSION_H_

#include <cstdint>

namespace deja::format {

inline constexpr uint32_t kFormatMajor = 1;
inline constexpr uint32_t kFormatMinor = 6;

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_FORMAT_VERSION_H_
