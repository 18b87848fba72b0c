#include "format/huffman_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace deja::format {
namespace {

constexpr size_t kSymbols = 257;  // the bytes, and an escape: eight bits follow
constexpr size_t kEscape = 256;
constexpr unsigned kMaxLength = 11;  // of a code
constexpr size_t kStreams = 4;
constexpr size_t kMaxBytes = 4 << 20;
// First and last byte that has a code, the length of the escape's, then the lengths, then the sizes
// of the first three streams.
constexpr size_t kFixedHeaderBytes = 3;
constexpr size_t kSizeBytes = 4;

using Lengths = std::array<uint8_t, kSymbols>;
using Codes = std::array<uint32_t, kSymbols>;

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

struct Quarters {
  explicit Quarters(size_t bytes) : size((bytes + kStreams - 1) / kStreams), total(bytes) {}
  [[nodiscard]] size_t Begin(size_t stream) const { return std::min(stream * size, total); }
  size_t size;
  size_t total;
};

// ---- Codes

// Canonical: shorter first, then by symbol; the first bit is the lowest. False unless the lengths
// make a complete code.
bool MakeCodes(const Lengths& lengths, Codes& codes) {
  std::array<uint32_t, kMaxLength + 2> next{};
  std::array<uint32_t, kMaxLength + 1> count{};
  for (const uint8_t length : lengths) ++count[length];
  count[0] = 0;
  uint32_t code = 0;
  for (unsigned length = 1; length <= kMaxLength; ++length) {
    code = (code + count[length - 1]) << 1;
    next[length] = code;
  }
  if (code + count[kMaxLength] != 1u << kMaxLength) return false;
  for (size_t symbol = 0; symbol < kSymbols; ++symbol) {
    const unsigned length = lengths[symbol];
    if (length == 0) continue;
    uint32_t reversed = 0;
    for (uint32_t bits = next[length]++, i = 0; i < length; ++i, bits >>= 1)
      reversed = reversed << 1 | (bits & 1);
    codes[symbol] = reversed;
  }
  return true;
}

// Lengths of a Huffman code, none above kMaxLength. At least two counts must not be zero.
void MakeLengths(std::array<uint32_t, kSymbols> counts, Lengths& lengths) {
  std::array<uint16_t, kSymbols> order;
  size_t used = 0;
  for (size_t symbol = 0; symbol < kSymbols; ++symbol)
    if (counts[symbol] != 0) order[used++] = static_cast<uint16_t>(symbol);
  for (;;) {
    std::sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(used),
              [&](uint16_t a, uint16_t b) {
                return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
              });
    // Leaves in order of weight, then inner nodes, which come in order of weight by themselves.
    std::array<uint64_t, 2 * kSymbols> weight;
    std::array<uint16_t, 2 * kSymbols> parent;
    for (size_t i = 0; i < used; ++i) weight[i] = counts[order[i]];
    size_t leaf = 0;
    size_t inner = used;
    for (size_t node = used; node < 2 * used - 1; ++node) {
      weight[node] = 0;
      for (int child = 0; child < 2; ++child) {
        const bool take_leaf = leaf < used && (inner >= node || weight[leaf] <= weight[inner]);
        const size_t taken = take_leaf ? leaf++ : inner++;
        weight[node] += weight[taken];
        parent[taken] = static_cast<uint16_t>(node);
      }
    }
    std::array<uint8_t, 2 * kSymbols> depth;
    depth[2 * used - 2] = 0;
    unsigned longest = 0;
    for (size_t node = 2 * used - 2; node-- > 0;) {
      depth[node] = static_cast<uint8_t>(depth[parent[node]] + 1);
      longest = std::max<unsigned>(longest, depth[node]);
    }
    if (longest <= kMaxLength) {
      lengths.fill(0);
      for (size_t i = 0; i < used; ++i) lengths[order[i]] = depth[i];
      return;
    }
    // Flatter, and again.
    for (size_t i = 0; i < used; ++i) counts[order[i]] = counts[order[i]] / 2 + 1;
  }
}

// ---- Encoding

// Of small planes all bytes are counted, of larger ones an eighth.
std::array<uint32_t, kSymbols> CountSome(std::span<const std::byte> in) {
  constexpr size_t kRun = 64;
  constexpr size_t kAll = 32 << 10;
  const size_t stride = in.size() <= kAll ? kRun : 8 * kRun;
  std::array<std::array<uint32_t, 256>, 4> parts{};
  for (size_t at = 0; at < in.size(); at += stride) {
    const size_t run = std::min(kRun, in.size() - at);
    for (size_t i = 0; i < run; ++i) ++parts[i & 3][static_cast<uint8_t>(in[at + i])];
  }
  std::array<uint32_t, kSymbols> counts{};
  for (size_t symbol = 0; symbol < 256; ++symbol)
    counts[symbol] = parts[0][symbol] + parts[1][symbol] + parts[2][symbol] + parts[3][symbol];
  counts[kEscape] = 1;
  return counts;
}

// Bits of one stream, lowest first. Needs eight bytes of room behind what is written.
struct BitWriter {
  std::byte* at;
  uint64_t bits = 0;
  unsigned count = 0;

  void Add(uint32_t code, unsigned length) {
    bits |= uint64_t{code} << count;
    count += length;
  }
  // Leaves at most 7 bits.
  void Flush() {
    Store(at, bits);
    at += count >> 3;
    bits >>= count & ~7u;
    count &= 7;
  }
  std::byte* Finish() {
    Flush();
    return at + (count != 0 ? 1 : 0);
  }
};

// What each byte becomes: its code, or the escape's and itself.
class ByteCodes {
 public:
  ByteCodes(const Lengths& lengths, const Codes& codes) {
    for (size_t symbol = 0; symbol < 256; ++symbol) {
      const bool known = lengths[symbol] != 0;
      const size_t from = known ? symbol : kEscape;
      uint32_t code = codes[from];
      unsigned length = lengths[from];
      if (!known) {
        code |= static_cast<uint32_t>(symbol) << length;
        length += 8;
      } else {
        seen_[seen_count_++] = static_cast<uint8_t>(symbol);
      }
      codes_[symbol] = code;
      lengths_[symbol] = static_cast<uint8_t>(length);
    }
  }

  // Bytes that have a code.
  [[nodiscard]] std::span<const uint8_t> seen() const { return {seen_.data(), seen_count_}; }
  [[nodiscard]] uint32_t code(uint8_t byte) const { return codes_[byte]; }
  [[nodiscard]] unsigned length(uint8_t byte) const { return lengths_[byte]; }

  void AddOne(BitWriter& out, std::byte byte) const {
    Add(out, byte);
    out.Flush();
  }
  void AddFour(BitWriter& out, const std::byte* in) const {
    Add(out, in[0]);
    Add(out, in[1]);
    out.Flush();  // before there are more than 64 bits
    Add(out, in[2]);
    Add(out, in[3]);
    out.Flush();
  }

 private:
  void Add(BitWriter& out, std::byte byte) const {
    out.Add(codes_[static_cast<uint8_t>(byte)], lengths_[static_cast<uint8_t>(byte)]);
  }

  std::array<uint32_t, 256> codes_;
  std::array<uint8_t, 256> lengths_;
  std::array<uint8_t, 256> seen_;
  size_t seen_count_ = 0;
};

// The same by two bytes at a time, from a table that pays for itself in large planes only.
class PairCodes {
 public:
  PairCodes(const ByteCodes& bytes, std::vector<uint32_t>& pairs) : bytes_(bytes), pairs_(pairs) {
    if (pairs_.empty()) pairs_.resize(1 << 16);
    for (const uint8_t first : bytes_.seen()) {
      for (const uint8_t second : bytes_.seen()) {
        pairs_[first | size_t{second} << 8] =
            bytes_.code(first) | bytes_.code(second) << bytes_.length(first) |
            (bytes_.length(first) + bytes_.length(second)) << kPairShift;
      }
    }
  }
  ~PairCodes() {
    for (const uint8_t first : bytes_.seen())
      for (const uint8_t second : bytes_.seen()) pairs_[first | size_t{second} << 8] = 0;
  }
  PairCodes(const PairCodes&) = delete;
  PairCodes& operator=(const PairCodes&) = delete;

  // An entry costs a miss of the cache to make and one to clear, and there are as many as pairs of
  // bytes that have codes; it saves a part of a nanosecond a byte.
  static bool Pays(const ByteCodes& bytes, size_t size) {
    return size >= 32 * bytes.seen().size() * bytes.seen().size();
  }

  void AddOne(BitWriter& out, std::byte byte) const { bytes_.AddOne(out, byte); }
  void AddFour(BitWriter& out, const std::byte* in) const {
    const auto four = Load<uint32_t>(in);
    const uint32_t low = pairs_[four & 0xffff];
    const uint32_t high = pairs_[four >> 16];
    if (low == 0 || high == 0) [[unlikely]] {
      bytes_.AddFour(out, in);
      return;
    }
    out.Add(low & kPairMask, low >> kPairShift);
    out.Add(high & kPairMask, high >> kPairShift);
    out.Flush();
  }

 private:
  static constexpr unsigned kPairShift = 2 * kMaxLength;
  static constexpr uint32_t kPairMask = (1u << kPairShift) - 1;

  const ByteCodes& bytes_;
  std::vector<uint32_t>& pairs_;
};

// All four streams side by side: their chains of work overlap.
template <typename Encoder>
std::array<std::byte*, kStreams> EncodeStreams(std::span<const std::byte> in,
                                               const Encoder& encoder,
                                               const std::array<std::byte*, kStreams>& begins) {
  const Quarters quarters(in.size());
  std::array<BitWriter, kStreams> out;
  std::array<const std::byte*, kStreams> at;
  std::array<const std::byte*, kStreams> end;
  for (size_t s = 0; s < kStreams; ++s) {
    out[s].at = begins[s];
    at[s] = in.data() + quarters.Begin(s);
    end[s] = in.data() + quarters.Begin(s + 1);
  }
  BitWriter out0 = out[0];
  BitWriter out1 = out[1];
  BitWriter out2 = out[2];
  BitWriter out3 = out[3];
  // The last stream is the shortest.
  const size_t together = static_cast<size_t>(end[3] - at[3]) / 4;
  for (size_t i = 0; i < together; ++i) {
    encoder.AddFour(out0, at[0] + 4 * i);
    encoder.AddFour(out1, at[1] + 4 * i);
    encoder.AddFour(out2, at[2] + 4 * i);
    encoder.AddFour(out3, at[3] + 4 * i);
  }
  out = {out0, out1, out2, out3};
  std::array<std::byte*, kStreams> ends;
  for (size_t s = 0; s < kStreams; ++s) {
    for (const std::byte* rest = at[s] + 4 * together; rest < end[s]; ++rest)
      encoder.AddOne(out[s], *rest);
    ends[s] = out[s].Finish();
  }
  return ends;
}

size_t WriteHeader(const Lengths& lengths, std::byte* out) {
  size_t first = 0;
  size_t last = 255;
  while (lengths[first] == 0) ++first;
  while (lengths[last] == 0) --last;
  out[0] = static_cast<std::byte>(first);
  out[1] = static_cast<std::byte>(last);
  out[2] = static_cast<std::byte>(lengths[kEscape]);
  size_t at = kFixedHeaderBytes;
  for (size_t symbol = first; symbol <= last; symbol += 2) {
    const unsigned high = symbol < last ? lengths[symbol + 1] : 0;
    out[at++] = static_cast<std::byte>(lengths[symbol] | high << 4);
  }
  return at;
}

}  // namespace

size_t HuffmanEncode(std::span<const std::byte> in, std::byte* out, size_t room,
                     HuffmanWorkspace& workspace) {
  constexpr size_t kLargestHeader = kFixedHeaderBytes + 128 + (kStreams - 1) * kSizeBytes;
  if (in.empty() || in.size() > kMaxBytes || room < kLargestHeader) return 0;
  Lengths lengths;
  MakeLengths(CountSome(in), lengths);
  Codes codes;
  if (!MakeCodes(lengths, codes)) return 0;
  // A code has at most kMaxLength bits and 8 more.
  const size_t stride = Quarters(in.size()).size * (kMaxLength + 8) / 8 + 16;
  if (workspace.streams.size() < kStreams * stride) workspace.streams.resize(kStreams * stride);
  std::array<std::byte*, kStreams> begins;
  for (size_t s = 0; s < kStreams; ++s) begins[s] = workspace.streams.data() + s * stride;
  const ByteCodes bytes(lengths, codes);
  const std::array<std::byte*, kStreams> ends =
      PairCodes::Pays(bytes, in.size())
          ? EncodeStreams(in, PairCodes(bytes, workspace.pairs), begins)
          : EncodeStreams(in, bytes, begins);
  size_t used = WriteHeader(lengths, out);
  size_t total = used + (kStreams - 1) * kSizeBytes;
  for (size_t s = 0; s < kStreams; ++s) total += static_cast<size_t>(ends[s] - begins[s]);
  if (total > room) return 0;
  for (size_t s = 0; s + 1 < kStreams; ++s) {
    Store(out + used, static_cast<uint32_t>(ends[s] - begins[s]));
    used += kSizeBytes;
  }
  for (size_t s = 0; s < kStreams; ++s) {
    const auto size = static_cast<size_t>(ends[s] - begins[s]);
    std::memcpy(out + used, begins[s], size);
    used += size;
  }
  return used;
}

// ---- Decoding

namespace {

// What the next kMaxLength bits stand for, in 64 bits: up to six symbols, lowest byte first; from
// bit 48 how many there are, 0 when the first one is escaped; from bit 56 the bits that they take.
constexpr size_t kTableSize = 1 << kMaxLength;
constexpr unsigned kMostSymbols = 6;
constexpr unsigned kCountAt = 48;
constexpr unsigned kBitsAt = 56;

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
    if (count == 0) bits = first.length[at];
    table[at] = symbols | uint64_t{count} << kCountAt | uint64_t{bits} << kBitsAt;
  }
}

struct StreamReader {
  std::span<const std::byte> in;  // of this stream; what follows it may be read
  size_t at = 0;
  std::byte* out;
  std::byte* out_end;
  uint64_t bits = 0;
  unsigned count = 0;

  // To at least 56 bits. Needs eight bytes to read.
  void Refill() {
    bits |= Load<uint64_t>(in.data() + at) << count;
    at += (63 - count) >> 3;
    count |= 56;
  }
  // The same where the stream ends. What comes behind it is never part of a code, unless the stream
  // is damaged; then it has used more than it had.
  void RefillAtEnd() {
    for (; count <= 56; count += 8, ++at) {
      if (at < in.size()) bits |= uint64_t{static_cast<uint8_t>(in[at])} << count;
    }
  }
  void Skip(unsigned length) {
    bits >>= length;
    count -= length;
  }
  void Lookup(const uint64_t* table) {
    const uint64_t entry = table[bits & (kTableSize - 1)];
    Skip(static_cast<unsigned>(entry >> kBitsAt));
    const auto symbols = static_cast<unsigned>(entry >> kCountAt & 7);
    if (symbols == 0) [[unlikely]] {
      Refill();
      *out++ = static_cast<std::byte>(bits & 0xff);
      Skip(8);
      Refill();
      return;
    }
    Store(out, entry);
    out += symbols;
  }
  // Used exactly what it has, but for the bits that fill its last byte.
  [[nodiscard]] bool IsAtEnd() const {
    const size_t used = at * 8 - count;
    return used <= in.size() * 8 && in.size() * 8 - used < 8;
  }
};

// A round is a refill and as many lookups as it is enough for.
constexpr size_t kLookups = 5;
constexpr size_t kRoundBytes = 7 + 2 * 7 * kLookups;  // read at most: all of them escapes
constexpr size_t kRoundSymbols = kLookups * kMostSymbols;
static_assert(kLookups * kMaxLength <= 56);

// How many rounds can neither read behind `readable` nor write behind the stream's output.
size_t SafeRounds(const StreamReader& stream, const std::byte* readable_end) {
  const auto bytes = static_cast<size_t>(readable_end - stream.in.data());
  const auto room = static_cast<size_t>(stream.out_end - stream.out);
  if (bytes < stream.at + kRoundBytes + 8 || room < kRoundSymbols + 8) return 0;
  return std::min((bytes - stream.at - 8) / kRoundBytes, (room - 8) / kRoundSymbols);
}

void DecodeTogether(std::array<StreamReader, kStreams>& streams, const std::byte* readable_end,
                    const uint64_t* table) {
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
      for (size_t i = 0; i < kLookups; ++i) {
        s0.Lookup(table);
        s1.Lookup(table);
        s2.Lookup(table);
        s3.Lookup(table);
      }
    }
    streams = {s0, s1, s2, s3};
  }
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
  DecodeTogether(streams, in.data() + in.size(), workspace.table.data());
  for (StreamReader& stream : streams) {
    DecodeRest(stream, first);
    if (!stream.IsAtEnd()) return Bad("a stream has more or fewer bits than its symbols");
  }
  return {};
}

}  // namespace deja::format
