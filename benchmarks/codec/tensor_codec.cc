// Ratio and speed of the tensor codec and of its peers on the same tensors, one thread.
//
//   bench_tensor_codec FOLDER [ROUNDS]
//
// tensor_codec.py runs it on the tensors that training_data.py writes and prints the table. A line
// for each set and codec: the set, the codec, bytes, encoded bytes, seconds to encode, seconds to
// decode (processor time, best of the rounds; codecs take turns). Every codec gets chunks of at
// most 1 MiB of one tensor, as the recorder cuts them.
#include <blosc.h>
#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "format/tensor/tensor_codec.h"
#include "format/tensor/xor_bytes.h"

namespace deja::format {
namespace {

using Bytes = std::vector<std::byte>;
using Chunk = std::span<const std::byte>;

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// ---- The tensors of a set

struct TensorSet {
  std::string name;
  uint32_t element_size = 0;
  Bytes bytes;
  std::vector<Chunk> tensors;
  std::vector<Chunk> chunks;
};

uint32_t ElementSize(const std::string& name) {
  for (const auto& [dtype, size] : {std::pair{"-int64-", 8u}, {"-fp32", 4u}, {"16-", 2u}})
    if (name.find(dtype) != std::string::npos) return size;
  return 1;
}

Bytes ReadBytes(const std::filesystem::path& file) {
  Bytes bytes(std::filesystem::file_size(file));
  std::ifstream in(file, std::ios::binary);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

TensorSet ReadSet(const std::filesystem::path& file) {
  TensorSet set;
  set.name = file.stem();
  set.element_size = ElementSize(set.name);
  set.bytes = ReadBytes(file);
  std::ifstream sizes(std::filesystem::path(file).replace_extension(".sizes"));
  Chunk rest(set.bytes);
  for (size_t size = 0; sizes >> size;) {
    if (size > rest.size()) Die(set.name + ": the sizes are not those of the file");
    set.tensors.push_back(rest.first(size));
    rest = rest.subspan(size);
    for (Chunk tensor = set.tensors.back(); !tensor.empty();) {
      set.chunks.push_back(tensor.first(std::min(tensor.size(), kPayloadChunkBytes)));
      tensor = tensor.subspan(set.chunks.back().size());
    }
  }
  if (!rest.empty()) Die(set.name + ": the sizes are not those of the file");
  return set;
}

// ---- Codecs: encode a chunk to `out`, which has room for twice of it; decode it

struct Codec {
  std::string name;
  std::function<size_t(Chunk in, uint32_t element_size, std::span<std::byte> out)> encode;
  std::function<void(Chunk in, uint32_t element_size, std::span<std::byte> out)> decode;
  size_t part = 1;  // the slow get the first so-many-th of each chunk, once
};

Codec Copy() {
  const auto copy = [](Chunk in, uint32_t, std::span<std::byte> out) {
    std::memcpy(out.data(), in.data(), in.size());
    return in.size();
  };
  return {"memcpy", copy, copy};
}

// A byte in front says how it is encoded.
Codec Deja(const std::string& name = "deja", CodecEffort effort = CodecEffort::kSmall) {
  auto scratch = std::make_shared<Bytes>();
  return {name,
          [scratch, effort](Chunk in, uint32_t element_size, std::span<std::byte> out) {
            const EncodedTensor encoded = EncodeTensor(in, element_size, *scratch, effort);
            out[0] = static_cast<std::byte>(encoded.codec);
            std::memcpy(out.data() + 1, encoded.bytes.data(), encoded.bytes.size());
            return encoded.bytes.size() + 1;
          },
          [](Chunk in, uint32_t element_size, std::span<std::byte> out) {
            const Status status =
                DecodeTensor(static_cast<TensorCodec>(in[0]), element_size, in.subspan(1), out);
            if (!status) Die(status.error().message);
          }};
}

// Ours, of the difference to the same tensor of the step before: `before` has the bytes of the
// whole set. Chunks come in order.
Codec DejaDelta(std::shared_ptr<Bytes> before) {
  const Codec deja = Deja();
  auto difference = std::make_shared<Bytes>(kPayloadChunkBytes);
  auto encoded = std::make_shared<size_t>(0);
  auto decoded = std::make_shared<size_t>(0);
  // What encoding and decoding has passed of the set.
  const auto next = [before](size_t& passed, size_t size) {
    const std::byte* at = before->data() + passed;
    passed = (passed + size) % before->size();
    return at;
  };
  return {"delta",
          [=](Chunk in, uint32_t element_size, std::span<std::byte> out) {
            XorBytes(in.data(), next(*encoded, in.size()), in.size(), difference->data());
            return deja.encode(std::span(*difference).first(in.size()), element_size, out);
          },
          [=](Chunk in, uint32_t element_size, std::span<std::byte> out) {
            deja.decode(in, element_size, out);
            XorBytes(out.data(), next(*decoded, out.size()), out.size(), out.data());
          }};
}

Codec Zstd(const std::string& name, int level, size_t part = 1) {
  const std::shared_ptr<ZSTD_CCtx> compressor(ZSTD_createCCtx(), ZSTD_freeCCtx);
  const std::shared_ptr<ZSTD_DCtx> decompressor(ZSTD_createDCtx(), ZSTD_freeDCtx);
  return {name,
          [=](Chunk in, uint32_t, std::span<std::byte> out) {
            return ZSTD_compressCCtx(compressor.get(), out.data(), out.size(), in.data(), in.size(),
                                     level);
          },
          [=](Chunk in, uint32_t, std::span<std::byte> out) {
            ZSTD_decompressDCtx(decompressor.get(), out.data(), out.size(), in.data(), in.size());
          },
          part};
}

// Blosc's own choice of blocks is made for the first-level cache and costs it a tenth of its ratio.
Codec Blosc(const std::string& name, int shuffle, const char* compressor, int level) {
  constexpr size_t kBlock = 256 << 10;
  return {name,
          [=](Chunk in, uint32_t element_size, std::span<std::byte> out) {
            const int size = blosc_compress_ctx(level, shuffle, element_size, in.size(), in.data(),
                                                out.data(), out.size(), compressor, kBlock, 1);
            if (size <= 0) Die("blosc: " + std::to_string(size));
            return static_cast<size_t>(size);
          },
          [](Chunk in, uint32_t, std::span<std::byte> out) {
            blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
          }};
}

// ---- What an order-0 coder of byte planes can do

using Counts = std::array<uint64_t, 256>;

double Bits(const Counts& counts) {
  double total = 0;
  double bits = 0;
  for (const uint64_t count : counts) total += static_cast<double>(count);
  for (const uint64_t count : counts)
    if (count != 0)
      bits += static_cast<double>(count) * std::log2(total / static_cast<double>(count));
  return bits;
}

// Bytes that the planes of `run` need with the counts of this run, each element turned left by one
// bit first: sign beside the mantissa, exponent in one byte.
double RunBytes(Chunk run, uint32_t element_size, bool rotate) {
  std::vector<Counts> counts(element_size);
  for (size_t at = 0; at + element_size <= run.size(); at += element_size) {
    uint64_t value = 0;
    std::memcpy(&value, run.data() + at, element_size);
    if (rotate) value = value << 1 | value >> (8 * element_size - 1);
    for (uint32_t plane = 0; plane < element_size; ++plane)
      ++counts[plane][value >> (8 * plane) & 0xff];
  }
  double bits = 0;
  for (const Counts& plane : counts) bits += Bits(plane);
  return bits / 8;
}

// For each tensor the sum over runs of 64 Ki elements, turned or not, whichever is less.
size_t AdaptiveBound(const TensorSet& set) {
  double bytes = 0;
  for (const Chunk tensor : set.tensors) {
    std::array<double, 2> sums{};
    const size_t run = size_t{64 << 10} * set.element_size;
    for (size_t at = 0; at < tensor.size(); at += run)
      for (const bool rotate : {false, true})
        sums[rotate ? 1 : 0] += RunBytes(tensor.subspan(at, std::min(run, tensor.size() - at)),
                                         set.element_size, rotate);
    bytes += std::min(sums[0], sums[1]);
  }
  return static_cast<size_t>(bytes);
}

// ---- Measuring

struct Figures {
  size_t bytes = 0;
  size_t encoded = 0;
  double encode_s = std::numeric_limits<double>::infinity();
  double decode_s = std::numeric_limits<double>::infinity();
};

void Measure(const TensorSet& set, const Codec& codec, Bytes& encoded, Figures& best) {
  constexpr size_t kRoom = 2 * kPayloadChunkBytes;  // for the output of each chunk
  std::vector<Chunk> chunks;
  for (const Chunk chunk : set.chunks) chunks.push_back(chunk.first(chunk.size() / codec.part));
  encoded.resize(std::max(encoded.size(), chunks.size() * kRoom));
  std::vector<size_t> sizes;
  double begin = ThreadSeconds();
  for (size_t i = 0; i < chunks.size(); ++i)
    sizes.push_back(
        codec.encode(chunks[i], set.element_size, std::span(encoded).subspan(i * kRoom, kRoom)));
  best.encode_s = std::min(best.encode_s, ThreadSeconds() - begin);

  best.bytes = best.encoded = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    best.bytes += chunks[i].size();
    best.encoded += sizes[i];
  }
  Bytes out(best.bytes, std::byte{1});  // no first touch while it is measured
  begin = ThreadSeconds();
  std::byte* at = out.data();
  for (size_t i = 0; i < chunks.size(); ++i) {
    codec.decode(Chunk(encoded).subspan(i * kRoom, sizes[i]), set.element_size,
                 {at, chunks[i].size()});
    at += chunks[i].size();
  }
  best.decode_s = std::min(best.decode_s, ThreadSeconds() - begin);
  at = out.data();
  for (const Chunk chunk : chunks) {
    if (std::memcmp(at, chunk.data(), chunk.size()) != 0)
      Die(codec.name + ": " + set.name + " does not come back");
    at += chunk.size();
  }
}

void Report(const TensorSet& set, const std::string& codec, const Figures& figures) {
  std::printf("%s %s %zu %zu %.9f %.9f\n", set.name.c_str(), codec.c_str(), figures.bytes,
              figures.encoded, figures.encode_s, figures.decode_s);
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc < 2) Die("usage: bench_tensor_codec FOLDER [ROUNDS]");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::vector<Codec> all = {
      Copy(),
      Deja(),
      Deja("deja-fast", CodecEffort::kFast),
      Zstd("zstd-1", 1),
      Zstd("zstd-3", 3),
      Zstd("zstd-19", 19, 8),
      Blosc("shuffle+zstd", BLOSC_SHUFFLE, BLOSC_ZSTD_COMPNAME, 1),
      Blosc("bitshuffle+lz4", BLOSC_BITSHUFFLE, BLOSC_LZ4_COMPNAME, 5),
  };
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.path().extension() == ".bin" &&
        entry.path().stem().string().find("_before") == std::string::npos)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Bytes encoded;
  for (const auto& file : files) {
    const TensorSet set = ReadSet(file);
    std::vector<Codec> codecs = all;
    const auto before = file.parent_path() / (set.name + "_before.bin");
    if (std::filesystem::exists(before))
      codecs.push_back(DejaDelta(std::make_shared<Bytes>(ReadBytes(before))));
    std::vector<Figures> figures(codecs.size());
    for (int round = 0; round < rounds; ++round)
      for (size_t i = 0; i < codecs.size(); ++i)
        if (codecs[i].part == 1 || round == 0) Measure(set, codecs[i], encoded, figures[i]);
    for (size_t i = 0; i < codecs.size(); ++i) Report(set, codecs[i].name, figures[i]);
    Report(set, "entropy", {set.bytes.size(), AdaptiveBound(set), 0, 0});
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace deja::format

int main(int argc, char** argv) {
  return deja::format::Main(argc, argv);
}
