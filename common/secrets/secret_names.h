// What a name says of its value: whether a variable, an option or a header with it is a secret.
//
// Pure functions over the caller's bytes; no allocation, any thread.
#ifndef DEJA_COMMON_SECRETS_SECRET_NAMES_H_
#define DEJA_COMMON_SECRETS_SECRET_NAMES_H_

#include <cstdint>
#include <string_view>

namespace deja {

enum class NameSays : uint8_t {
  kNothing,
  kIfRandom,   // a secret if it is long and looks drawn: HF_TOKEN_OLD, signature, key
  kIfKeyLike,  // a secret unless it is a word or a number: COMET_KEY
  kSecret,     // whatever it is, but for flags: DB_PASSWORD
};

// Judges a name of a variable, option or key by its words.
NameSays WhatNameSays(std::string_view name);

// True if `value` after `name` is a secret by the name.
bool IsSecretByName(std::string_view name, std::string_view value);

// `name` is a user who logs in, so a value USER:PASSWORD has a password.
bool IsUserName(std::string_view name);

// "0", "true", "none", nothing: a switch, whatever it is called.
bool IsFlagValue(std::string_view value);

}  // namespace deja

#endif  // DEJA_COMMON_SECRETS_SECRET_NAMES_H_
