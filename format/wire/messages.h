// The messages of format/proto/trace.proto as plain structs.
//
// Strings and bytes are views. An encoder borrows what the caller owns; a decoder points into its
// buffer, which must outlive the message. The structs of the hot path (CallEnter, CallLeave,
// CallResults, Input) allocate nothing. Every struct lists its fields once, in Visit();
// message_codec.h derives the encoder and the decoder from that, so the two cannot disagree. Field
// types map to the wire as uint32/uint64/bool: varint; int32/int64: zigzag varint (sint); double:
// fixed64; string_view, Hash128: bytes (an all-zero Hash128 is left out); sequences of integers:
// packed; structs: embedded messages. As in proto3 a field that is zero or empty is not written. An
// embedded struct is written if its `present` is true, or if it has no such member and is not
// empty.
//
// One file for all of them, as the schema is: structs and field lists are compared with it side by
// side.
#ifndef DEJA_FORMAT_WIRE_MESSAGES_H_
#define DEJA_FORMAT_WIRE_MESSAGES_H_

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/inline_vec.h"

namespace deja::format {

inline constexpr size_t kMaxCallArgs = 16;
inline constexpr size_t kMaxCallTensors = 2;
inline constexpr size_t kMaxTensorDims = 8;
inline constexpr size_t kMaxStackFrames = 64;
inline constexpr size_t kMaxClockRun = 64;
inline constexpr size_t kMaxCheckpointFiles = 64;

// Tensor.dtype of bytes without a type.
inline constexpr uint32_t kRawBytes = 255;

// kAborted: the operation was given up while it was under way, so there are no results.
enum class PayloadState : uint32_t { kNotKept = 0, kKept = 1, kDropped = 2, kAborted = 3 };

struct ApiName {
  uint32_t id = 0;
  std::string_view name;
};

struct ProcessInfo {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  std::string_view hostname;
  std::string_view executable;
  std::string_view executable_build_id;
  std::vector<std::string_view> argv;
  std::vector<std::string_view> environment;
  std::string_view working_directory;
  std::string_view kernel;
  uint32_t cpu_count = 0;
  uint64_t page_size = 0;
  std::string_view nccl_path;
  uint32_t nccl_version = 0;
  std::vector<std::string_view> masked;
  std::string_view cpu_model;
  std::string_view cpu_features;
  uint64_t memory_bytes = 0;
  std::string_view user;
  uint32_t umask = 0;            // + 1; 0: unknown
  std::string_view cgroup_file;  // which counts oom_kills; empty: unknown
  uint64_t oom_kills = 0;
  std::vector<std::string_view> masked_by;  // for each of `masked` the rule
  uint64_t inherited = 0;  // bit N: descriptor N, of 3 to 63, was open at its start
};

struct TailInfo {
  std::string_view path;
  std::string_view id;
};

// Which process this is in the tree of its job (docs/FORMAT.md, "Children").
struct ProcessOrigin {
  std::string_view root;  // random, 16 bytes: of the process that the tree begins with
  std::string_view path;  // from there: "0/1", "0.2/3+1/0/1"
};

struct TraceHeader {
  uint32_t format_major = 0;  // the writer puts the numbers of format_version.h here
  uint32_t format_minor = 0;
  std::string_view producer;
  std::string_view job_id;
  uint32_t rank = 0;
  uint32_t world_size = 0;
  uint32_t local_rank = 0;
  uint32_t attempt = 0;
  uint32_t level = 0;
  ProcessInfo process;
  TailInfo tail;
  uint64_t start_wall_ns = 0;
  uint64_t start_mono_ns = 0;
  std::vector<ApiName> apis;
  std::string_view shares_with;  // the same 16 bytes in all ranks that share payloads
  ProcessOrigin origin;
  uint32_t inputs = 0;    // what is kept of files: 0 not said, 1 nothing, 2 digests, 3 bytes
  bool redacted = false;  // a copy with stand-ins for names and contents
  bool names_interpreter_waits = false;  // ClockSource::kInterpreterWait
  bool names_python_locks = false;       // ClockSource::kPythonLock
};

struct TensorStats {
  uint64_t nan_count = 0;
  uint64_t inf_count = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  double sum_squares = 0;
  friend bool operator==(const TensorStats&, const TensorStats&) = default;
};

struct Tensor {
  uint32_t param = 0;
  uint32_t dtype = 0;
  uint64_t count = 0;
  uint64_t address = 0;
  Hash128 hash;
  TensorStats stats;
  uint32_t payload = 0;  // PayloadState
  uint32_t segment = 0;  // a kept payload is in this one or a later one
};

struct CallEnter {
  uint32_t api = 0;
  uint32_t comm = 0;
  uint64_t comm_seq = 0;
  uint32_t stack = 0;
  uint32_t group_depth = 0;
  InlineVec<uint64_t, kMaxCallArgs> args;
  InlineVec<Tensor, kMaxCallTensors> inputs;
  std::string_view blob;
  std::string_view text;
  uint32_t tells_end = 0;     // 1: it has no results, and an empty CallResults says that it is done
  uint32_t reads_at_end = 0;  // 1: in a group; what it reads is known as the group's end finds it
};

struct CallLeave {
  uint64_t enter_seq = 0;
  int64_t result = 0;
  InlineVec<uint64_t, kMaxCallArgs> outs;
  std::string_view blob;
};

struct CallResults {
  uint32_t comm = 0;
  uint64_t comm_seq = 0;
  InlineVec<Tensor, kMaxCallTensors> outputs;
};

// How the library has carried out a collective, as it told of itself.
struct AlgorithmChosen {
  uint32_t comm = 0;
  uint64_t comm_seq = 0;
  uint32_t api = 0;
  std::string_view algorithm;  // "RING"
  std::string_view protocol;   // "LL128"
  uint32_t channels = 0;       // 0: not told
  uint32_t warps = 0;
};

struct Input {
  uint32_t api = 0;
  uint64_t key = 0;
  int64_t result = 0;
  uint32_t error = 0;
  std::string_view data;
  Hash128 hash;
  uint32_t segment = 0;
};

struct ClockRun {
  InlineVec<uint32_t, kMaxClockRun> sources;
  InlineVec<int64_t, kMaxClockRun> deltas;
};

struct Step {
  uint64_t step = 0;
};

struct Snapshot {
  std::string_view name;
  Tensor tensor;
  InlineVec<uint64_t, kMaxTensorDims> shape;
  bool opaque = false;
  uint32_t stack = 0;
  uint64_t checkpoint = 0;  // Checkpoint.number of the one that it is an item of
};

// After the items of a checkpoint, on the same thread: the checkpoint is whole.
struct Checkpoint {
  uint64_t number = 0;  // of the rank's checkpoints, from 1
  uint64_t step = 0;    // with which a replay goes on from here
  uint32_t items = 0;
  uint64_t bytes = 0;         // of all items
  uint32_t missing = 0;       // items whose bytes were not kept
  uint32_t threads_made = 0;  // by this thread so far
  uint32_t processes_made = 0;
  InlineVec<uint32_t, kMaxCheckpointFiles> descriptors;  // of regular files that are open …
  InlineVec<uint64_t, kMaxCheckpointFiles> positions;    // … and how far they were read
};

// The optimizer has changed what the program has registered (deja_update in include/deja.h).
struct OptimizerUpdate {
  uint32_t optimizer = 0;  // deja_optimizer_t
  uint32_t dtype = 0;
  uint64_t count = 0;  // elements of each of these
  uint64_t parameters = 0;
  uint64_t first_moment = 0;  // 0: none
  uint64_t second_moment = 0;
  uint64_t gradient = 0;
  uint64_t updates = 0;  // by this optimizer so far, this one among them
  double learning_rate = 0;
  double beta1 = 0;  // of SGD: the momentum
  double beta2 = 0;  // of SGD: the dampening
  double epsilon = 0;
  double weight_decay = 0;
  double gradient_scale = 0;  // what gradients are multiplied by before
  uint32_t nesterov = 0;
};

// Python's collector begins on this thread. `ended`: it has ended, and the thread has other events
// in between.
struct GarbageCollection {
  uint32_t generation = 0;
  bool ended = false;
  bool has_threads = false;  // of Python's, beside the first one
  uint64_t lasted_ns = 0;    // with `ended`
};

struct Note {
  std::string_view text;
};

struct ThreadStart {
  uint32_t thread = 0;
  std::string_view name;
  uint32_t tid = 0;
};

struct ThreadEnd {};

struct CommCreated {
  uint32_t comm = 0;
  uint64_t hash = 0;
  uint32_t rank = 0;
  uint32_t nranks = 0;
  uint32_t parent = 0;
  std::string_view name;
  int32_t device = 0;
  uint64_t joined_as = 0;
};

struct ModuleLoaded {
  uint32_t module = 0;
  std::string_view path;
  std::string_view build_id;
  uint64_t base = 0;
  uint64_t end = 0;
};

struct StackFrame {
  uint32_t module = 0;
  uint64_t offset = 0;
};

struct StackDefined {
  uint32_t stack = 0;
  InlineVec<StackFrame, kMaxStackFrames> frames;
};

struct Crash {
  uint32_t signal = 0;
  int32_t code = 0;
  uint64_t address = 0;
  uint64_t pc = 0;
  uint32_t stack = 0;
  InlineVec<StackFrame, kMaxStackFrames> frames;
  int32_t sender_pid = 0;
};

struct ProcessExit {
  int32_t code = 0;
  uint32_t how = 0;
  std::string_view program = {};    // exec: the next program's path; empty: not known
  std::string_view arguments = {};  // each ends with a zero, but for the last one if they are cut
};

struct Degraded {
  std::string_view reason;
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  uint64_t payload_bytes_lost = 0;
  uint32_t remark = 0;  // 1: a replay needs none of it, or there may have been none; kSaidAtTheEnd
  std::string_view function{};  // of a newer NCCL, that the program calls or may call; or empty
};
inline constexpr uint32_t kSaidAtTheEnd = 2;  // as 1, and `deja record` says it

// WindowChange.what
enum class WindowEvent : uint32_t { kDropped = 1, kMarked = 2 };

struct WindowChange {
  uint32_t what = 0;
  uint32_t first_segment = 0;
  uint32_t last_segment = 0;
  std::string_view reason;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
};

struct AsyncError {
  uint32_t comm = 0;
  int64_t result = 0;
  uint32_t given_up_by = 0;  // api id + 1 of the call that ends what is under way; then no error
  uint32_t under_way = 0;    // then: tensors that had not come by then
};

struct HandleDefined {
  uint32_t kind = 0;
  uint32_t id = 0;
  uint64_t value = 0;
};

// ConnectionOpened.kind
enum class ConnectionKind : uint32_t {
  kInherited = 1,  // stdin and other descriptors that the process was born with
  kConnected = 2,  // connect(), also one that failed
  kAccepted = 3,
  kBound = 4,      // bind(), also one that failed: a listener, or a datagram socket with an address
  kDatagrams = 5,  // a datagram socket that sends and receives without being connected
};

struct ConnectionOpened {
  uint32_t connection = 0;
  uint32_t kind = 0;
  std::string_view name;
  uint32_t type = 0;
  std::string_view local;
  std::string_view remote;
  int64_t result = 0;
  uint32_t error = 0;
  uint32_t listener = 0;
  bool own = false;
  uint64_t file_size = 0;
  std::string_view peer;
};

// Transfer.direction
enum class TransferKind : uint32_t {
  kReceived = 0,
  kSent = 1,
  kState = 2,   // the socket's pending error, as getsockopt(SO_ERROR) told it
  kPeeked = 3,  // how far the program looked ahead (MSG_PEEK), when that was farther than before
};

struct Transfer {
  uint32_t connection = 0;
  uint32_t direction = 0;
  uint64_t number = 0;
  int64_t result = 0;
  uint32_t error = 0;
  std::string_view data;
  Hash128 hash;
  uint64_t sent_before = 0;
  uint64_t sent_hash = 0;
  std::string_view address;
  uint64_t position = 0;
  uint32_t flags = 0;
  uint32_t segment = 0;
};

// A process that this thread has made, or one whose end this thread has seen.
struct Child {
  uint32_t number = 0;  // of the processes that the thread has made, from 1; 0: an end
  uint32_t pid = 0;
  bool ended = false;
  int32_t exit_code = 0;  // -1 when a signal ended it
  uint32_t signal = 0;
  std::string_view program = {};  // vfork and posix_spawn: what it became, as in ProcessExit
  std::string_view arguments = {};
};

// A file or folder outside the run that the program opened (or, at full, asked about), as it was
// then. One event for each state in which a process saw it.
struct InputFile {
  uint32_t file = 0;  // number, from 1
  std::string_view path;
  uint32_t mode = 0;  // st_mode; 0: it was not there
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint32_t error = 0;  // errno of who asked for it
  uint64_t opens = 0;  // how many times the process had opened the path before
  std::string_view entries;
  Hash128 entries_hash;
  bool written = false;  // opened for writing: what is recorded of it is how it was before
  uint32_t segment = 0;  // of entries_hash
  bool program = false;  // a module of Python, or a folder of packages: facts alone
  // Another process changed it during the run, and its bytes are kept. The number of times that the
  // process had tried to open the path, this time included; 0: no such file.
  uint64_t tries = 0;
  // The process's look at the path that met this state, from 1, or the next one if an open met it.
  // 0: looks are not counted, or it is a link.
  uint64_t looks = 0;
};

inline constexpr size_t kMaxFileRanges = 64;

// FileRead.how
enum class FileReadHow : uint32_t {
  kRead = 0,
  kMapped = 1,   // pages that the program touched
  kChanged = 2,  // ranges that could not be recorded: the file was changed or removed too early
};

// Ranges of an input file that the program was given.
struct FileRead {
  uint32_t file = 0;
  InlineVec<int64_t, kMaxFileRanges> gaps;    // from the end of the range before it
  InlineVec<uint64_t, kMaxFileRanges> sizes;  // of the ranges
  std::string_view hashes;                    // 16 bytes for each
  uint32_t how = 0;
  uint32_t payload = 0;  // PayloadState, of all ranges
  uint32_t segment = 0;
};

// The body's field number in the Event message is the number in EventKind.
enum class EventKind : uint32_t {
  kNone = 0,
#define DEJA_EVENT(Message, number, name, passing) k##Message = number,
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT
};

struct EventHead {
  uint32_t thread = 0;
  uint64_t seq = 0;
  uint64_t time_ns = 0;
};

// std::monostate: an event whose kind this reader does not know (written by a newer Deja).
#define DEJA_EVENT(Message, number, name, passing) , Message
using EventBody = std::variant<std::monostate
#include "format/wire/event_kinds.def"
                               >;
#undef DEJA_EVENT

struct Event : EventHead {
  EventBody body;

  template <typename T>
  [[nodiscard]] const T* As() const {
    return std::get_if<T>(&body);
  }
};

struct PayloadChunk {
  Hash128 hash;
  uint64_t total_size = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t codec = 0;
  uint32_t element_size = 0;
  std::string_view data;
  uint64_t step = 0;
  uint64_t base = 0;        // offset in the file of the chunk that this one is a difference to
  uint64_t prediction = 0;  // the same of the frame that says how it was predicted …
  uint32_t state = 0;       // … and which part of the state it is (format/payloads/prediction.h)
};

struct ThreadRange {
  uint32_t thread = 0;
  uint64_t first_seq = 0;
  uint64_t last_seq = 0;
};

struct CommRange {
  uint32_t comm = 0;
  uint64_t first_seq = 0;
  uint64_t last_seq = 0;
};

struct BatchInfo {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t first_time_ns = 0;
  uint64_t last_time_ns = 0;
  std::vector<ThreadRange> threads;
  std::vector<CommRange> comms;
  std::vector<uint64_t> steps;
  uint32_t kinds = 0;
  uint32_t more_kinds = 0;
};

// A frame of the index with batches, and what they are together.
struct BatchBlock {
  uint64_t offset = 0;
  uint64_t batches = 0;
  BatchInfo all;  // without steps
  uint64_t steps = 0;
  uint64_t least_step = 0;
  uint64_t greatest_step = 0;
  bool steps_ascend = false;
};

struct PayloadInfo {
  Hash128 hash;
  uint64_t total_size = 0;
  std::vector<uint64_t> chunk_offsets;
  uint32_t segment = 0;
};

// A payload of which other ranks have the rest.
struct PayloadPieces {
  Hash128 hash;
  uint64_t total_size = 0;
  std::vector<uint64_t> chunk_offsets;
  std::vector<uint64_t> starts;  // in the payload, of each chunk
  std::vector<uint64_t> sizes;
  uint32_t segment = 0;
};

struct Index {
  std::vector<BatchInfo> batches;
  std::vector<PayloadInfo> payloads;
  std::vector<PayloadPieces> pieces;
  std::vector<BatchBlock> batch_blocks;
};

struct ProcessFate {
  bool known = false;
  int32_t exit_code = 0;
  uint32_t signal = 0;
};

// A payload file: 0 is payloads.deja, N payloads-N.deja.
struct Segment {
  uint32_t number = 0;
  uint64_t bytes = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t first_step = 0;  // the rank's n-th Step event; 0: before the first
  uint64_t last_step = 0;
  uint32_t marked = 0;
};

struct SegmentRange {
  uint32_t first = 0;
  uint32_t last = 0;
  friend bool operator==(const SegmentRange&, const SegmentRange&) = default;
};

// How the buffer between the program and the disk fared.
struct Pressure {
  uint64_t buffer_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t waits = 0;
  uint64_t waited_ns = 0;
  uint64_t payloads = 0;  // not kept under pressure
  uint64_t payload_bytes = 0;
};

// A frame of the index that has payloads; see Footer.index_blocks.
struct IndexBlock {
  uint64_t offset = 0;
  Hash128 first_hash;
};

// Payloads that are differences to what an optimizer should have made.
struct Predicted {
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t stored_bytes = 0;  // of their chunks
  uint64_t elements = 0;
  uint64_t exact = 0;  // of these, as predicted
};

struct Footer {
  uint64_t index_offset = 0;
  uint64_t events = 0;
  uint64_t payloads = 0;
  uint64_t payload_bytes = 0;
  uint64_t first_step = 0;
  uint64_t last_step = 0;
  uint64_t steps = 0;
  uint64_t events_lost = 0;
  uint64_t payloads_lost = 0;
  uint32_t swept = 0;
  ProcessFate fate;
  uint64_t partial_payloads = 0;
  uint64_t partial_payload_bytes = 0;
  std::vector<Segment> segments;
  std::vector<SegmentRange> dropped;
  uint64_t payloads_dropped = 0;
  uint64_t payload_bytes_dropped = 0;
  Pressure pressure;
  uint64_t oom_kills = 0;
  std::vector<IndexBlock> index_blocks;
  Predicted predicted;
  uint64_t batch_directory = 0;
};

// ---- The field lists. V is called as v(number, field), or as v(number, field, name) if it takes
// the field's name. M is `T` or `const T`.

// Calls `visitor` with a field in the form that it takes.
template <typename V, typename T>
constexpr void VisitField(V& visitor, uint32_t number, T& field,
                          [[maybe_unused]] const char* name) {
  if constexpr (requires { visitor(number, field, name); })
    visitor(number, field, name);
  else
    visitor(number, field);
}

#define DEJA_VISIT(Type)                                \
  template <typename V, typename M>                     \
  requires std::is_same_v<std::remove_const_t<M>, Type> \
  constexpr void Visit([[maybe_unused]] V&& visitor, [[maybe_unused]] M& m)
// `field` is `m.NAME`.
#define v(number, field) VisitField(visitor, number, field, &#field[2])

DEJA_VISIT(ApiName) {
  v(1, m.id);
  v(2, m.name);
}
// clang-format off
DEJA_VISIT(ProcessInfo) {
  v(1, m.pid); v(2, m.parent_pid); v(3, m.hostname); v(4, m.executable); v(5, m.executable_build_id);
  v(6, m.argv); v(7, m.environment); v(8, m.working_directory); v(9, m.kernel); v(10, m.cpu_count);
  v(11, m.page_size); v(12, m.nccl_path); v(13, m.nccl_version); v(14, m.masked); v(15, m.cpu_model);
  v(16, m.cpu_features); v(17, m.memory_bytes); v(18, m.user); v(19, m.umask);
  v(20, m.cgroup_file); v(21, m.oom_kills); v(22, m.masked_by); v(23, m.inherited);
}
DEJA_VISIT(TailInfo) { v(1, m.path); v(2, m.id); }
DEJA_VISIT(ProcessOrigin) { v(1, m.root); v(2, m.path); }
DEJA_VISIT(TraceHeader) {
  v(1, m.format_major); v(2, m.format_minor); v(3, m.producer); v(4, m.job_id); v(5, m.rank);
  v(6, m.world_size); v(7, m.local_rank); v(8, m.attempt); v(9, m.level); v(10, m.process); v(11, m.tail);
  v(12, m.start_wall_ns); v(13, m.start_mono_ns); v(14, m.apis); v(15, m.shares_with);
  v(16, m.origin); v(17, m.inputs); v(18, m.redacted); v(19, m.names_interpreter_waits);
  v(20, m.names_python_locks);
}
DEJA_VISIT(TensorStats) {
  v(1, m.nan_count); v(2, m.inf_count); v(3, m.min); v(4, m.max); v(5, m.sum); v(6, m.sum_squares);
}
DEJA_VISIT(Tensor) {
  v(1, m.param); v(2, m.dtype); v(3, m.count); v(4, m.address); v(5, m.hash); v(6, m.stats); v(7, m.payload);
  v(8, m.segment);
}
DEJA_VISIT(CallEnter) {
  v(1, m.api); v(2, m.comm); v(3, m.comm_seq); v(4, m.stack); v(5, m.group_depth); v(6, m.args);
  v(7, m.inputs); v(8, m.blob); v(9, m.text); v(10, m.tells_end); v(11, m.reads_at_end);
}
DEJA_VISIT(CallLeave) { v(1, m.enter_seq); v(2, m.result); v(3, m.outs); v(4, m.blob); }
DEJA_VISIT(CallResults) { v(1, m.comm); v(2, m.comm_seq); v(3, m.outputs); }
DEJA_VISIT(AlgorithmChosen) {
  v(1, m.comm); v(2, m.comm_seq); v(3, m.api); v(4, m.algorithm); v(5, m.protocol); v(6, m.channels);
  v(7, m.warps);
}
DEJA_VISIT(Input) {
  v(1, m.api); v(2, m.key); v(3, m.result); v(4, m.error); v(5, m.data); v(6, m.hash);
  v(7, m.segment);
}
DEJA_VISIT(ClockRun) { v(1, m.sources); v(2, m.deltas); }
DEJA_VISIT(Step) { v(1, m.step); }
DEJA_VISIT(Snapshot) {
  v(1, m.name); v(2, m.tensor); v(3, m.shape); v(4, m.opaque); v(5, m.stack); v(6, m.checkpoint);
}
DEJA_VISIT(Checkpoint) {
  v(1, m.number); v(2, m.step); v(3, m.items); v(4, m.bytes); v(5, m.missing); v(6, m.threads_made);
  v(7, m.processes_made); v(8, m.descriptors); v(9, m.positions);
}
DEJA_VISIT(OptimizerUpdate) {
  v(1, m.optimizer); v(2, m.dtype); v(3, m.count); v(4, m.parameters); v(5, m.first_moment);
  v(6, m.second_moment); v(7, m.gradient); v(8, m.updates); v(9, m.learning_rate); v(10, m.beta1);
  v(11, m.beta2); v(12, m.epsilon); v(13, m.weight_decay); v(14, m.gradient_scale); v(15, m.nesterov);
}
DEJA_VISIT(GarbageCollection) { v(1, m.generation); v(2, m.ended); v(3, m.has_threads); v(4, m.lasted_ns); }
DEJA_VISIT(Note) { v(1, m.text); }
DEJA_VISIT(ThreadStart) { v(1, m.thread); v(2, m.name); v(3, m.tid); }
DEJA_VISIT(ThreadEnd) {}
DEJA_VISIT(CommCreated) {
  v(1, m.comm); v(2, m.hash); v(3, m.rank); v(4, m.nranks); v(5, m.parent); v(6, m.name); v(7, m.device);
  v(8, m.joined_as);
}
DEJA_VISIT(ModuleLoaded) { v(1, m.module); v(2, m.path); v(3, m.build_id); v(4, m.base); v(5, m.end); }
DEJA_VISIT(StackFrame) { v(1, m.module); v(2, m.offset); }
DEJA_VISIT(StackDefined) { v(1, m.stack); v(2, m.frames); }
DEJA_VISIT(Crash) {
  v(1, m.signal); v(2, m.code); v(3, m.address); v(4, m.pc); v(5, m.stack); v(6, m.frames);
  v(7, m.sender_pid);
}
DEJA_VISIT(ProcessExit) {
  v(1, m.code); v(2, m.how); v(3, m.program); v(4, m.arguments);
}
DEJA_VISIT(Degraded) {
  v(1, m.reason); v(2, m.events_lost); v(3, m.payloads_lost); v(4, m.payload_bytes_lost); v(5, m.remark);
  v(6, m.function);
}
DEJA_VISIT(WindowChange) {
  v(1, m.what); v(2, m.first_segment); v(3, m.last_segment); v(4, m.reason); v(5, m.payloads);
  v(6, m.payload_bytes);
}
DEJA_VISIT(AsyncError) {
  v(1, m.comm); v(2, m.result); v(3, m.given_up_by); v(4, m.under_way);
}
DEJA_VISIT(HandleDefined) { v(1, m.kind); v(2, m.id); v(3, m.value); }
DEJA_VISIT(InputFile) {
  v(1, m.file); v(2, m.path); v(3, m.mode); v(4, m.size); v(5, m.mtime_ns); v(6, m.device);
  v(7, m.inode); v(8, m.error); v(9, m.opens); v(10, m.entries); v(11, m.entries_hash);
  v(12, m.written); v(13, m.segment); v(14, m.program);
  v(15, m.tries); v(16, m.looks);
}
DEJA_VISIT(FileRead) {
  v(1, m.file); v(2, m.gaps); v(3, m.sizes); v(4, m.hashes); v(5, m.how); v(6, m.payload);
  v(7, m.segment);
}
DEJA_VISIT(ConnectionOpened) {
  v(1, m.connection); v(2, m.kind); v(3, m.name); v(4, m.type); v(5, m.local); v(6, m.remote);
  v(7, m.result); v(8, m.error); v(9, m.listener); v(10, m.own); v(11, m.file_size); v(12, m.peer);
}
DEJA_VISIT(Transfer) {
  v(1, m.connection); v(2, m.direction); v(3, m.number); v(4, m.result); v(5, m.error); v(6, m.data);
  v(7, m.hash); v(8, m.sent_before); v(9, m.sent_hash); v(10, m.address); v(11, m.position);
  v(12, m.flags); v(13, m.segment);
}
DEJA_VISIT(Child) {
  v(1, m.number); v(2, m.pid); v(3, m.ended); v(4, m.exit_code); v(5, m.signal);
  v(6, m.program); v(7, m.arguments);
}
DEJA_VISIT(EventHead) { v(1, m.thread); v(2, m.seq); v(3, m.time_ns); }
DEJA_VISIT(PayloadChunk) {
  v(1, m.hash); v(2, m.total_size); v(3, m.offset); v(4, m.size); v(5, m.codec); v(6, m.element_size);
  v(7, m.data); v(8, m.step); v(9, m.base); v(10, m.prediction); v(11, m.state);
}
DEJA_VISIT(ThreadRange) { v(1, m.thread); v(2, m.first_seq); v(3, m.last_seq); }
DEJA_VISIT(CommRange) { v(1, m.comm); v(2, m.first_seq); v(3, m.last_seq); }
DEJA_VISIT(BatchInfo) {
  v(1, m.offset); v(2, m.size); v(3, m.first_time_ns); v(4, m.last_time_ns); v(5, m.threads);
  v(6, m.comms); v(7, m.steps); v(8, m.kinds); v(9, m.more_kinds);
}
DEJA_VISIT(BatchBlock) {
  v(1, m.offset); v(2, m.batches); v(3, m.all); v(4, m.steps); v(5, m.least_step);
  v(6, m.greatest_step); v(7, m.steps_ascend);
}
DEJA_VISIT(PayloadInfo) {
  v(1, m.hash); v(2, m.total_size); v(3, m.chunk_offsets); v(4, m.segment);
}
DEJA_VISIT(PayloadPieces) {
  v(1, m.hash); v(2, m.total_size); v(3, m.chunk_offsets); v(4, m.starts); v(5, m.sizes);
  v(6, m.segment);
}
DEJA_VISIT(Index) {
  v(1, m.batches); v(2, m.payloads); v(3, m.pieces); v(4, m.batch_blocks);
}
DEJA_VISIT(ProcessFate) { v(1, m.known); v(2, m.exit_code); v(3, m.signal); }
DEJA_VISIT(Segment) {
  v(1, m.number); v(2, m.bytes); v(3, m.payloads); v(4, m.payload_bytes); v(5, m.first_step);
  v(6, m.last_step); v(7, m.marked);
}
DEJA_VISIT(SegmentRange) { v(1, m.first); v(2, m.last); }
DEJA_VISIT(Pressure) {
  v(1, m.buffer_bytes); v(2, m.peak_bytes); v(3, m.waits); v(4, m.waited_ns); v(5, m.payloads);
  v(6, m.payload_bytes);
}
DEJA_VISIT(IndexBlock) { v(1, m.offset); v(2, m.first_hash); }
DEJA_VISIT(Predicted) {
  v(1, m.payloads); v(2, m.payload_bytes); v(3, m.stored_bytes); v(4, m.elements); v(5, m.exact);
}
DEJA_VISIT(Footer) {
  v(1, m.index_offset); v(2, m.events); v(3, m.payloads); v(4, m.payload_bytes); v(5, m.first_step);
  v(6, m.last_step); v(7, m.steps); v(8, m.events_lost); v(9, m.payloads_lost); v(10, m.swept);
  v(11, m.fate); v(12, m.partial_payloads); v(13, m.partial_payload_bytes);
  v(15, m.segments); v(16, m.dropped); v(17, m.payloads_dropped); v(18, m.payload_bytes_dropped);
  v(19, m.pressure); v(20, m.oom_kills); v(21, m.index_blocks); v(22, m.predicted);
  v(24, m.batch_directory);
}
// clang-format on

#undef v
#undef DEJA_VISIT

// EventKind of each body type.
template <typename T>
inline constexpr EventKind kKindOf = EventKind::kNone;
#define DEJA_EVENT(Message, number, name, passing) \
  template <>                                      \
  inline constexpr EventKind kKindOf<Message> = EventKind::k##Message;
#include "format/wire/event_kinds.def"
#undef DEJA_EVENT

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_MESSAGES_H_
