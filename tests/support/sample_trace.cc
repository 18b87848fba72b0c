#include "tests/support/sample_trace.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "format/payloads/prediction.h"
#include "format/tensor/element_difference.h"
#include "format/tensor/tensor_codec.h"
#include "format/wire/batch_info.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace deja::format::samples {
namespace {

TraceHeader MakeHeader(const SampleOptions& options) {
  TraceHeader header;
  header.format_major = options.format_major;
  header.format_minor = options.format_minor;
  header.producer = "deja sample";
  header.job_id = "0123456789abcdef";
  header.rank = options.rank;
  header.world_size = 4;
  header.local_rank = options.rank;
  header.level = 2;
  header.process.pid = 4000 + options.rank;
  header.process.parent_pid = 3999;
  header.process.hostname = "node-7";
  header.process.executable = "/opt/train/train";
  header.process.executable_build_id = std::string_view("\x01\x02\xff\x00\x10", 5);
  header.process.argv = {"train", "--fault=crash", ""};
  header.process.environment = {"PATH=/usr/bin", "RANK=0"};
  header.process.working_directory = "/opt/train";
  header.process.kernel = "Linux 6.1.0 x86_64";
  header.process.cpu_count = 8;
  header.process.page_size = 4096;
  header.process.nccl_path = "/usr/lib/libnccl.so.2";
  header.process.nccl_version = 22304;
  header.process.masked = {"HF_TOKEN", "argv[2]"};
  header.process.masked_by = {"name", "github-token"};
  header.process.inherited = 1 << 5 | 1 << 9;
  header.names_interpreter_waits = true;
  header.names_python_locks = true;
  header.tail.path = options.tail_path;
  header.tail.id = options.tail_id;
  header.start_wall_ns = 1'700'000'000'000'000'000;
  header.start_mono_ns = 5'000'000'000;
  header.apis = {{1, "ncclAllReduce"}, {2, "ncclGroupEnd"}};
  return header;
}

std::string MakePayload(uint64_t number, size_t floats) {
  // Floats from a generator of our own, so that they are the same with every standard library.
  std::string bytes(4 * (floats + floats / 5 * number), '\0');
  uint32_t state = 12345 + static_cast<uint32_t>(number);
  for (size_t i = 0; i < bytes.size(); i += 4) {
    state = state * 1664525 + 1013904223;
    // One payload is mostly zeros, which the codec leaves out.
    if (number == 2 && i / 4 % 3 != 0) continue;
    const float value = static_cast<float>(static_cast<int32_t>(state) >> 8) * 0x1p-24f;
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  return bytes;
}

class Builder {
 public:
  explicit Builder(const SampleOptions& options)
      : options_(options),
        events_(std::make_unique<MemoryAppendFile>(&rank_.events_file)),
        payloads_(std::make_unique<MemoryAppendFile>(&rank_.payloads_file)) {}

  SampleRank Build() {
    const TraceHeader header = MakeHeader(options_);
    (void)events_.WriteHeader(header);
    if (options_.payloads) (void)payloads_.WriteHeader(header);
    for (int batch = 0; batch < options_.batches; ++batch) Batch(batch);
    if (options_.all_kinds) OtherKinds();
    if (options_.finished) Finish();
    if (!options_.payloads) rank_.payloads_file.clear();
    return std::move(rank_);
  }

 private:
  template <typename Body>
  void Add(uint32_t thread, const Body& body) {
    const EventHead head{thread, seq_[thread]++, 5'000'000'000 + 1000 * ++time_};
    const std::string encoded = EncodeEventToString(head, body);
    AppendToBatch(AsBytes(encoded), batch_);
    Event event;
    uint32_t field = 0;
    (void)DecodeEvent(AsBytes(encoded), event, &field);
    summary_.Add(event, field);
    kinds_.insert(kKindOf<Body>);
    rank_.events.push_back(encoded);
    ++footer_.events;
  }

  // A kind that the sample has no event of: one without contents.
  template <typename Body>
  void AddIfNew() {
    if (!kinds_.contains(kKindOf<Body>)) Add(0, Body{});
  }

  void Batch(int batch) {
    const size_t goal = rank_.events.size() + static_cast<size_t>(options_.events_per_batch);
    if (batch == 0) {
      Add(0, ThreadStart{0, "0", 4000});
      Add(0, CommCreated{1, 0x1122334455667788, options_.rank, 4, 0, "world", -1, 0x55});
    }
    Add(0, Step{static_cast<uint64_t>(100 + batch)});
    if (footer_.steps++ == 0) footer_.first_step = 100;
    footer_.last_step = static_cast<uint64_t>(100 + batch);
    while (rank_.events.size() + 3 <= goal) Collective();
    while (rank_.events.size() < goal) Add(1, Input{3, 0, 16, 0, "entropyentropy!!", {}});
    WriteBatch();
  }

  void WriteBatch() {
    const uint64_t at = events_.Write(FrameType::kEvents, AsBytes(batch_)).value();
    index_.batches.push_back(summary_.Take(at, events_.offset() - at));
    batch_.clear();
  }

  void OtherKinds() {
    Add(0, Note{"a note, \xc3\xa4\xc3\xb6 and \xff"});
    Add(0, ModuleLoaded{1, "/opt/train/train", std::string_view("\x00\x01\x02", 3), 0x555555554000,
                        0x555555560000});
    StackDefined stack;
    stack.stack = 1;
    stack.frames = {{1, 0x1234}, {1, 0x2345}, {0, 0x7fffdeadbeef}};
    Add(0, stack);
    Snapshot snapshot;
    snapshot.name = "weights";
    snapshot.tensor.dtype = 9;
    snapshot.tensor.count = 12;
    snapshot.tensor.hash = HashOf("weights");
    snapshot.tensor.stats = {1, 2, -0.0, 1e-300, 3.25, 1e300};
    snapshot.shape = {3, 4};
    snapshot.stack = 1;
    Add(0, snapshot);
    if (options_.payloads) KeepDifference();
    if (options_.payloads) KeepPredicted();
    OptimizerUpdate update;
    update.optimizer = 3;
    update.dtype = 7;
    update.count = 12;
    update.parameters = 0x7f0000001000;
    update.first_moment = 0x7f0000002000;
    update.second_moment = 0x7f0000003000;
    update.gradient = 0x7f0000004000;
    update.updates = 41;
    update.learning_rate = 1e-3;
    update.beta1 = 0.9;
    update.beta2 = 0.999;
    update.epsilon = 1e-8;
    update.weight_decay = 0.01;
    update.gradient_scale = 0.5;
    update.nesterov = 1;
    Add(0, update);
    Add(0, GarbageCollection{2, true, true, 1500});
    snapshot.name = "rng";
    snapshot.opaque = true;
    Add(1, snapshot);
    snapshot.checkpoint = 1;
    Add(1, snapshot);
    Checkpoint checkpoint;
    checkpoint.number = 1;
    checkpoint.step = 7;
    checkpoint.items = 1;
    checkpoint.bytes = 48;
    checkpoint.threads_made = 2;
    checkpoint.descriptors = {3, 5};
    checkpoint.positions = {4096, uint64_t{1} << 40};
    Add(1, checkpoint);
    Add(1, HandleDefined{1, 1, 0x7f0000002000});
    Child made;
    made.number = 1;
    made.pid = 4711;
    made.program = "/opt/train/worker";
    made.arguments = std::string_view("worker\0--shard\0a cut arg", 24);
    Add(1, made);
    Child ended;
    ended.pid = 4711;
    ended.ended = true;
    ended.exit_code = -1;
    ended.signal = 9;
    Add(1, ended);
    ClockRun run;
    run.sources = {2, 1, 2, 77, 48, 36};
    run.deltas = {5'000'000'123,
                  1'700'000'000'000'000'000,
                  -7,
                  13 * (int64_t{1} << 44) + 4,
                  13 * (int64_t{1} << 44) + 16,
                  5'000'000'456};
    Add(1, run);
    ConnectionOpened opened;
    opened.connection = 1;
    opened.kind = static_cast<uint32_t>(ConnectionKind::kConnected);
    opened.name = "connect unix /run/store #1 of thread 0";
    opened.type = 1;
    opened.remote = std::string_view("\x01\x00/run/store", 12);
    opened.peer = "4711 4000";
    Add(1, opened);
    Transfer transfer;
    transfer.connection = 1;
    transfer.result = 5;
    transfer.data = "bytes";
    transfer.sent_before = 3;
    Add(1, transfer);
    InputFile file;
    file.file = 1;
    file.path = "/data/digits.txt";
    file.mode = 0100644;
    file.size = 120'000;
    Add(1, file);
    InputFile link;
    link.file = 2;
    link.path = "/data/latest";
    link.mode = 0120777;
    link.size = 10;
    link.entries = "digits.txt";
    Add(1, link);
    InputFile module;
    module.file = 3;
    module.path = "/data/train.py";
    module.mode = 0100644;
    module.size = 2'048;
    module.mtime_ns = 1'700'000'000'000'000'000;
    module.program = true;
    Add(1, module);
    InputFile shared;
    shared.file = 4;
    shared.path = "/data/state.txt";
    shared.mode = 0100644;
    shared.size = 40;
    shared.tries = 3;
    shared.looks = 5;
    Add(1, shared);
    TorchOperations();
    FileRead read;
    read.file = 1;
    read.gaps = {4096};
    read.sizes = {8192};
    read.hashes = std::string_view("0123456789abcdef", 16);
    Add(1, read);
    Add(1, AlgorithmChosen{1, 1, 27, "RING", "LL128", 2, 8});
    Add(1, WindowChange{1, 2, 3, "a rank failed", 12, 1 << 20});
    Add(1, AsyncError{1, 6});
    Add(1, AsyncError{1, 0, 13, 2});
    Add(1, Degraded{"the disk is full", 3, 2, 1 << 20});
    Input failed{7, UINT64_MAX, -1, 11, "", HashOf("input")};
    Add(1, failed);
    Crash crash;
    crash.signal = 11;
    crash.code = 1;
    crash.address = 8;
    crash.pc = 0x555555555234;
    crash.frames = stack.frames;
    crash.sender_pid = -1;
    Add(1, crash);
    Add(1, ThreadEnd{});
    ProcessExit exit;
    exit.code = -1;
    exit.how = 2;
    exit.program = "/usr/bin/env";
    exit.arguments = std::string_view("env\0MODE=fast\0true\0", 19);
    Add(0, exit);
#define DEJA_EVENT(Message, number, name, passing) AddIfNew<Message>();
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT
    WriteBatch();
  }

  // An all-reduce of a process group of PyTorch that fails, and a value of a store.
  void TorchOperations() {
    CallEnter enter;
    enter.api = 0x1001;
    enter.comm = 1;
    enter.comm_seq = ++comm_seq_;
    enter.args = {0x7f0000003000, 2, 0x7f0000003000, 2, 7, 0, 1};
    const uint64_t reduce = seq_[0];
    Add(0, enter);
    CallLeave leave;
    leave.enter_seq = reduce;
    Add(0, leave);
    CallEnter work;
    work.api = 0x1015;
    work.args = {1, comm_seq_, static_cast<uint64_t>(-1)};
    work.blob = "builtins.RuntimeError: Connection closed by peer";
    const uint64_t ended = seq_[0];
    Add(0, work);
    leave.enter_seq = ended;
    leave.result = 1;
    Add(0, leave);
    CallEnter get;
    get.api = 0x1017;
    get.blob = "0:default/ranks";
    const uint64_t asked = seq_[0];
    Add(0, get);
    CallLeave answer;
    answer.enter_seq = asked;
    answer.blob = "4";
    Add(0, answer);
  }

  void Collective() {
    Tensor tensor;
    tensor.param = 1;
    tensor.dtype = 7;
    tensor.stats = {0, 1, -0.25, 0.5, 1.5, 2.25};
    tensor.address = 0x7f0000001000;
    const std::string bytes = MakePayload(comm_seq_ % 5, options_.floats);
    tensor.count = bytes.size() / 4;
    tensor.hash = HashOf(bytes);
    tensor.payload = options_.payloads ? 1 : 0;
    if (options_.payloads) Keep(tensor.hash, bytes);
    CallEnter enter;
    enter.api = 1;
    enter.comm = 1;
    enter.comm_seq = ++comm_seq_;
    enter.args = {0x7f0000000000, 0x7f0000001000, tensor.count, 7, 0, 1, 1};
    enter.inputs.push_back(tensor);
    const uint64_t enter_seq = seq_[0];
    Add(0, enter);
    CallResults results;
    results.comm = 1;
    results.comm_seq = comm_seq_;
    results.outputs.push_back(tensor);
    Add(0, results);
    CallLeave leave;
    leave.enter_seq = enter_seq;
    leave.result = comm_seq_ % 7 == 3 ? -1 : 0;
    Add(0, leave);
  }

  void Keep(const Hash128& hash, const std::string& bytes) {
    for (const auto& [known, unused] : rank_.payloads) {
      if (known == hash) return;
    }
    rank_.payloads.emplace_back(hash, bytes);
    PayloadInfo info{hash, bytes.size(), {}};
    std::vector<std::byte> scratch;
    // In two chunks, so that putting them together is tested, too.
    const uint64_t half = bytes.size() / 8 * 4;
    for (const auto& [offset, size] : {std::pair<uint64_t, uint64_t>{0, half},
                                       std::pair<uint64_t, uint64_t>{half, bytes.size() - half}}) {
      // Each as one of the efforts makes it.
      const CodecEffort effort = offset == 0 ? CodecEffort::kSmall : CodecEffort::kFast;
      const EncodedTensor encoded =
          EncodeTensor(AsBytes(std::string_view(bytes).substr(offset, size)), 4, scratch, effort);
      const PayloadChunk chunk{
          hash, bytes.size(),         offset, size, static_cast<uint32_t>(encoded.codec),
          4,    AsText(encoded.bytes)};
      info.chunk_offsets.push_back(
          payloads_.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))).value());
    }
    footer_.payloads += 1;
    footer_.payload_bytes += bytes.size();
    index_.payloads.push_back(info);
  }

  // A payload that differs little from the first one, and builds on it.
  void KeepDifference() {
    const PayloadInfo base = index_.payloads.front();
    std::string bytes = rank_.payloads.front().second;
    for (size_t i = 0; i < bytes.size(); i += 40) bytes[i] = static_cast<char>(bytes[i] ^ 3);
    Snapshot snapshot;
    snapshot.name = "weights, a step later";
    snapshot.tensor.dtype = 7;
    snapshot.tensor.count = bytes.size() / 4;
    snapshot.tensor.hash = HashOf(bytes);
    snapshot.tensor.payload = 1;
    Add(0, snapshot);
    PayloadInfo info{snapshot.tensor.hash, bytes.size(), {}};
    std::vector<std::byte> scratch;
    const uint64_t half = bytes.size() / 8 * 4;
    for (size_t i = 0; i < 2; ++i) {
      const std::string& before = rank_.payloads.front().second;
      const DifferenceKind kind{i == 0 ? TensorCodec::kDifference : TensorCodec::kElementDifference,
                                4};
      std::vector<std::byte> difference(half);
      MakeDifference(kind, AsBytes(bytes).subspan(i * half, half),
                     AsBytes(before).subspan(i * half, half), difference);
      const EncodedTensor encoded = EncodeTensor(difference, 4, scratch);
      const PayloadChunk chunk{info.hash,
                               bytes.size(),
                               i * half,
                               half,
                               static_cast<uint32_t>(kind.codec),
                               4,
                               AsText(encoded.bytes),
                               0,
                               base.chunk_offsets[i]};
      info.chunk_offsets.push_back(
          payloads_.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))).value());
    }
    rank_.payloads.emplace_back(info.hash, bytes);
    footer_.payloads += 1;
    footer_.payload_bytes += bytes.size();
    index_.payloads.push_back(info);
  }

  // A payload whose halves follow from the first one. One is of SGD, one of Adam with fused
  // operations, where a second moment that is negative has no root.
  void KeepPredicted() {
    const PayloadInfo base = index_.payloads.front();
    const std::string& before = rank_.payloads.front().second;
    const uint64_t half = before.size() / 8 * 4;
    std::string bytes;
    PayloadInfo info;
    std::vector<uint64_t> predictions;
    for (size_t i = 0; i < 2; ++i) {
      const Prediction prediction = PredictionOf(base, half, i);
      const auto floats = [&](size_t which) {
        std::vector<float> values(half / sizeof(float));
        std::memcpy(values.data(), before.data() + which * half, half);
        return values;
      };
      OptimizerState state{floats(i), {}, {}};
      if (i == 1) state.first = state.second = state.parameters;
      std::vector<float> numbers;
      for (const uint32_t bits : prediction.updates[0].numbers)
        numbers.push_back(std::bit_cast<float>(bits));
      std::vector<float> gradient = floats(0);
      ApplyUpdate(prediction.rules, numbers, gradient, state);
      bytes.append(reinterpret_cast<const char*>(state.parameters.data()), half);
      predictions.push_back(
          payloads_.Write(FrameType::kPrediction, AsBytes(EncodeToString(prediction))).value());
      // And then something else happened.
      std::string folded(half, '\0');
      for (size_t at = i * 4; at < half; at += 40) folded[at] = 3;
      ApplyDifference({TensorCodec::kElementDifference, 4}, AsBytes(bytes).subspan(i * half),
                      std::as_writable_bytes(std::span(folded)));
      bytes.replace(i * half, half, folded);
    }
    info.hash = HashOf(bytes);
    info.total_size = bytes.size();
    std::vector<std::byte> scratch;
    for (size_t i = 0; i < 2; ++i) {
      std::string folded(half, '\0');
      for (size_t at = i * 4; at < half; at += 40) folded[at] = 3;
      const EncodedTensor encoded = EncodeTensor(AsBytes(folded), 4, scratch);
      PayloadChunk chunk;
      chunk.hash = info.hash;
      chunk.total_size = bytes.size();
      chunk.offset = i * half;
      chunk.size = half;
      chunk.codec = static_cast<uint32_t>(TensorCodec::kPrediction);
      chunk.element_size = 4;
      chunk.data = AsText(encoded.bytes);
      chunk.prediction = predictions[i];
      chunk.state = static_cast<uint32_t>(StatePart::kParameters);
      info.chunk_offsets.push_back(
          payloads_.Write(FrameType::kPayloadChunk, AsBytes(EncodeToString(chunk))).value());
    }
    rank_.payloads.emplace_back(info.hash, bytes);
    footer_.payloads += 1;
    footer_.payload_bytes += bytes.size();
    index_.payloads.push_back(info);
  }
  static Prediction PredictionOf(const PayloadInfo& base, uint64_t half, size_t i) {
    const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
    Prediction prediction;
    prediction.offset = i * half;
    prediction.size = half;
    prediction.rules = i == 0 ? UpdateRules{1, 1, 0, 0, 5} : UpdateRules{2, 0, 4, 2, 6};
    prediction.parameters = base.chunk_offsets[i];
    if (i == 1) prediction.first_moment = prediction.second_moment = base.chunk_offsets[i];
    PredictedUpdate& update = prediction.updates.emplace_back();
    update.numbers = {bits(0.5F), bits(0.01F), bits(0.9F), bits(0.1F), bits(0.03F), bits(0.99F)};
    if (i == 1) {
      for (const float number : {0.999F, 0.001F, 1.0F, 0.7F, 1e-8F})
        update.numbers.push_back(bits(number));
    }
    update.chunks = {base.chunk_offsets[0], base.chunk_offsets[0]};
    update.offsets = {0, half - 8};
    update.sizes = {half - 8, 8};
    return prediction;
  }

  void Finish() {
    if (options_.payloads) (void)payloads_.WriteFooter(footer_);
    (void)events_.WriteIndex(index_, footer_);
    footer_.fate = {true, 0, 0};
    (void)events_.WriteFooter(footer_);
  }

  SampleOptions options_;
  SampleRank rank_;
  FrameWriter events_;
  FrameWriter payloads_;
  std::string batch_;
  BatchSummary summary_;
  Index index_;
  Footer footer_;
  uint64_t seq_[2] = {0, 0};
  uint64_t time_ = 0;
  uint64_t comm_seq_ = 0;
  std::set<EventKind> kinds_;  // of which it has one
};

}  // namespace

Hash128 HashOf(const std::string& bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Hash128 hash;
  std::memcpy(hash.bytes.data(), canonical.digest, hash.bytes.size());
  return hash;
}

SampleRank MakeSampleRank(const SampleOptions& options) {
  return Builder(options).Build();
}

std::vector<std::byte> FileBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::span<const std::byte> bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

void WriteFileBytes(const std::string& path, const std::vector<std::byte>& bytes) {
  // A new file: ext4 writes a file that was cut to nothing and filled again to the disk at once.
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void WriteSampleRank(const SampleRank& rank, const std::string& folder) {
  std::filesystem::create_directories(folder);
  WriteFileBytes(folder + "/" + kEventsFile, rank.events_file);
  if (!rank.payloads_file.empty()) WriteFileBytes(folder + "/" + kPayloadsFile, rank.payloads_file);
}

ScratchFolder::ScratchFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "deja-test-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) std::abort();
  path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace deja::format::samples
