// ReceivedHeads: the heads of HTTP/1 messages in what a connection receives. The values of their
// secret headers are not stored (common/secrets/secrets.h has the rule).
//
// Bodies have no rule of their own for where they end. Bytes that follow something that was sent
// are an answer, or the next request. Bytes that begin with the protocol's name are a head. So a
// body whose last line has no end does not hide the next head.
//
// One per connection, whose owner serialises the calls; borrows the rule. No allocation.
#ifndef DEJA_RECORDER_SOCKETS_RECEIVED_HEADS_H_
#define DEJA_RECORDER_SOCKETS_RECEIVED_HEADS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "common/secrets/secrets.h"

namespace deja::recorder {

class ReceivedHeads {
 public:
  explicit ReceivedHeads(const SecretRule& rule) : masker_(rule) {}
  // One receipt, in place; `sent`: how many bytes the connection had sent before. Returns whether
  // anything was masked.
  bool Mask(std::span<char> bytes, uint64_t sent);
  // What has been seen so far ends within a head.
  [[nodiscard]] bool in_head() const { return masker_.in_head(); }
  // A receipt that may be of a head, even if none is open. Those of few bytes are looked at in any
  // case: a head may be read byte by byte.
  static bool MayBegin(std::string_view bytes);

 private:
  HeaderMasker masker_;
  uint64_t sent_ = 0;  // bytes, when something was received last
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_SOCKETS_RECEIVED_HEADS_H_
