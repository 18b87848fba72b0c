// LeftOut: what a copy of a trace leaves out on purpose, to be smaller. A frame of its own in
// events.deja, in front of the footer; docs/FORMAT.md, "Bundles".
#ifndef DEJA_FORMAT_LAYOUT_LEFT_OUT_H_
#define DEJA_FORMAT_LAYOUT_LEFT_OUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace deja::format {

struct LeftOut {
  uint64_t payloads = 0;  // distinct, that events refer to and that were there
  uint64_t payload_bytes = 0;
  std::string what;  // for people: "those of steps up to 40"
};

// The message as it is on disk; see format/wire/messages.h.
struct LeftOutMessage {
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  std::string_view what;
};

template <typename V, typename M>
requires std::is_same_v<std::remove_const_t<M>, LeftOutMessage>
constexpr void Visit(V&& v, M& m) {
  v(1, m.payloads);
  v(2, m.payload_bytes);
  v(3, m.what);
}

}  // namespace deja::format

#endif  // DEJA_FORMAT_LAYOUT_LEFT_OUT_H_
