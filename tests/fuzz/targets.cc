#include "tests/fuzz/targets.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "format/log/rank_log.h"
#include "format/pack/bundle_writer.h"
#include "format/payloads/prediction.h"
#include "format/reader/rank_reader.h"
#include "format/tail/raw_event.h"
#include "format/tensor/tensor_codec.h"
#include "format/trace/trace.h"
#include "format/trace/verify.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"
#include "tests/fuzz/more_targets.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// ---- Frames: reading ends, every byte is accounted for once, and nothing is larger than allowed.

void RunFrames(std::span<const std::byte> bytes) {
  const auto file = MakeMemoryFile("fuzz", Copy(bytes));
  FrameReader reader(*file);
  (void)reader.CheckMagic();
  Bytes payload;
  uint64_t at = kMagicBytes;
  for (;;) {
    const FrameResult result = reader.Next(payload);
    Check(result.offset >= at, "frames come in order");
    Check(payload.size() <= kMaxFrameRawBytes, "a payload keeps to the limit");
    if (result.outcome == FrameOutcome::kCleanEnd || result.outcome == FrameOutcome::kTornTail) {
      Check(reader.Next(payload).outcome == result.outcome, "the end stays the end");
      break;
    }
    Check(result.size > 0, "reading goes on");
    at = result.offset + result.size;
    Check(at <= bytes.size(), "a frame lies in the file");
  }
  (void)FindFooter(*file);
}

std::vector<Bytes> FrameSeeds() {
  const samples::SampleRank small = samples::MakeSampleRank({.batches = 1, .events_per_batch = 5});
  return {small.events_file, small.payloads_file};
}

// ---- Messages: what is decoded and encoded again is decoded to the same.

template <typename M>
void RoundTrip(std::span<const std::byte> bytes) {
  M message;
  if (!Decode(bytes, message)) return;
  const std::string encoded = EncodeToString(message);
  Check(encoded.size() == EncodedSize(message), "the size is known in advance");
  M again;
  Check(Decode(AsBytes(encoded), again), "what we write we read");
  // Visit() starts from defaults that are not all zero: compare what is written.
  Check(EncodeToString(again) == encoded || std::is_same_v<M, TraceHeader>, "nothing changes");
}

// What nothing is wrong with can be computed.
void RunPrediction(std::span<const std::byte> bytes) {
  constexpr uint64_t kMost = 4096;
  Prediction prediction;
  if (!Decode(bytes, prediction) || !WhatIsWrong(prediction).empty() || prediction.size > kMost)
    return;
  const auto part = [&](uint64_t at) {
    return std::vector<float>(at == 0 ? 0 : prediction.size / sizeof(float), 0.5F);
  };
  OptimizerState state{part(prediction.parameters), part(prediction.first_moment),
                       part(prediction.second_moment)};
  std::vector<float> numbers;
  for (const uint32_t number : prediction.updates.front().numbers)
    numbers.push_back(std::bit_cast<float>(number));
  std::vector<float> gradient = part(1);
  ApplyUpdate(prediction.rules, numbers, gradient, state);
}

void RunMessages(std::span<const std::byte> bytes) {
  Event event;
  if (DecodeEvent(bytes, event)) {
    std::visit(
        [&](const auto& body) {
          using Body = std::decay_t<decltype(body)>;
          if constexpr (!std::is_same_v<Body, std::monostate>) {
            const std::string encoded = EncodeEventToString(event, body);
            Event again;
            Check(DecodeEvent(AsBytes(encoded), again), "an event that we write we read");
            Check(again.template As<Body>() != nullptr, "a body keeps its kind");
          }
        },
        event.body);
  }
  RoundTrip<TraceHeader>(bytes);
  RoundTrip<PayloadChunk>(bytes);
  RoundTrip<Index>(bytes);
  RoundTrip<Footer>(bytes);
  RoundTrip<Prediction>(bytes);
  RunPrediction(bytes);
}

std::vector<Bytes> MessageSeeds() {
  const samples::SampleRank rank = samples::MakeSampleRank({.batches = 1, .all_kinds = true});
  std::vector<Bytes> seeds;
  for (const std::string& event : rank.events) seeds.push_back(Copy(AsBytes(event)));
  for (const Bytes& bytes : {rank.events_file, rank.payloads_file}) {
    const auto file = MakeMemoryFile("seed", bytes);
    FrameReader reader(*file);
    Bytes payload;
    while (reader.Next(payload).outcome == FrameOutcome::kRecord) seeds.push_back(payload);
  }
  return seeds;
}

// ---- Raw events, as a tail has them: what comes of one is an event, and nothing is written
// outside.

void RunRawEvents(std::span<const std::byte> bytes) {
  constexpr size_t kGuard = 32;
  Bytes out(kMaxEventBytes + kGuard, std::byte{0x5c});
  const size_t size = EncodeRawEvent(bytes, std::span(out).first(kMaxEventBytes));
  Check(size <= kMaxEventBytes, "an event keeps to its size");
  Check(
      std::all_of(out.end() - kGuard, out.end(), [](std::byte b) { return b == std::byte{0x5c}; }),
      "nothing is written behind it");
  Event event;
  if (size != 0) Check(DecodeEvent(std::span(out).first(size), event), "it is one");
  (void)RawCheckOf(bytes.size(), bytes);
}

template <typename Body>
Bytes RawSeed(const Body& body) {
  Bytes record(RawRecordBound(body));
  record.resize(WriteRawRecord(EventHead{3, 70000, 1'000'000'007}, body, 4096, record.data()));
  record.erase(record.begin(), record.begin() + sizeof(RecordHeader));
  return record;
}

std::vector<Bytes> RawEventSeeds() {
  CallEnter enter;
  enter.api = 4;
  enter.comm_seq = 12;
  enter.args = {0x7f0000000000, 0x7f0000001000, 64, 7, 0, 1, 1};
  Tensor tensor;
  tensor.dtype = 7;
  tensor.count = 64;
  tensor.hash = samples::HashOf("a tensor");
  enter.inputs.push_back(tensor);
  enter.blob = "some bytes";
  CallResults results;
  results.outputs.push_back(tensor);
  CallLeave leave;
  leave.result = -1;
  leave.outs = {1, 2};
  Input input;
  input.data = "what was read";
  Note note;
  note.text = "a note";
  return {RawSeed(enter), RawSeed(results), RawSeed(leave), RawSeed(input), RawSeed(note)};
}

// ---- Tensors: the first bytes choose codec, element size and size; nothing is written outside.

void RunTensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 4) return;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(bytes[i]); };
  const auto codec = static_cast<TensorCodec>(byte(0) % 4);
  const uint32_t element_size = 1u << (byte(1) % 4);
  const size_t size = byte(2) | byte(3) << 8;
  constexpr size_t kGuard = 32;
  Bytes out(size + kGuard, std::byte{0x5c});
  (void)DecodeTensor(codec, element_size, bytes.subspan(4), std::span(out).first(size));
  Check(
      std::all_of(out.end() - kGuard, out.end(), [](std::byte b) { return b == std::byte{0x5c}; }),
      "a decoder keeps to its output");
  Bytes scratch;
  const auto in = bytes.subspan(4);
  for (const CodecEffort effort : {CodecEffort::kSmall, CodecEffort::kFast}) {
    const EncodedTensor encoded = EncodeTensor(in, element_size, scratch, effort);
    Bytes back(in.size());
    Check(DecodeTensor(encoded.codec, element_size, encoded.bytes, back).has_value(),
          "what we encode we decode");
    Check(std::equal(in.begin(), in.end(), back.begin(), back.end()), "bytes come back");
  }
}

std::vector<Bytes> TensorSeeds() {
  std::vector<Bytes> seeds;
  const samples::SampleRank rank = samples::MakeSampleRank();
  const std::string& floats = rank.payloads.back().second;
  // Zeros that are left out, and planes that are large enough to be Huffman coded.
  std::string sparse(60'000, '\0');
  for (size_t i = 0; i < sparse.size(); ++i)
    if (i / 8 % 3 == 0) sparse[i] = static_cast<char>(i * i % 23 + 1);
  std::string few(20'000, '\0');
  for (size_t i = 0; i < few.size(); ++i) few[i] = static_cast<char>(i * i % 23 + 1);
  Bytes scratch;
  for (const std::string* bytes : {&floats, &std::as_const(sparse), &std::as_const(few)}) {
    for (const uint32_t which : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
      const uint32_t log = which % 4;
      const CodecEffort effort = which < 4 ? CodecEffort::kSmall : CodecEffort::kFast;
      const EncodedTensor encoded = EncodeTensor(AsBytes(*bytes), 1u << log, scratch, effort);
      Bytes seed = {static_cast<std::byte>(encoded.codec), static_cast<std::byte>(log),
                    static_cast<std::byte>(bytes->size()),
                    static_cast<std::byte>(bytes->size() >> 8)};
      seed.insert(seed.end(), encoded.bytes.begin(), encoded.bytes.end());
      seeds.push_back(seed);
    }
  }
  return seeds;
}

// ---- A rank's folder: both files from one input; all of it is read.

void ReadEverything(const RankReader& reader) {
  const auto cursor = reader.Events();
  while (cursor->Next() != nullptr) {
  }
  for (const PayloadInfo& info : reader.payloads()) {
    uint64_t bytes = 0;
    const Status read = reader.StreamPayload(
        info.hash, [&](std::span<const std::byte> part) { bytes += part.size(); });
    Check(bytes <= info.total_size, "a payload keeps to its size");
    Check(!read || bytes == info.total_size, "a payload that was read is whole");
  }
}

void RunRank(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder folder;
  const size_t middle = bytes.size() / 2;
  // The input brings its own magic or has one put in front: half of the work is behind it.
  const auto with_magic = [](std::span<const std::byte> part) {
    Bytes file = Copy(std::as_bytes(std::span(kMagic)));
    if (part.size() >= kMagicBytes && std::equal(file.begin(), file.end(), part.begin())) {
      return Copy(part);
    }
    file.insert(file.end(), part.begin(), part.end());
    return file;
  };
  samples::WriteFileBytes(folder.path() + "/" + kEventsFile, with_magic(bytes.first(middle)));
  samples::WriteFileBytes(folder.path() + "/" + kPayloadsFile, with_magic(bytes.subspan(middle)));
  // No tail: a path from the input must not make the fuzzer look at files of the machine.
  const auto reader = RankReader::Open(folder.path(), {.use_tail = false});
  if (reader) ReadEverything(**reader);
}

std::vector<Bytes> RankSeeds() {
  std::vector<Bytes> seeds;
  for (const bool finished : {true, false}) {
    samples::SampleRank rank = samples::MakeSampleRank(
        {.batches = 2, .events_per_batch = 5, .finished = finished, .all_kinds = !finished});
    // Both halves as long as the longer file; zeros behind a file are a torn tail.
    const size_t size = std::max(rank.events_file.size(), rank.payloads_file.size());
    rank.events_file.resize(size);
    rank.payloads_file.resize(size);
    Bytes seed = rank.events_file;
    seed.insert(seed.end(), rank.payloads_file.begin(), rank.payloads_file.end());
    seeds.push_back(seed);
  }
  return seeds;
}

// ---- Bundles: nothing appears outside of the temporary folder, and that goes away.

void RunBundle(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder folder;
  static const std::string tmp = folder.path() + "/tmp";
  std::filesystem::create_directories(tmp);
  setenv("TMPDIR", tmp.c_str(), 1);
  const std::string path = folder.path() + "/fuzz.deja.zip";
  samples::WriteFileBytes(path, Copy(bytes));
  {
    const auto trace = Trace::Open(path);
    if (trace) (void)Verify(**trace, {});
  }
  unsetenv("TMPDIR");
  Check(std::filesystem::is_empty(tmp), "a bundle leaves nothing behind");
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    (void)entry;
    ++entries;
  }
  Check(entries == 2, "a bundle writes into its own folder only");
}

std::vector<Bytes> BundleSeeds() {
  const samples::ScratchFolder folder;
  samples::WriteSampleRank(samples::MakeSampleRank({.batches = 1, .events_per_batch = 5}),
                           folder.path() + "/a.deja/rank-00000");
  const std::string zip = folder.path() + "/a.zip";
  Check(WriteBundle(folder.path() + "/a.deja", zip).has_value(), "the seed can be made");
  return {samples::FileBytes(zip)};
}

}  // namespace

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "property violated: %s\n", what);
  std::abort();
}

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {"frames", RunFrames, FrameSeeds},
      {"messages", RunMessages, MessageSeeds},
      {"tensors", RunTensors, TensorSeeds},
      {"rank", RunRank, RankSeeds},
      {"bundle", RunBundle, BundleSeeds},
      {"raw_events", RunRawEvents, RawEventSeeds},
      {"tail", RunTail, TailSeeds, 40 /* 8 MB each */},
      {"recovery", RunRecovery, RankSeeds},
      {"texts", RunTexts, TextSeeds},
      {"secrets", RunSecrets, SecretSeeds},
      {"stand_ins", RunStandIns, StandInSeeds},
      {"report", RunReport, ReportSeeds},
      {"programs", RunPrograms, ProgramSeeds},
      {"parts", RunParts, PartSeeds, 30},
      {"trust", RunTrust, TrustSeeds, 30},
      {"read_rules", RunReadRules, ReadRuleSeeds},
      {"inventory", RunInventory, InventorySeeds, 30},
      {"summary", RunSummary, SummarySeeds},
      {"flight_dump", RunFlightDump, FlightDumpSeeds, 30},
      {"redactor", RunRedactor, RedactorSeeds, 20},
      {"events", RunEvents, EventSeeds, 100},
      {"evidence", RunEvidence, EvidenceSeeds, 30},
      {"difference", RunDifference, DifferenceSeeds, 30},
      {"plan", RunPlan, PlanSeeds, 100},
      {"serve", RunServe, ServeSeeds},
      {"lists", RunLists, ListSeeds, 100},
      {"symbols", RunSymbols, SymbolSeeds, 100},
  };
  return targets;
}

const Target* FindTarget(std::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace deja::format::fuzz
