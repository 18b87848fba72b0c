#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "format/planes/huffman_code.h"
#include "format/planes/huffman_codec.h"

namespace deja::format {

namespace {

using namespace huffman;

// The meaning of the next kMaxLength bits, in 64 bits. The lowest byte has the number of bits that
// are taken, the next one the number of symbols; then come up to six symbols. All zeros: the first
// one is escaped.
constexpr size_t kTableSize = 1 << kMaxLength;
constexpr unsigned kMostSymbols = 6;
constexpr unsigned kCountAt = 8;
constexpr unsigned kSymbolsAt = 16;

tl::unexpected<Error> Bad(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("Huffman plane: ") + what);
}

// The first symbol of each entry of the table, and how long its code is.
struct FirstSymbols {
  std::array<uint16_t, kTableSize> symbol;
  std::array<uint8_t, kTableSize> length;
};

void FillFirst(const Lengths& lengths, const Codes& codes, FirstSymbols& first) {
  for (size_t symbol = 0; symbol < kSymbols; ++symbol) {
    const unsigned length = lengths[symbol];
    if (length == 0) continue;
    for (size_t at = codes[symbol]; at < kTableSize; at += size_t{1} << length) {
      first.symbol[at] = static_cast<uint16_t>(symbol);
      first.length[at] = static_cast<uint8_t>(length);
    }
  }
}

void FillTable(const FirstSymbols& first, std::vector<uint64_t>& table) {
  table.resize(kTableSize);
  for (size_t at = 0; at < kTableSize; ++at) {
    uint64_t symbols = 0;
    unsigned count = 0;
    unsigned bits = 0;
    for (size_t rest = at; count < kMostSymbols; ++count) {
      const unsigned length = first.length[rest];
      if (bits + length > kMaxLength || first.symbol[rest] == kEscape) break;
      symbols |= uint64_t{first.symbol[rest]} << (8 * count);
      bits += length;
      rest >>= length;
    }
    table[at] = symbols << kSymbolsAt | uint64_t{count} << kCountAt | bits;
  }
}

struct StreamReader {
  std::span<const std::byte> in;  // of this stream; what follows it may be read
  size_t at = 0;
  std::byte* out;
  std::byte* out_end;
  uint64_t bits = 0;
  uint64_t count = 0;  // of the bits: in the lowest byte, the others mean nothing

  [[nodiscard]] unsigned Count() const { return static_cast<uint8_t>(count); }
  // To at least 56 bits. Needs eight bytes to read.
  [[gnu::always_inline]] void Refill() {
    const unsigned have = Count();
    bits |= Load<uint64_t>(in.data() + at) << have;
    at += (63 - have) >> 3;
    count = have | 56;
  }
  // The same where the stream ends. What comes after it is never part of a code, unless the stream
  // is damaged; then it has used more than it had.
  void RefillAtEnd() {
    unsigned have = Count();
    for (; have <= 56; have += 8, ++at) {
      if (at < in.size()) bits |= uint64_t{static_cast<uint8_t>(in[at])} << have;
    }
    count = have;
  }
  [[gnu::always_inline]] void Skip(unsigned length) {
    bits >>= length;
    count -= length;
  }
  // The entry; nothing happens if the next symbol is escaped.
  [[gnu::always_inline]] uint64_t Lookup(const uint64_t* table) {
    const uint64_t entry = table[bits & (kTableSize - 1)];
    bits >>= entry & 63;
    count -= entry;  // borrows from what means nothing
    Store(out, entry >> kSymbolsAt);
    out += static_cast<uint8_t>(entry >> kCountAt);
    return entry;
  }
  [[gnu::always_inline]] void Escaped(unsigned escape_length) {
    Skip(escape_length);
    Refill();
    *out++ = static_cast<std::byte>(bits & 0xff);
    Skip(8);
  }
  // Used exactly what it has, but for the bits that fill its last byte.
  [[nodiscard]] bool IsAtEnd() const {
    const size_t used = at * 8 - Count();
    return used <= in.size() * 8 && in.size() * 8 - used < 8;
  }
};

// A round is a refill and as many lookups as it is enough for, and a symbol that is escaped.
constexpr size_t kLookups = 5;
constexpr size_t kRoundBytes = 2 * 7;  // read at most
constexpr size_t kRoundSymbols = kLookups * kMostSymbols + 1;
static_assert(kLookups * kMaxLength <= 56);

// How many rounds can neither read after `readable` nor write after the stream's output.
size_t SafeRounds(const StreamReader& stream, const std::byte* readable_end) {
  const auto bytes = static_cast<size_t>(readable_end - stream.in.data());
  const auto room = static_cast<size_t>(stream.out_end - stream.out);
  if (bytes < stream.at + kRoundBytes + 8 || room < kRoundSymbols + 8) return 0;
  return std::min((bytes - stream.at - 8) / kRoundBytes, (room - 8) / kRoundSymbols);
}

[[gnu::always_inline]] inline void DecodeRounds(std::array<StreamReader, kStreams>& streams,
                                                const std::byte* readable_end,
                                                const uint64_t* table, unsigned escape_length) {
  for (;;) {
    size_t rounds = ~size_t{0};
    for (const StreamReader& stream : streams)
      rounds = std::min(rounds, SafeRounds(stream, readable_end));
    if (rounds == 0) return;
    // Copies, so that they can live in registers.
    StreamReader s0 = streams[0];
    StreamReader s1 = streams[1];
    StreamReader s2 = streams[2];
    StreamReader s3 = streams[3];
    for (; rounds != 0; --rounds) {
      s0.Refill();
      s1.Refill();
      s2.Refill();
      s3.Refill();
      for (size_t i = 0; i + 1 < kLookups; ++i) {
        s0.Lookup(table);
        s1.Lookup(table);
        s2.Lookup(table);
        s3.Lookup(table);
      }
      // Once escaped, a stream stays there to the end of the round.
      if (s0.Lookup(table) == 0) [[unlikely]]
        s0.Escaped(escape_length);
      if (s1.Lookup(table) == 0) [[unlikely]]
        s1.Escaped(escape_length);
      if (s2.Lookup(table) == 0) [[unlikely]]
        s2.Escaped(escape_length);
      if (s3.Lookup(table) == 0) [[unlikely]]
        s3.Escaped(escape_length);
    }
    streams = {s0, s1, s2, s3};
  }
}

#if defined(__x86_64__)
// Shifts that leave the flags and the register of counts alone: a third of the time.
__attribute__((target("bmi2"))) void DecodeRoundsBmi2(std::array<StreamReader, kStreams>& streams,
                                                      const std::byte* readable_end,
                                                      const uint64_t* table,
                                                      unsigned escape_length) {
  DecodeRounds(streams, readable_end, table, escape_length);
}
#endif

void DecodeTogether(std::array<StreamReader, kStreams>& streams, const std::byte* readable_end,
                    const uint64_t* table, unsigned escape_length) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("bmi2"))
    return DecodeRoundsBmi2(streams, readable_end, table, escape_length);
#endif
  DecodeRounds(streams, readable_end, table, escape_length);
}

void DecodeRest(StreamReader& stream, const FirstSymbols& first) {
  while (stream.out < stream.out_end) {
    stream.RefillAtEnd();
    const size_t entry = stream.bits & (kTableSize - 1);
    stream.Skip(first.length[entry]);
    unsigned symbol = first.symbol[entry];
    if (symbol == kEscape) {
      symbol = stream.bits & 0xff;
      stream.Skip(8);
    }
    *stream.out++ = static_cast<std::byte>(symbol);
  }
}

// Takes the header off `in`.
Status ReadHeader(std::span<const std::byte>& in, Lengths& lengths) {
  if (in.size() < kFixedHeaderBytes) return Bad("it is too short");
  const auto first = static_cast<size_t>(in[0]);
  const auto last = static_cast<size_t>(in[1]);
  lengths.fill(0);
  lengths[kEscape] = static_cast<uint8_t>(in[2]);
  if (first > last) return Bad("the first symbol comes after the last");
  const size_t bytes = (last - first) / 2 + 1;
  if (in.size() < kFixedHeaderBytes + bytes) return Bad("it is too short");
  for (size_t symbol = first; symbol <= last; ++symbol) {
    const auto both = static_cast<unsigned>(in[kFixedHeaderBytes + (symbol - first) / 2]);
    lengths[symbol] = static_cast<uint8_t>((symbol - first) % 2 == 0 ? both & 15 : both >> 4);
  }
  if (*std::max_element(lengths.begin(), lengths.end()) > kMaxLength) return Bad("a long code");
  in = in.subspan(kFixedHeaderBytes + bytes);
  return {};
}

// Takes the sizes off `in` and cuts it into streams.
Status FindStreams(std::span<const std::byte> in, std::span<std::byte> out,
                   std::array<StreamReader, kStreams>& streams) {
  constexpr size_t kSizes = (kStreams - 1) * kSizeBytes;
  if (in.size() < kSizes) return Bad("it is too short");
  const std::byte* sizes = in.data();
  in = in.subspan(kSizes);
  const Quarters quarters(out.size());
  for (size_t s = 0; s < kStreams; ++s) {
    const size_t size = s + 1 < kStreams ? Load<uint32_t>(sizes + s * kSizeBytes) : in.size();
    if (size > in.size()) return Bad("a stream lies outside");
    streams[s].in = in.first(size);
    streams[s].out = out.data() + quarters.Begin(s);
    streams[s].out_end = out.data() + quarters.Begin(s + 1);
    in = in.subspan(size);
  }
  return {};
}

}  // namespace

Status HuffmanDecode(std::span<const std::byte> in, std::span<std::byte> out,
                     HuffmanWorkspace& workspace) {
  Lengths lengths;
  DEJA_RETURN_IF_ERROR(ReadHeader(in, lengths));
  Codes codes;
  if (!MakeCodes(lengths, codes)) return Bad("not a complete code");
  std::array<StreamReader, kStreams> streams{};
  DEJA_RETURN_IF_ERROR(FindStreams(in, out, streams));
  FirstSymbols first;
  FillFirst(lengths, codes, first);
  FillTable(first, workspace.table);
  DecodeTogether(streams, in.data() + in.size(), workspace.table.data(), lengths[kEscape]);
  for (StreamReader& stream : streams) {
    DecodeRest(stream, first);
    if (!stream.IsAtEnd()) return Bad("a stream has more or fewer bits than its symbols");
  }
  return {};
}

}  // namespace deja::format
