#include "common/secrets/secret_forms.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace deja {
namespace {

struct FormSet {
  uint64_t low;  // of the characters below 64
  uint64_t high;
};
// Characters of a set, from `least` to `most` times.
struct FormPiece {
  uint16_t set;
  uint16_t least;
  uint16_t most;
};
struct Form {
  const char* rule;
  uint16_t first_piece;
  uint8_t pieces;
  uint8_t secret_begin;  // pieces that are the secret
  uint8_t secret_end;
  bool word;   // it does not begin within a word
  bool digit;  // the secret has one
};
struct NamedForm {
  const char* name;  // small letters, anywhere in a name
  Form form;
};

#include "common/secrets/secret_forms.inc"

constexpr uint16_t kUnlimited = 0xffff;
// Tries a form may have at one place, so that no text takes long.
constexpr int kMostTries = 2048;

bool IsIn(const FormSet& set, char c) {
  const auto code = static_cast<unsigned char>(c);
  if (code >= 128) return false;
  return ((code < 64 ? set.low >> code : set.high >> (code - 64)) & 1) != 0;
}

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

struct Matcher {
  std::string_view text;
  const Form& form;
  int tries = kMostTries;
  FoundForm found{};

  bool Match(size_t piece, size_t at) {
    if (piece == form.secret_begin) found.begin = at;
    if (piece == form.secret_end) found.end = at;
    if (piece == form.pieces) return true;
    const FormPiece& one = kFormPieces[form.first_piece + piece];
    const FormSet& set = kFormSets[one.set];
    const size_t most = one.most == kUnlimited ? text.size() : one.most;
    size_t count = 0;
    while (count < most && at + count < text.size() && IsIn(set, text[at + count])) ++count;
    // As many as there are first, then fewer: what follows may be of the same characters.
    for (;; --count) {
      if (count < one.least || --tries < 0) return false;
      if (Match(piece + 1, at + count)) return true;
      if (count == 0) return false;
    }
  }
};

// What is longer than the form says is secret as a whole.
size_t EndOfRun(std::string_view text, const Form& form, size_t end) {
  const FormPiece& last = kFormPieces[form.first_piece + form.secret_end - 1];
  while (end < text.size() && IsIn(kFormSets[last.set], text[end]) &&
         (IsWordCharacter(text[end]) || text[end] == '=' || text[end] == '-'))
    ++end;
  return end;
}

FoundForm MatchAt(std::string_view text, size_t at, const Form& form) {
  Matcher matcher{text, form};
  if (!matcher.Match(0, at)) return {};
  FoundForm found = matcher.found;
  const std::string_view secret = text.substr(found.begin, found.end - found.begin);
  if (form.digit &&
      std::none_of(secret.begin(), secret.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {};
  found.end = EndOfRun(text, form, found.end);
  found.rule = form.rule;
  return found;
}

// Most forms begin with one character and then another: two looks tell nearly all apart.
bool MayBeginAt(std::string_view text, size_t at, const Form& form) {
  const FormPiece& first = kFormPieces[form.first_piece];
  if (first.least != 1 || first.most != 1 || form.pieces < 2) return true;
  const FormPiece& second = kFormPieces[form.first_piece + 1];
  if (second.least == 0) return true;
  return at + 1 < text.size() && IsIn(kFormSets[second.set], text[at + 1]);
}

std::span<const uint16_t> Listed(std::span<const uint16_t> list, std::span<const uint16_t> begins,
                                 char first) {
  const auto code = static_cast<unsigned char>(first);
  if (code >= 128) return {};
  return list.subspan(begins[code], begins[code + 1u] - begins[code]);
}

}  // namespace

FoundForm FindSecretForm(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    const bool within_word = at > 0 && IsWordCharacter(text[at - 1]);
    for (const uint16_t index : Listed(kFormsByFirst, kFormsBegin, text[at])) {
      const Form& form = kForms[index];
      if ((form.word && within_word) || !MayBeginAt(text, at, form)) continue;
      const FoundForm found = MatchAt(text, at, form);
      if (!found.rule.empty()) return found;
    }
  }
  return {};
}

std::string_view FindSecretFormOf(std::string_view name, std::string_view value) {
  for (size_t at = 0; at < name.size(); ++at) {
    for (const uint16_t index : Listed(kNamesByFirst, kNamesBegin, Lower(name[at]))) {
      const NamedForm& named = kNamedForms[index];
      const std::string_view wanted = named.name;
      if (name.size() - at < wanted.size() ||
          !std::equal(wanted.begin(), wanted.end(), name.begin() + static_cast<ptrdiff_t>(at),
                      [](char a, char b) { return a == Lower(b); }))
        continue;
      // As long as the form says, and no longer: many forms are N letters and digits of any kind.
      Matcher matcher{value, named.form};
      if (!matcher.Match(0, 0)) continue;
      const size_t end = matcher.found.end;
      if (end == value.size() || !(IsWordCharacter(value[end]) || value[end] == '-'))
        return named.form.rule;
    }
  }
  return {};
}

}  // namespace deja
