#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "format/planes/huffman_bits.h"
#include "format/planes/huffman_code.h"
#include "format/planes/huffman_codec.h"
#include "format/planes/huffman_wide.h"

namespace deja::format {

namespace {

using namespace huffman;

constexpr size_t kCountRun = 64;

// The first kCountRun of every `stride` bytes.
std::array<uint32_t, kSymbols> CountRuns(std::span<const std::byte> in, size_t stride) {
  std::array<std::array<uint32_t, 256>, 4> parts{};
  for (size_t at = 0; at < in.size(); at += stride) {
    const size_t run = std::min(kCountRun, in.size() - at);
    for (size_t i = 0; i < run; ++i) ++parts[i & 3][static_cast<uint8_t>(in[at + i])];
  }
  std::array<uint32_t, kSymbols> counts{};
  for (size_t symbol = 0; symbol < 256; ++symbol)
    counts[symbol] = parts[0][symbol] + parts[1][symbol] + parts[2][symbol] + parts[3][symbol];
  counts[kEscape] = 1;
  return counts;
}

// All bytes of small planes are counted, and an eighth of larger ones. If that shows too many
// different symbols to tell their frequencies, all are counted.
std::array<uint32_t, kSymbols> CountSome(std::span<const std::byte> in) {
  constexpr size_t kAll = 32 << 10;
  constexpr size_t kLarge = 256 << 10;
  constexpr ptrdiff_t kManySymbols = 96;
  if (in.size() <= kAll) return CountRuns(in, kCountRun);
  const std::array<uint32_t, kSymbols> counts =
      CountRuns(in, (in.size() < kLarge ? 8 : 16) * kCountRun);
  const auto seen = std::count_if(counts.begin(), counts.end(), [](uint32_t n) { return n != 0; });
  return seen < kManySymbols ? counts : CountRuns(in, kCountRun);
}

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

  // An entry costs a miss of the cache to make and one to clear. There are as many as pairs of
  // bytes that have codes; each saves a part of a nanosecond a byte.
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

// A code has at most kMaxLength bits and 8 more; streams are written in words.
size_t LargestStream(size_t bytes) {
  return bytes * (kMaxLength + 8) / 8 + 16;
}

// The streams by the portable encoder, to `out`, and their sizes to `sizes`. Bytes written; 0 if
// they do not fit.
size_t EncodeTogether(std::span<const std::byte> in, const ByteCodes& bytes,
                      std::span<std::byte> out, std::byte* sizes, HuffmanWorkspace& workspace) {
  const size_t stride = LargestStream(Quarters(in.size()).size);
  if (workspace.streams.size() < kStreams * stride) workspace.streams.resize(kStreams * stride);
  std::array<std::byte*, kStreams> begins;
  for (size_t s = 0; s < kStreams; ++s) begins[s] = workspace.streams.data() + s * stride;
  const std::array<std::byte*, kStreams> ends =
      PairCodes::Pays(bytes, in.size())
          ? EncodeStreams(in, PairCodes(bytes, workspace.pairs), begins)
          : EncodeStreams(in, bytes, begins);
  size_t used = 0;
  for (size_t s = 0; s < kStreams; ++s) {
    const auto size = static_cast<size_t>(ends[s] - begins[s]);
    if (size > out.size() - used) return 0;
    std::memcpy(out.data() + used, begins[s], size);
    if (s + 1 < kStreams) Store(sizes + s * kSizeBytes, static_cast<uint32_t>(size));
    used += size;
  }
  return used;
}

// The same by the wide encoder, which needs no second stream to be busy; in place where a stream
// cannot be too large for what is left of `out`.
size_t EncodeOneByOne(std::span<const std::byte> in, const ByteCodes& bytes, CodeWindow window,
                      std::span<std::byte> out, std::byte* sizes, HuffmanWorkspace& workspace) {
  const Quarters quarters(in.size());
  const size_t largest = LargestStream(quarters.size);
  size_t used = 0;
  for (size_t s = 0; s < kStreams; ++s) {
    const size_t begin = quarters.Begin(s);
    const bool in_place = out.size() - used >= largest;
    if (!in_place && workspace.streams.size() < largest) workspace.streams.resize(largest);
    std::byte* to = in_place ? out.data() + used : workspace.streams.data();
    const std::byte* end =
        EncodeWide(in.subspan(begin, quarters.Begin(s + 1) - begin), bytes, window, to);
    const auto size = static_cast<size_t>(end - to);
    if (size > out.size() - used) return 0;
    if (!in_place) std::memcpy(out.data() + used, to, size);
    if (s + 1 < kStreams) Store(sizes + s * kSizeBytes, static_cast<uint32_t>(size));
    used += size;
  }
  return used;
}

}  // namespace

size_t HuffmanEncode(std::span<const std::byte> in, std::byte* out, size_t room,
                     HuffmanWorkspace& workspace) {
  constexpr size_t kLargestHeader = kFixedHeaderBytes + 128 + (kStreams - 1) * kSizeBytes;
  if (in.empty() || in.size() > kMaxBytes || room < kLargestHeader) return 0;
  const std::array<uint32_t, kSymbols> counts = CountSome(in);
  Lengths lengths;
  MakeLengths(counts, lengths);
  Codes codes;
  if (!MakeCodes(lengths, codes)) return 0;
  const ByteCodes bytes(lengths, codes);
  const size_t used = WriteHeader(lengths, out);
  const size_t sizes = (kStreams - 1) * kSizeBytes;
  const std::span<std::byte> streams(out + used + sizes, room - used - sizes);
  const size_t written =
      HasWideEncoder()
          ? EncodeOneByOne(in, bytes, CodeWindow::For(counts), streams, out + used, workspace)
          : EncodeTogether(in, bytes, streams, out + used, workspace);
  return written == 0 ? 0 : used + sizes + written;
}

}  // namespace deja::format
