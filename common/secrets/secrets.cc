#include "common/secrets/secrets.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/secrets/counted_texts.h"
#include "common/secrets/secret_forms.h"
#include "common/secrets/secret_names.h"

namespace deja {
namespace {

constexpr std::string_view kMask = "deja-masked";

char Upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsLetter(char c) {
  return IsUpper(Upper(c));
}
bool IsWordChar(char c) {
  return IsLetter(c) || IsDigit(c);
}
bool IsNameChar(char c) {
  return IsWordChar(c) || c == '_' || c == '-' || c == '.';
}
bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// With * for any characters and ? for one.
bool MatchesPattern(std::string_view name, std::string_view pattern) {
  size_t n = 0;
  size_t p = 0;
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || Upper(pattern[p]) == Upper(name[n]))) {
      ++n;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool NameMatchesAny(std::string_view name, std::string_view patterns) {
  while (!patterns.empty()) {
    const size_t end = std::min(patterns.find(','), patterns.size());
    const std::string_view one = patterns.substr(0, end);
    if (!one.empty() && MatchesPattern(name, one)) return true;
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
  }
  return false;
}

bool IsPlainName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsNameChar);
}

std::string_view MaskForms(std::span<char> text) {
  const std::string_view all(text.data(), text.size());
  std::string_view rule;
  for (FoundForm found = FindSecretForm(all, 0); !found.rule.empty();
       found = FindSecretForm(all, found.end)) {
    if (rule.empty()) rule = found.rule;
    WriteMask(text.subspan(found.begin, found.end - found.begin));
  }
  return rule;
}

// A user that is no name, without a password: https://TOKEN@host.
bool IsTokenAsUser(std::string_view user) {
  constexpr size_t kLong = 16;
  return user.size() >= kLong && std::any_of(user.begin(), user.end(), IsDigit);
}

// scheme://user:PASSWORD@host, and a user alone that is a token.
std::string_view MaskUrlPasswords(std::span<char> text) {
  std::string_view rule;
  const std::string_view all(text.data(), text.size());
  for (size_t at = all.find("://"); at != std::string_view::npos; at = all.find("://", at + 3)) {
    const size_t begin = at + 3;
    size_t end = begin;
    while (end < all.size() && !IsSpace(all[end]) && all[end] != '/' && all[end] != '"' &&
           all[end] != '\'' && all[end] != '?')
      ++end;
    const size_t host = all.substr(begin, end - begin).rfind('@');
    if (host == std::string_view::npos) continue;
    const size_t colon = all.substr(begin, host).find(':');
    if (colon == std::string_view::npos) {
      if (!IsTokenAsUser(all.substr(begin, host))) continue;
      WriteMask(text.subspan(begin, host));
    } else if (colon + 1 < host) {
      WriteMask(text.subspan(begin + colon + 1, host - colon - 1));
    } else {
      continue;
    }
    rule = "password-in-url";
  }
  return rule;
}

std::string_view MaskPrivateKeys(std::span<char> text) {
  const std::string_view all(text.data(), text.size());
  std::string_view rule;
  for (size_t at = all.find("PRIVATE KEY-----"); at != std::string_view::npos;
       at = all.find("PRIVATE KEY-----", at)) {
    const size_t begin = at + std::strlen("PRIVATE KEY-----");
    const size_t end = std::min(all.find("-----END", begin), all.size());
    for (size_t i = begin; i < end; ++i)
      if (!IsSpace(text[i])) text[i] = '*';
    if (end > begin) rule = "private-key";
    at = std::min(all.size(), end + std::strlen("-----END RSA PRIVATE KEY-----"));
  }
  return rule;
}

// Where the password of USER:PASSWORD begins; 0: there is none. A port is no password.
size_t PasswordBehindUser(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 >= text.size() || text.find("//") == colon + 1)
    return 0;
  const std::string_view rest = text.substr(colon + 1);
  if (!IsPlainName(text.substr(0, colon)) || std::all_of(rest.begin(), rest.end(), IsDigit))
    return 0;
  return colon + 1;
}

// For a text without a name: only what mixes capitals, small letters and digits.
size_t PasswordOfLogin(std::string_view text) {
  constexpr size_t kShortest = 8;
  const size_t begin = PasswordBehindUser(text);
  if (begin == 0) return 0;
  const std::string_view rest = text.substr(begin);
  const bool mixed =
      std::any_of(rest.begin(), rest.end(), IsUpper) &&
      std::any_of(rest.begin(), rest.end(), IsDigit) &&
      std::any_of(rest.begin(), rest.end(), [](char c) { return IsLetter(c) && !IsUpper(c); });
  const bool one_word = rest.find_first_of("/. \t\n,:=") == std::string_view::npos;
  return rest.size() >= kShortest && mixed && one_word ? begin : 0;
}

// After -p: what is no number, path or plain word (ports, folders, partitions).
bool IsPasswordOption(std::string_view option, std::string_view value) {
  constexpr size_t kShortest = 4;
  if (option != "-p" || value.size() < kShortest) return false;
  if (value.find('/') != std::string_view::npos || value[0] == '.') return false;
  const bool number = std::all_of(value.begin(), value.end(),
                                  [](char c) { return IsDigit(c) || c == ':' || c == '.'; });
  const bool word = std::all_of(value.begin(), value.end(), [](char c) {
    return (IsLetter(c) && !IsUpper(c)) || c == '_' || c == '-' || c == ',';
  });
  return !number && !word;
}

}  // namespace

void WriteMask(std::span<char> value) {
  const size_t words = value.size() < kMask.size() ? 0 : kMask.size();
  std::copy_n(kMask.begin(), words, value.begin());
  std::fill(value.begin() + static_cast<std::ptrdiff_t>(words), value.end(), '*');
}

bool SecretRule::IsKept(std::string_view name) const {
  return NameMatchesAny(name, keep_);
}

bool SecretRule::IsSecretName(std::string_view name) const {
  if (IsKept(name)) return false;
  return NameMatchesAny(name, mask_) || WhatNameSays(name) >= NameSays::kIfKeyLike;
}

// By which rule the value of `name` is a secret as a whole; empty: by none.
std::string_view SecretRule::RuleOf(std::string_view name, std::string_view value) const {
  if (value.empty() || IsKept(name)) return {};
  if (NameMatchesAny(name, mask_)) return "--mask";
  if (IsSecretByName(name, value)) return "name";
  return FindSecretFormOf(name, value);
}

std::string_view SecretRule::MaskValue(std::string_view name, std::span<char> value) const {
  if (IsKept(name)) return {};
  const std::string_view text(value.data(), value.size());
  if (const std::string_view rule = RuleOf(name, text); !rule.empty()) {
    WriteMask(value);
    return rule;
  }
  const size_t password = IsUserName(name) ? PasswordBehindUser(text) : PasswordOfLogin(text);
  if (password != 0) {
    WriteMask(value.subspan(password));
    return "user-password";
  }
  return MaskText(value);
}

// name=value, name: value, "name": "value".
std::string_view SecretRule::MaskPairs(std::span<char> text) const {
  std::string_view found;
  for (size_t at = 0; at < text.size();) {
    if (!IsNameChar(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && IsNameChar(text[at])) ++at;
    const std::string_view name(text.data() + begin, at - begin);
    size_t value = at;
    if (value < text.size() && (text[value] == '"' || text[value] == '\'')) ++value;
    while (value < text.size() && text[value] == ' ') ++value;
    if (value >= text.size() || (text[value] != '=' && text[value] != ':')) continue;
    const bool header = text[value] == ':';
    ++value;
    while (value < text.size() && text[value] == ' ') ++value;
    const char quote = value < text.size() ? text[value] : '\0';
    const bool quoted = quote == '"' || quote == '\'';
    if (quoted) ++value;
    size_t end = value;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (quoted ? c == quote : c == '\n' || c == '\r' || c == '"' || c == '\'') break;
      // A header goes to the end of its line, with a scheme and the secret.
      if (!quoted && !header && (IsSpace(c) || c == '&' || c == ';' || c == ',')) break;
    }
    const std::string_view what(text.data() + value, end - value);
    std::string_view rule = RuleOf(name, what);
    size_t from = 0;
    if (rule.empty() && !IsKept(name) && IsUserName(name)) {
      from = PasswordBehindUser(what);
      if (from != 0) rule = "user-password";
    }
    if (rule.empty()) continue;
    WriteMask(text.subspan(value + from, end - value - from));
    if (found.empty()) found = rule;
    at = end;
  }
  return found;
}

std::string_view SecretRule::MaskText(std::span<char> text) const {
  const std::string_view rules[] = {MaskPrivateKeys(text), MaskUrlPasswords(text), MaskPairs(text),
                                    MaskForms(text)};
  for (const std::string_view rule : rules)
    if (!rule.empty()) return rule;
  return {};
}

std::string_view SecretRule::MaskCounted(std::span<char> bytes) const {
  const std::string_view all(bytes.data(), bytes.size());
  std::string_view found;
  for (size_t at = 0;;) {
    const CountedPair pair = FindCountedPair(all, at);
    if (pair.name.empty()) return found;
    const std::string_view rule = RuleOf(pair.name, all.substr(pair.begin, pair.end - pair.begin));
    // What is no secret may be the name of one.
    at = static_cast<size_t>(pair.name.data() - all.data()) + pair.name.size();
    if (rule.empty()) continue;
    WriteMask(bytes.subspan(pair.begin, pair.end - pair.begin));
    at = pair.end;
    if (found.empty()) found = rule;
  }
}

std::string_view SecretRule::MaskArgument(std::string_view previous,
                                          std::span<char> argument) const {
  const std::string_view rule = MaskOneArgument(previous, argument);
  const std::string_view within = MaskOptionsIn(argument);
  return rule.empty() ? within : rule;
}

// Words end at blanks and quotes. One alone was looked at as an argument.
std::string_view SecretRule::MaskOptionsIn(std::span<char> text) const {
  const std::string_view all(text.data(), text.size());
  constexpr std::string_view kBetween = " \t\n\r\"'";
  std::string_view found;
  std::string_view previous;
  for (size_t begin = all.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    const size_t end = std::min(all.find_first_of(kBetween, begin), all.size());
    const std::string_view word = all.substr(begin, end - begin);
    if (previous.size() > 1 && previous[0] == '-') {
      const std::string_view rule = MaskOneArgument(previous, text.subspan(begin, word.size()));
      if (found.empty()) found = rule;
    }
    previous = word;
    begin = all.find_first_not_of(kBetween, end);
  }
  return found;
}

std::string_view SecretRule::MaskOneArgument(std::string_view previous,
                                             std::span<char> argument) const {
  const std::string_view text(argument.data(), argument.size());
  const size_t named = previous.find_first_not_of('-');
  const bool is_option = previous.size() > 1 && previous[0] == '-' &&
                         named != std::string_view::npos &&
                         previous.find('=') == std::string_view::npos;
  if (is_option && !text.empty() && text[0] != '-') {
    const std::string_view name = previous.substr(named);
    if (IsKept(name)) return {};
    if (IsPasswordOption(previous, text)) {
      WriteMask(argument);
      return "option-p";
    }
    return MaskValue(name, argument);
  }
  if (const size_t password = PasswordOfLogin(text); password != 0) {
    WriteMask(argument.subspan(password));
    return "user-password";
  }
  return MaskText(argument);
}

// ---- headers on a connection

// The head of a message begins with a line that ends or begins with the protocol's name.
void HeaderMasker::EndLine() {
  const std::string_view line(line_, size_);
  if (in_head_) {
    if (line.empty()) in_head_ = false;
  } else {
    constexpr std::string_view kMethods[] = {"GET",    "POST",    "PUT",   "HEAD",
                                             "DELETE", "OPTIONS", "PATCH", "CONNECT"};
    const std::string_view first = line.substr(0, line.find(' '));
    in_head_ = line.substr(0, 7) == "HTTP/1." ||
               (first.size() < line.size() &&
                std::find(std::begin(kMethods), std::end(kMethods), first) != std::end(kMethods));
  }
  size_ = 0;
  secret_ = false;
  state_ = in_head_ ? State::kName : State::kStart;
}

bool HeaderMasker::Mask(std::span<char> bytes) {
  bool masked = false;
  for (char& c : bytes) {
    if (c == '\n') {
      EndLine();
      continue;
    }
    if (c == '\r') continue;
    if (state_ == State::kValue) {
      if (!secret_ || c == ' ') continue;
      c = '*';
      masked = true;
      continue;
    }
    if (state_ == State::kName && c == ':') {
      secret_ = rule_->IsSecretName({line_, size_});
      state_ = State::kValue;
      continue;
    }
    if (size_ < kMaxLine) line_[size_++] = c;
  }
  return masked;
}

}  // namespace deja
