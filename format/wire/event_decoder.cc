// DecodeEvent of message_codec.h. Not in the header: it is made for all bodies of events, which
// takes a compiler seconds.
#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

// Puts T in place in `body` and decodes it; repeated ones merge, as in protobuf.
template <typename T>
bool DecodeAs(std::span<const std::byte> bytes, EventBody& body, size_t& budget) {
  T* message = std::get_if<T>(&body);
  if (message == nullptr) message = &body.emplace<T>();
  return internal::DecodeInto(WireReader(bytes), *message, budget);
}

using Decoder = bool (*)(std::span<const std::byte> bytes, EventBody& body, size_t& budget);

// By the field number of the body; null where this version knows none.
template <size_t... kIndex>
constexpr auto DecodersOf(std::index_sequence<kIndex...>) {
  constexpr uint32_t kFields =
      std::max(
          {static_cast<uint32_t>(kKindOf<std::variant_alternative_t<kIndex + 1, EventBody>>)...}) +
      1;
  std::array<Decoder, kFields> decoders{};
  ((decoders[static_cast<size_t>(kKindOf<std::variant_alternative_t<kIndex + 1, EventBody>>)] =
        &DecodeAs<std::variant_alternative_t<kIndex + 1, EventBody>>),
   ...);
  return decoders;
}
constexpr auto kDecoders =
    DecodersOf(std::make_index_sequence<std::variant_size_v<EventBody> - 1>());

}  // namespace

bool DecodeEvent(std::span<const std::byte> in, Event& event, uint32_t* body_field) {
  event = Event{};
  if (body_field != nullptr) *body_field = 0;
  size_t budget = kDefaultMaxElements;
  WireReader reader(in);
  uint32_t field = 0;
  WireType type{};
  while (reader.Tag(field, type)) {
    internal::ReadVisitor visitor{reader, field, type, budget};
    Visit(visitor, static_cast<EventHead&>(event));
    if (visitor.found) continue;
    if (type != WireType::kBytes) {
      reader.Skip(type);
      continue;
    }
    const std::span<const std::byte> bytes = reader.Bytes();
    if (!reader.ok()) return false;
    // The last body of an event wins.
    const Decoder decode = field < kDecoders.size() ? kDecoders[field] : nullptr;
    if (decode != nullptr && !decode(bytes, event.body, budget)) return false;
    if (body_field != nullptr) *body_field = field;
  }
  return reader.ok();
}

}  // namespace deja::format
