#include "common/secrets.h"

#include <algorithm>
#include <cstring>
#include <iterator>

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
bool IsTokenChar(char c) {
  return IsWordChar(c) || c == '_' || c == '-';
}
bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool EqualsUpper(std::string_view text, std::string_view upper) {
  return text.size() == upper.size() && std::equal(text.begin(), text.end(), upper.begin(),
                                                   [](char a, char b) { return Upper(a) == b; });
}

template <size_t N>
bool OneOf(std::string_view word, const std::string_view (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list),
                     [word](std::string_view item) { return EqualsUpper(word, item); });
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

// The words of a name: cut at what is no letter or digit, and where a capital follows a small one.
struct Words {
  static constexpr size_t kMost = 16;
  std::string_view word[kMost];
  size_t count = 0;

  explicit Words(std::string_view name) {
    for (size_t at = 0; at < name.size() && count < kMost;) {
      if (!IsWordChar(name[at])) {
        ++at;
        continue;
      }
      size_t end = at + 1;
      while (end < name.size() && IsWordChar(name[end]) &&
             !(IsUpper(name[end]) && !IsUpper(name[end - 1])))
        ++end;
      word[count++] = name.substr(at, end - at);
      at = end;
    }
  }
};

// Wherever they stand in a name.
constexpr std::string_view kSecretWords[] = {
    "PASSWORD",  "PASSWORDS", "PASSWD",        "PASSPHRASE",  "PASSCODE",
    "SECRET",    "SECRETS",   "CREDENTIAL",    "CREDENTIALS", "APIKEY",
    "COOKIE",    "COOKIES",   "AUTHORIZATION", "AUTHTOKEN",   "ACCESSTOKEN",
    "ACCESSKEY", "SECRETKEY", "PRIVATEKEY",    "JWT",
};
// A name that ends so says where or how, and not what.
constexpr std::string_view kHarmlessEndings[] = {
    "FILE",    "FILES", "PATH",   "DIR",     "SOCK",     "SOCKET", "HOME",     "NAME",
    "TYPE",    "SIZE",  "LENGTH", "COUNT",   "HELPER",   "STORE",  "PROVIDER", "POLICY",
    "TIMEOUT", "TTL",   "MODE",   "ENABLED", "DISABLED", "EXPIRY", "EXPIRES",
};
// What a model's tokenizer calls a token.
constexpr std::string_view kModelTokens[] = {
    "PAD",   "BOS", "EOS",  "UNK",   "MASK",  "SEP",     "CLS",    "IMAGE", "SPECIAL", "STOP",
    "MAX",   "MIN", "NUM",  "PER",   "NEW",   "NEXT",    "LAST",   "FIRST", "PREFIX",  "SUFFIX",
    "START", "END", "TEXT", "AUDIO", "VIDEO", "CONTROL", "SAMPLE", "BY",
};
// A key is a secret only as one of these.
constexpr std::string_view kSecretKeys[] = {
    "API",     "ACCESS",       "SECRET", "PRIVATE", "ACCOUNT", "ENCRYPTION", "MASTER",
    "SIGNING", "AUTH",         "DEPLOY", "SSH",     "GPG",     "LICENSE",    "SERVICE",
    "STORAGE", "SUBSCRIPTION", "WANDB",  "OPENAI",  "APP",     "CLIENT",
};

// Tokens that are known by how they begin: that many characters of a token must follow.
struct KnownToken {
  std::string_view prefix;
  size_t rest;
};
constexpr KnownToken kKnownTokens[] = {
    {"ghp_", 20},        {"gho_", 20},   {"ghu_", 20},  {"ghs_", 20},  {"ghr_", 20},
    {"github_pat_", 20}, {"glpat-", 16}, {"hf_", 20},   {"sk-", 20},   {"xoxb-", 10},
    {"xoxp-", 10},       {"xoxa-", 10},  {"xoxr-", 10}, {"xoxs-", 10}, {"AKIA", 16},
    {"ASIA", 16},        {"AIza", 30},   {"npm_", 30},  {"pypi-", 30}, {"nvapi-", 30},
    {"dckr_pat_", 20},
};

bool IsHarmlessValue(std::string_view value) {
  constexpr std::string_view kFlags[] = {"0",  "1",  "TRUE", "FALSE", "YES",
                                         "NO", "ON", "OFF",  "NONE",  "NULL"};
  return value.empty() || OneOf(value, kFlags);
}

bool MaskKnownTokens(std::span<char> text) {
  bool masked = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && IsTokenChar(text[at - 1])) continue;
    const std::string_view rest(text.data() + at, text.size() - at);
    size_t run = 0;
    while (run < rest.size() && IsTokenChar(rest[run])) ++run;
    for (const KnownToken& known : kKnownTokens) {
      if (rest.substr(0, known.prefix.size()) != known.prefix ||
          run < known.prefix.size() + known.rest)
        continue;
      WriteMask(text.subspan(at, run));
      masked = true;
      break;
    }
    // A JSON web token: three parts, the first of which is an encoded {".
    if (rest.substr(0, 3) == "eyJ" && run >= 10 && run < rest.size() && rest[run] == '.') {
      size_t dots = 0;
      size_t end = 0;
      for (; end < rest.size() && (IsTokenChar(rest[end]) || rest[end] == '.'); ++end)
        dots += rest[end] == '.' ? 1 : 0;
      if (dots == 2) {
        WriteMask(text.subspan(at, end));
        masked = true;
      }
    }
    at += run;
  }
  return masked;
}

// scheme://user:PASSWORD@host, and a user alone, which is a token then.
bool MaskUrlPasswords(std::span<char> text) {
  bool masked = false;
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
    if (colon == std::string_view::npos || colon + 1 >= host) continue;
    WriteMask(text.subspan(begin + colon + 1, host - colon - 1));
    masked = true;
  }
  return masked;
}

bool MaskPrivateKeys(std::span<char> text) {
  const std::string_view all(text.data(), text.size());
  bool masked = false;
  for (size_t at = all.find("PRIVATE KEY-----"); at != std::string_view::npos;
       at = all.find("PRIVATE KEY-----", at)) {
    const size_t begin = at + std::strlen("PRIVATE KEY-----");
    const size_t end = std::min(all.find("-----END", begin), all.size());
    for (size_t i = begin; i < end; ++i)
      if (!IsSpace(text[i])) text[i] = '*';
    masked = masked || end > begin;
    at = std::min(all.size(), end + std::strlen("-----END RSA PRIVATE KEY-----"));
  }
  return masked;
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
  if (NameMatchesAny(name, mask_)) return true;
  const Words words(name);
  if (words.count == 0) return false;
  const std::string_view last = words.word[words.count - 1];
  if (OneOf(last, kHarmlessEndings)) return false;
  for (size_t i = 0; i < words.count; ++i)
    if (OneOf(words.word[i], kSecretWords)) return true;
  const bool alone = words.count == 1;
  const std::string_view before = alone ? std::string_view() : words.word[words.count - 2];
  if (EqualsUpper(last, "TOKEN")) return alone || !OneOf(before, kModelTokens);
  if (EqualsUpper(last, "KEY")) return !alone && OneOf(before, kSecretKeys);
  if (EqualsUpper(last, "PASS") || EqualsUpper(last, "PWD"))
    return !alone && !OneOf(before, kModelTokens);
  return EqualsUpper(last, "AUTH") && !alone;
}

// A name alone is not enough where a flag or nothing stands behind it.
bool SecretRule::IsSecretValue(std::string_view name, std::string_view value) const {
  if (value.empty() || !IsSecretName(name)) return false;
  return NameMatchesAny(name, mask_) || !IsHarmlessValue(value);
}

bool SecretRule::MaskValue(std::string_view name, std::span<char> value) const {
  if (IsKept(name)) return false;
  if (IsSecretValue(name, {value.data(), value.size()})) {
    WriteMask(value);
    return true;
  }
  return MaskText(value);
}

// name=value, name: value, "name": "value".
bool SecretRule::MaskPairs(std::span<char> text) const {
  bool masked = false;
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
    if (!IsSecretValue(name, {text.data() + value, end - value})) continue;
    WriteMask(text.subspan(value, end - value));
    masked = true;
    at = end;
  }
  return masked;
}

bool SecretRule::MaskText(std::span<char> text) const {
  const bool keys = MaskPrivateKeys(text);
  const bool urls = MaskUrlPasswords(text);
  const bool pairs = MaskPairs(text);
  return MaskKnownTokens(text) || keys || urls || pairs;
}

bool SecretRule::MaskArgument(std::string_view previous, std::span<char> argument) const {
  const std::string_view text(argument.data(), argument.size());
  if (previous.size() > 1 && previous[0] == '-' && previous.find('=') == std::string_view::npos &&
      !text.empty() && text[0] != '-') {
    const std::string_view name =
        previous.substr(previous.find_first_not_of('-') == std::string_view::npos
                            ? 0
                            : previous.find_first_not_of('-'));
    if (IsKept(name)) return false;
    if (IsSecretValue(name, text)) {
      WriteMask(argument);
      return true;
    }
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
