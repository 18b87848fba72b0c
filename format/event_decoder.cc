// DecodeEvent of message_codec.h. Not in the header: it is made for all bodies of events, which
// takes a compiler seconds.
#include "format/message_codec.h"

namespace deja::format {
namespace {

// Puts the alternative of EventBody whose field number is `field` in place and decodes it; the last
// body of an event wins and repeated ones merge, as in protobuf.
template <size_t I = 1>
bool DecodeBody(uint32_t field, std::span<const std::byte> bytes, EventBody& body, size_t& budget,
                bool& known) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    using T = std::variant_alternative_t<I, EventBody>;
    if (static_cast<uint32_t>(kKindOf<T>) != field) {
      return DecodeBody<I + 1>(field, bytes, body, budget, known);
    }
    known = true;
    T* message = std::get_if<T>(&body);
    if (message == nullptr) message = &body.template emplace<T>();
    return internal::DecodeInto(WireReader(bytes), *message, budget);
  } else {
    return true;
  }
}

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
    bool known = false;
    const std::span<const std::byte> bytes = reader.Bytes();
    if (!reader.ok() || !DecodeBody(field, bytes, event.body, budget, known)) {
      return false;
    }
    if (body_field != nullptr) *body_field = field;
  }
  return reader.ok();
}

}  // namespace deja::format
