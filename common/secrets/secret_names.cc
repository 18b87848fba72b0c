#include "common/secrets/secret_names.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace deja {
namespace {

constexpr size_t kFewCharacters = 6;
constexpr size_t kManyCharacters = 16;
constexpr size_t kLongWord = 20;

char Capital(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
bool IsCapital(char c) {
  return c >= 'A' && c <= 'Z';
}
bool IsNumeral(char c) {
  return c >= '0' && c <= '9';
}
bool IsWordPart(char c) {
  return IsCapital(Capital(c)) || IsNumeral(c);
}

bool EqualsCapitals(std::string_view text, std::string_view capitals) {
  return text.size() == capitals.size() &&
         std::equal(text.begin(), text.end(), capitals.begin(),
                    [](char a, char b) { return Capital(a) == b; });
}

template <size_t N>
bool OneOf(std::string_view word, const std::string_view (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list),
                     [word](std::string_view item) { return EqualsCapitals(word, item); });
}

bool EndsWith(std::string_view word, std::string_view capitals) {
  return word.size() >= capitals.size() &&
         EqualsCapitals(word.substr(word.size() - capitals.size()), capitals);
}

template <size_t N>
bool EndsWithOneOf(std::string_view word, const std::string_view (&list)[N]) {
  return std::any_of(std::begin(list), std::end(list),
                     [word](std::string_view item) { return EndsWith(word, item); });
}

// The words of a name: cut at what is no letter or digit, and where a capital follows a small one.
struct NameWords {
  static constexpr size_t kMost = 16;
  std::string_view word[kMost];
  size_t count = 0;

  explicit NameWords(std::string_view name) {
    for (size_t at = 0; at < name.size() && count < kMost;) {
      if (!IsWordPart(name[at])) {
        ++at;
        continue;
      }
      size_t end = at + 1;
      while (end < name.size() && IsWordPart(name[end]) &&
             !(IsCapital(name[end]) && !IsCapital(name[end - 1])))
        ++end;
      word[count++] = name.substr(at, end - at);
      at = end;
    }
  }
  [[nodiscard]] std::string_view last() const { return word[count - 1]; }
  [[nodiscard]] std::string_view before_last() const {
    return count > 1 ? word[count - 2] : std::string_view();
  }
};

// A word that is one of these, or ends so, wherever it stands in a name.
constexpr std::string_view kSecretWords[] = {
    "PASSWORD",  "PASSWORDS", "PASSWD",      "PASSPHRASE",    "PASSCODE", "SECRET",
    "SECRETS",   "CREDS",     "CREDENTIAL",  "CREDENTIALS",   "APIKEY",   "ACCESSKEY",
    "SECRETKEY", "AUTHTOKEN", "ACCESSTOKEN", "AUTHORIZATION", "AUTHKEY",  "COOKIE",
    "COOKIES",   "JWT",       "PRIVATEKEY",  "WEBHOOK",       "MNEMONIC",
};
// A name that ends so says where or how, and not what.
constexpr std::string_view kHarmlessEndings[] = {
    "FILE",    "FILES", "PATH",     "DIR",       "SOCK",   "SOCKET",  "HOME",     "NAME",
    "TYPE",    "SIZE",  "LENGTH",   "COUNT",     "HELPER", "STORE",   "PROVIDER", "POLICY",
    "TIMEOUT", "TTL",   "MODE",     "ENABLED",   "EXPIRY", "EXPIRES", "DISABLED", "LIMIT",
    "DIM",     "IDS",   "DROPOUT",  "INDEX",     "LEN",    "RATE",    "RATIO",    "EMBEDDING",
    "BUDGET",  "EMBED", "ACCESSES", "TOKENIZER",
};
// What a model's tokenizer calls a token.
constexpr std::string_view kModelTokens[] = {
    "PAD",   "BOS", "EOS",  "UNK",   "MASK",  "SEP",     "CLS",    "IMAGE", "SPECIAL", "STOP",
    "MAX",   "MIN", "NUM",  "PER",   "NEW",   "NEXT",    "LAST",   "FIRST", "PREFIX",  "SUFFIX",
    "START", "END", "TEXT", "AUDIO", "VIDEO", "CONTROL", "SAMPLE", "BY",    "SUB",     "MULTI",
};
// A key is a secret as one of these, whatever its value.
constexpr std::string_view kSecretKeys[] = {
    "API",     "ACCESS",       "SECRET", "PRIVATE", "ACCOUNT", "ENCRYPTION", "MASTER",
    "SIGNING", "AUTH",         "DEPLOY", "SSH",     "GPG",     "LICENSE",    "SERVICE",
    "STORAGE", "SUBSCRIPTION", "WANDB",  "OPENAI",  "APP",     "CLIENT",     "KAGGLE",
};
// And none as one of these.
constexpr std::string_view kOrdinaryKeys[] = {
    "PUBLIC", "PRIMARY", "FOREIGN", "SORT",  "CACHE", "PARTITION",   "GROUP",    "MASK",
    "INDEX",  "LOOKUP",  "ATTN",    "QUERY", "CROSS", "DICT",        "STATE",    "METRIC",
    "BATCH",  "INPUT",   "OUTPUT",  "LABEL", "TEXT",  "IMAGE",       "FEATURE",  "DATA",
    "COLUMN", "MONITOR", "LOSS",    "NUM",   "HOT",   "SHORT",       "REGISTRY", "RNG",
    "RANDOM", "SOCKET",  "MAP",     "PAIR",  "BY",    "IDEMPOTENCY", "ROUTING",  "TARGET",
};
constexpr std::string_view kWordsInKey[] = {"MONKEY", "TURKEY", "DONKEY", "PKEY",   "HOTKEY",
                                            "SUBKEY", "HOCKEY", "JOCKEY", "WHISKEY"};
// A pass is a password, but not one of these.
constexpr std::string_view kWordsInPass[] = {
    "BYPASS",  "COMPASS", "ENCOMPASS", "SURPASS",  "TRESPASS", "OVERPASS",  "UNDERPASS",
    "ASKPASS", "LOWPASS", "HIGHPASS",  "BANDPASS", "ALLPASS",  "MULTIPASS", "SINGLEPASS",
};
constexpr std::string_view kOrdinaryPasses[] = {
    "FORWARD", "BACKWARD", "FIRST", "SECOND", "SINGLE", "MULTI", "ONE",          "TWO",
    "DOUBLE",  "PER",      "NUM",   "BAND",   "LOW",    "HIGH",  "ALL",          "GRAPH",
    "FUSION",  "COMPILER", "OPT",   "POST",   "PRE",    "BY",    "OPTIMIZATION", "ENABLE",
};
constexpr std::string_view kBehindAuth[] = {"CONFIG", "JSON",   "HEADER", "HEADERS",
                                            "STRING", "BASE64", "DATA",   "VALUE"};
constexpr std::string_view kAuthMethods[] = {
    "BASIC", "DIGEST", "BEARER",   "NTLM",  "NEGOTIATE", "LDAP",     "OAUTH", "OAUTH2",
    "OIDC",  "SAML",   "KERBEROS", "TOKEN", "SPNEGO",    "REQUIRED", "MUNGE", "AUTO",
};
constexpr std::string_view kUserWords[] = {"USER", "USERNAME", "LOGIN", "USERPWD", "USERPASS", "U"};

bool HasSecretPass(const NameWords& words) {
  const std::string_view last = words.last();
  if (EqualsCapitals(last, "PASS")) return !OneOf(words.before_last(), kOrdinaryPasses);
  return EndsWith(last, "PASS") && !OneOf(last, kWordsInPass);
}

bool HasSecretPwd(const NameWords& words) {
  const std::string_view last = words.last();
  if (EqualsCapitals(last, "PW")) return true;
  if (EqualsCapitals(last, "PWD"))
    return words.count > 1 && !EqualsCapitals(words.before_last(), "OLD");
  return EndsWith(last, "PWD") && !EqualsCapitals(last, "OLDPWD");
}

NameSays WhatTokenSays(const NameWords& words) {
  const std::string_view last = words.last();
  if (EqualsCapitals(last, "TOKEN"))
    return OneOf(words.before_last(), kModelTokens) ? NameSays::kNothing : NameSays::kSecret;
  constexpr size_t kToken = 5;
  if (EndsWith(last, "TOKEN"))
    return OneOf(last.substr(0, last.size() - kToken), kModelTokens) ? NameSays::kNothing
                                                                     : NameSays::kSecret;
  for (size_t i = 0; i + 1 < words.count; ++i) {
    if (!EqualsCapitals(words.word[i], "TOKEN")) continue;
    const bool of_model = i > 0 && OneOf(words.word[i - 1], kModelTokens);
    return of_model ? NameSays::kNothing : NameSays::kIfRandom;
  }
  return NameSays::kNothing;
}

NameSays WhatKeySays(const NameWords& words) {
  const std::string_view last = words.last();
  if (!EqualsCapitals(last, "KEY"))
    return EndsWith(last, "KEY") && !OneOf(last, kWordsInKey) ? NameSays::kIfRandom
                                                              : NameSays::kNothing;
  if (words.count == 1) return NameSays::kIfRandom;
  if (OneOf(words.before_last(), kSecretKeys)) return NameSays::kSecret;
  return OneOf(words.before_last(), kOrdinaryKeys) ? NameSays::kNothing : NameSays::kIfKeyLike;
}

bool HasAuth(const NameWords& words) {
  if (EqualsCapitals(words.last(), "AUTH")) return true;
  return words.count > 1 && EqualsCapitals(words.before_last(), "AUTH") &&
         OneOf(words.last(), kBehindAuth);
}

// What a value consists of.
struct Looks {
  bool plain = true;  // of characters that tokens have
  size_t digits = 0;
  size_t small = 0;
  size_t capitals = 0;

  explicit Looks(std::string_view value) {
    for (const char c : value) {
      if (IsNumeral(c))
        ++digits;
      else if (IsCapital(c))
        ++capitals;
      else if (IsCapital(Capital(c)))
        ++small;
      else if (std::string_view("+/_=~.-:").find(c) == std::string_view::npos)
        plain = false;
    }
  }
  [[nodiscard]] size_t letters() const { return small + capitals; }
};

bool IsShortNumber(std::string_view value) {
  constexpr size_t kMostDigits = 3;
  return value.size() <= kMostDigits && std::all_of(value.begin(), value.end(), IsNumeral);
}

// A key, and no word, number or path.
bool LooksLikeKey(std::string_view value) {
  const Looks looks(value);
  if (!looks.plain || value.size() < kFewCharacters || value[0] == '/' || value[0] == '.')
    return false;
  if (looks.digits > 0 && looks.letters() > 0) return true;
  return (looks.capitals > 1 && looks.small > 0) || looks.letters() >= kLongWord;
}

bool LooksDrawn(std::string_view value) {
  const Looks looks(value);
  return value.size() >= kManyCharacters && LooksLikeKey(value) && looks.digits > 1;
}

}  // namespace

bool IsFlagValue(std::string_view value) {
  constexpr std::string_view kFlags[] = {"0",  "1",  "TRUE", "FALSE", "YES",
                                         "NO", "ON", "OFF",  "NONE",  "NULL"};
  return value.empty() || OneOf(value, kFlags);
}

bool IsUserName(std::string_view name) {
  const NameWords words(name);
  return words.count > 0 && OneOf(words.last(), kUserWords);
}

NameSays WhatNameSays(std::string_view name) {
  const NameWords words(name);
  if (words.count == 0) return NameSays::kNothing;
  if (OneOf(words.last(), kHarmlessEndings)) return NameSays::kNothing;
  for (size_t i = 0; i < words.count; ++i)
    if (EndsWithOneOf(words.word[i], kSecretWords)) return NameSays::kSecret;
  const bool is_pat = words.count > 1 && EqualsCapitals(words.last(), "PAT");
  if (is_pat || HasSecretPass(words) || HasSecretPwd(words) || HasAuth(words))
    return NameSays::kSecret;
  const std::string_view last = words.last();
  if (EqualsCapitals(last, "SIGNATURE") || EqualsCapitals(last, "SIG")) return NameSays::kIfRandom;
  return std::max(WhatTokenSays(words), WhatKeySays(words));
}

bool IsSecretByName(std::string_view name, std::string_view value) {
  if (IsFlagValue(value)) return false;
  switch (WhatNameSays(name)) {
    case NameSays::kNothing:
      return false;
    case NameSays::kIfRandom:
      return LooksDrawn(value);
    case NameSays::kIfKeyLike:
      return LooksLikeKey(value);
    case NameSays::kSecret:
      break;
  }
  const NameWords words(name);
  const std::string_view last = words.last();
  // Where they are, and not what they are.
  if (EndsWith(last, "CREDENTIALS") || EndsWith(last, "CREDS")) {
    const bool is_path = value[0] == '/' || value.substr(0, 2) == "~/";
    return !is_path || value.find(':') != std::string_view::npos;
  }
  if (EqualsCapitals(last, "AUTH") && OneOf(value, kAuthMethods)) return false;
  if (EqualsCapitals(last, "PAT") && value.find_first_of("*?/") != std::string_view::npos)
    return false;
  const bool counts = EndsWith(last, "PASS") || EqualsCapitals(last, "AUTH") ||
                      EqualsCapitals(last, "PAT") || EqualsCapitals(last, "PW");
  return !(counts && IsShortNumber(value));
}

}  // namespace deja
