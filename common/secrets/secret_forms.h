// Forms of tokens of well-known services, by the rules of gitleaks and some of Deja's own.
// tools/make_secret_rules.py makes the table from common/secrets/secret_rules.
//
// Pure functions over the caller's bytes; no allocation, any thread. The time for a text is bounded
// by its length times the longest form.
#ifndef DEJA_COMMON_SECRETS_SECRET_FORMS_H_
#define DEJA_COMMON_SECRETS_SECRET_FORMS_H_

#include <cstddef>
#include <string_view>

namespace deja {

struct FoundForm {
  size_t begin = 0;  // of what is secret, in the text
  size_t end = 0;
  std::string_view rule;  // empty: nothing was found
};

// The first token at or after `from`.
FoundForm FindSecretForm(std::string_view text, size_t from);

// The rule by which `value` is secret since it stands after `name`, which names a service. Empty:
// none.
std::string_view FindSecretFormOf(std::string_view name, std::string_view value);

}  // namespace deja

#endif  // DEJA_COMMON_SECRETS_SECRET_FORMS_H_
