#include "preload/process/child_padding.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/env_vars.h"
#include "common/own_variable_names.h"

namespace deja::preload {
namespace {

constexpr size_t kBits = 14;  // a pad for each bit of the number of bytes to fill

// "DEJA_PAD_a=....": constant texts, since the caller's stack may be a small one.
template <size_t kDots>
constexpr std::array<char, env::kPadStem.size() + 3 + kDots> MakePad(char letter) {
  std::array<char, env::kPadStem.size() + 3 + kDots> text{};
  for (size_t i = 0; i < env::kPadStem.size(); ++i) text[i] = env::kPadStem[i];
  text[env::kPadStem.size()] = letter;
  text[env::kPadStem.size() + 1] = '=';
  for (size_t i = 0; i < kDots; ++i) text[env::kPadStem.size() + 2 + i] = '.';
  return text;
}

template <size_t kBit>
constexpr auto kFull = MakePad<size_t{1} << kBit>(static_cast<char>('a' + kBit));
template <size_t kBit>
constexpr auto kEmpty = MakePad<0>(static_cast<char>('a' + kBit));

struct Pad {
  const char* full;
  const char* empty;
};

template <size_t... kBit>
constexpr std::array<Pad, kBits> MakePads(std::index_sequence<kBit...>) {
  return {{{kFull<kBit>.data(), kEmpty<kBit>.data()}...}};
}
constexpr std::array<Pad, kBits> kPads = MakePads(std::make_index_sequence<kBits>{});

bool IsPad(std::string_view entry) {
  return entry.starts_with(env::kPadStem);
}

// A pad with dots, or of an earlier call.
bool IsUsed(std::string_view entry) {
  return IsPad(entry) && (!entry.ends_with('=') || entry.size() == env::kPadStem.size() + 2);
}

}  // namespace

void PadChildVariables(std::span<char*> entries) {
  // Those that have dots come first, so that none of them is left.
  char** pads[kBits];
  size_t found = 0;
  for (const bool used : {true, false})
    for (char*& entry : entries)
      if (found < kBits && IsPad(entry) && IsUsed(entry) == used) pads[found++] = &entry;
  if (found < kBits) return;
  for (size_t bit = 0; bit < kBits; ++bit) *pads[bit] = const_cast<char*>(kPads[bit].empty);
  size_t bytes = 0;
  for (const char* entry : entries)
    if (IsOwnVariable(entry) || std::string_view(entry).starts_with("LD_PRELOAD="))
      bytes += std::strlen(entry) + 1;
  const size_t left = bytes < kChildVariableBytes ? kChildVariableBytes - bytes : 0;
  for (size_t bit = 0; bit < kBits; ++bit)
    if ((left >> bit & 1) != 0) *pads[bit] = const_cast<char*>(kPads[bit].full);
}

}  // namespace deja::preload
