// Names and values that look like tokens, keys and passwords: a recording does not store them, but
// a mask of the same length.
//
// One rule for everything that is recorded as text: environment variables, arguments, and headers
// of requests. The same length, so that what was computed from lengths stays right in a replay.
// docs/DETERMINISM.md has the rule in words; change both. Names: common/secrets/secret_names.h;
// forms of tokens: common/secrets/secret_forms.h.
//
// Pure functions over the caller's bytes; no allocation, any thread. A SecretRule borrows the texts
// of its patterns.
#ifndef DEJA_COMMON_SECRETS_SECRETS_H_
#define DEJA_COMMON_SECRETS_SECRETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace deja {

class SecretRule {
 public:
  SecretRule() = default;
  // Patterns for names, separated by commas, with * and ?, upper and lower case alike. What `keep`
  // matches is never masked by its name, what `mask` matches always is; `keep` wins.
  SecretRule(std::string_view keep, std::string_view mask) : keep_(keep), mask_(mask) {}

  // True if what is called `name` (a variable, an option, a header) is a secret, unless its value
  // is a flag or a plain word.
  [[nodiscard]] bool IsSecretName(std::string_view name) const;
  // True if `name` is to be stored as it is.
  [[nodiscard]] bool IsKept(std::string_view name) const;

  // The following return the rule by which something was masked, the first one if there are
  // several: "name", or what common/secrets/secret_rules calls it. Empty: nothing was masked. The
  // text is static.

  // Masks the value of `name` where it is secret: all of it, or what stands in it (MaskText).
  std::string_view MaskValue(std::string_view name, std::span<char> value) const;

  // Masks secrets within a text: name=value and "name": "value" with a secret name, headers,
  // passwords in URLs, and tokens of a known form.
  std::string_view MaskText(std::span<char> text) const;

  // Masks texts and bytes after a secret name where both have their length in front, as in pickles
  // and MessagePack. The lengths stay.
  std::string_view MaskCounted(std::span<char> bytes) const;

  // Masks one argument of a command line. `previous` is the argument before it, as it was, whose
  // value it may be. An argument of several words may be a command line itself (`sh -c`): the
  // values of options in it are masked, too.
  std::string_view MaskArgument(std::string_view previous, std::span<char> argument) const;

 private:
  [[nodiscard]] std::string_view RuleOf(std::string_view name, std::string_view value) const;
  std::string_view MaskPairs(std::span<char> text) const;
  std::string_view MaskOneArgument(std::string_view previous, std::span<char> argument) const;
  std::string_view MaskOptionsIn(std::span<char> text) const;

  std::string_view keep_;
  std::string_view mask_;
};

// Masks the values of secret headers (Authorization, Cookie, X-Api-Key …) in the bytes of one
// direction of a connection, however they are cut into pieces. Only the heads of HTTP/1 messages
// are looked at; bodies, and what is not HTTP, pass unchanged.
//
// One per connection and direction; whoever owns it serialises the calls.
class HeaderMasker {
 public:
  explicit HeaderMasker(const SecretRule& rule) : rule_(&rule) {}
  // In place. Returns whether anything was masked.
  bool Mask(std::span<char> bytes);
  // A message may begin here, though what came before (a body) did not end with its line.
  void BeginMessage() {
    if (in_head_) return;
    size_ = 0;
    secret_ = false;
    state_ = State::kStart;
  }
  // What has been seen so far ends within a head.
  [[nodiscard]] bool in_head() const { return in_head_; }

 private:
  enum class State : uint8_t { kStart, kName, kValue };
  static constexpr size_t kMaxLine = 64;

  void EndLine();

  const SecretRule* rule_;
  State state_ = State::kStart;
  bool secret_ = false;
  bool in_head_ = false;
  size_t size_ = 0;           // of line_
  char line_[kMaxLine] = {};  // the beginning of the line
};

// Writes the mask over `value`.
void WriteMask(std::span<char> value);

}  // namespace deja

#endif  // DEJA_COMMON_SECRETS_SECRETS_H_
