#include "cli/event_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <map>

#include "cli/output.h"
#include "format/clock_run.h"
#include "format/file_ranges.h"
#include "preload/api/find_api.h"
#include "preload/api/mpi_table.h"
#include "preload/digest.h"

namespace deja::cli {
namespace {

using format::Event;
using preload::Role;

struct KindRow {
  format::EventKind kind;
  const char* name;
};

constexpr std::array kKinds = {
    KindRow{format::EventKind::kCallEnter, "enter"},
    KindRow{format::EventKind::kCallLeave, "leave"},
    KindRow{format::EventKind::kCallResults, "results"},
    KindRow{format::EventKind::kInput, "input"},
    KindRow{format::EventKind::kClockRun, "clocks"},
    KindRow{format::EventKind::kStep, "step"},
    KindRow{format::EventKind::kSnapshot, "snapshot"},
    KindRow{format::EventKind::kCheckpoint, "checkpoint"},
    KindRow{format::EventKind::kNote, "note"},
    KindRow{format::EventKind::kThreadStart, "thread-start"},
    KindRow{format::EventKind::kThreadEnd, "thread-end"},
    KindRow{format::EventKind::kCommCreated, "comm"},
    KindRow{format::EventKind::kModuleLoaded, "module"},
    KindRow{format::EventKind::kStackDefined, "stack"},
    KindRow{format::EventKind::kCrash, "crash"},
    KindRow{format::EventKind::kProcessExit, "exit"},
    KindRow{format::EventKind::kDegraded, "degraded"},
    KindRow{format::EventKind::kAsyncError, "async-error"},
    KindRow{format::EventKind::kHandleDefined, "handle"},
    KindRow{format::EventKind::kInputFile, "file"},
    KindRow{format::EventKind::kFileRead, "file-read"},
    KindRow{format::EventKind::kConnectionOpened, "connection"},
    KindRow{format::EventKind::kTransfer, "transfer"},
    KindRow{format::EventKind::kChild, "child"},
    KindRow{format::EventKind::kWindowChange, "window"},
};

format::EventKind KindOf(const Event& event) {
  return std::visit([](const auto& body) { return format::kKindOf<std::decay_t<decltype(body)>>; },
                    event.body);
}

std::string DTypeText(uint64_t dtype) {
  const char* name = preload::DTypeName(static_cast<uint32_t>(dtype));
  return name == nullptr ? fmt::format("type {}", dtype) : name;
}

std::string RedOpText(uint64_t op) {
  static constexpr std::array kNames = {"sum", "prod", "max", "min", "avg"};
  return op < kNames.size() ? kNames[op] : fmt::format("user op {:#x}", op);
}

// ncclResult_t in words; numbers beyond it as they are.
std::string ResultText(int64_t result) {
  static constexpr std::array kNames = {"ok",
                                        "unhandled CUDA error",
                                        "system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote error",
                                        "in progress",
                                        "timeout"};
  if (result >= 0 && static_cast<size_t>(result) < kNames.size())
    return kNames[static_cast<size_t>(result)];
  return fmt::format("{}", result);
}

std::string ArgumentText(Role role, uint64_t value) {
  switch (role) {
    case Role::kDType:
      return DTypeText(value);
    case Role::kRedOp:
      return RedOpText(value);
    case Role::kStream:
      return value == 0 ? "default" : fmt::format("{}", value - 1);
    case Role::kComm:
      return value == 0 ? "none" : fmt::format("{}", value - 1);
    case Role::kCount:
    case Role::kSize:
    case Role::kRank:
    case Role::kNRanks:
    case Role::kRoot:
    case Role::kPeer:
    case Role::kInt:
    case Role::kUInt:
      return fmt::format("{}", static_cast<int64_t>(value));
    default:
      return fmt::format("{:#x}", value);
  }
}

// Arguments that tell a reader something: not the buffers' addresses, which the tensors show, nor
// handles.
bool IsTelling(Role role) {
  switch (role) {
    case Role::kCount:
    case Role::kDType:
    case Role::kRedOp:
    case Role::kRoot:
    case Role::kPeer:
    case Role::kRank:
    case Role::kNRanks:
    case Role::kInt:
    case Role::kUInt:
    case Role::kSize:
      return true;
    default:
      return false;
  }
}

// MPI's handles say more than numbers: MPI_COMM_WORLD, MPI_SUM.
bool IsMpiHandle(Role role) {
  return role == Role::kComm || role == Role::kDType || role == Role::kHandle ||
         role == Role::kHandleInOut;
}

std::string MpiArguments(const preload::ApiInfo& info, const format::CallEnter& enter) {
  std::string text;
  for (uint32_t i = 0; i < info.param_count && i < enter.args.size(); ++i) {
    const Role role = info.params[i].role;
    if (IsMpiHandle(role))
      text +=
          fmt::format(" {}={}", info.params[i].name, preload::NameOfMpiHandle(enter.args[i]).text);
    else if (IsTelling(role))
      text += fmt::format(" {}={}", info.params[i].name, ArgumentText(role, enter.args[i]));
  }
  return text;
}

std::string OperationText(uint32_t comm, uint64_t comm_seq) {
  std::string text;
  if (comm_seq != 0) text += fmt::format(" #{}", comm_seq);
  if (comm != 0) text += fmt::format(" comm {}", comm - 1);
  return text;
}

// Bytes as text when they are printable, else in hexadecimal; long ones cut.
std::string BytesText(std::string_view bytes) {
  constexpr size_t kShown = 16;
  std::string text;
  for (unsigned char c : bytes.substr(0, kShown)) text += fmt::format("{:02x}", c);
  if (bytes.size() > kShown) text += fmt::format("… ({} bytes)", bytes.size());
  return text;
}

std::string TensorList(const InlineVec<format::Tensor, format::kMaxCallTensors>& tensors,
                       const char* label) {
  std::string text;
  for (const format::Tensor& tensor : tensors)
    text += fmt::format(" {}={}", label, DescribeTensor(tensor));
  return text;
}

std::string ClockName(format::ClockSource source) {
  const char* name = format::ClockSourceName(static_cast<uint32_t>(source));
  return name == nullptr ? fmt::format("clock {}", static_cast<uint32_t>(source)) : name;
}

// Seconds.
std::string ClockText(int64_t ns) {
  constexpr uint64_t kSecond = 1000000000;
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:09}", ns < 0 ? "-" : "", size / kSecond, size % kSecond);
}

struct Describer {
  const RankStory& story;

  std::string operator()(std::monostate) const {
    return "(an event that this version of Deja does not know)";
  }
  std::string operator()(const format::CallEnter& m) const {
    std::string group = m.group_depth == 0 ? "" : " (in group)";
    return "enter " + story.ApiName(m.api) + OperationText(m.comm, m.comm_seq) +
           TellingArguments(m) + group + TensorList(m.inputs, "in");
  }
  std::string operator()(const format::CallLeave& m) const {
    return "leave -> " + ResultText(m.result);
  }
  std::string operator()(const format::CallResults& m) const {
    // Without a communicator: of the call with this number on the thread.
    const std::string of =
        m.comm == 0 ? fmt::format(" of call {}", m.comm_seq) : OperationText(m.comm, m.comm_seq);
    return "results" + of + TensorList(m.outputs, "out");
  }
  std::string operator()(const format::Input& m) const {
    std::string text = fmt::format("input {} key={} -> {}", story.ApiName(m.api), m.key, m.result);
    if (m.error != 0) text += fmt::format(" errno {}", m.error);
    if (!m.data.empty()) text += " " + BytesText(m.data);
    if (!m.hash.IsZero()) text += " payload " + HashText(m.hash);
    return text;
  }
  // Each reading of a few; of many how often each clock was read, and the last reading.
  std::string operator()(const format::ClockRun& m) const {
    constexpr size_t kShown = 4;
    std::string text = "clocks";
    std::map<std::string, std::pair<size_t, int64_t>> readings;
    format::ForEachReading(m, [&](format::ClockSource source, int64_t ns) {
      auto& [count, last] = readings[ClockName(source)];
      ++count;
      last = ns;
      if (m.deltas.size() <= kShown)
        text += fmt::format(" {} -> {}", ClockName(source), ClockText(ns));
    });
    if (m.deltas.size() <= kShown) return text;
    for (const auto& [name, reading] : readings)
      text += fmt::format(" {} x{}, last {}", name, reading.first, ClockText(reading.second));
    return text;
  }
  std::string operator()(const format::Step& m) const { return fmt::format("step {}", m.step); }
  std::string operator()(const format::Snapshot& m) const {
    std::string shape;
    for (uint64_t extent : m.shape) shape += fmt::format("{}{}", shape.empty() ? "" : "x", extent);
    std::string of = m.checkpoint == 0 ? "" : fmt::format(", of checkpoint {}", m.checkpoint);
    return fmt::format("{} {} {} {}{}", m.opaque ? "state" : "tensor", m.name, shape,
                       DescribeTensor(m.tensor), of);
  }
  std::string operator()(const format::Checkpoint& m) const {
    const std::string missing =
        m.missing == 0 ? "" : fmt::format(", {} of them without their bytes", m.missing);
    return fmt::format("checkpoint {} at step {}: {} items, {} bytes{}", m.number, m.step, m.items,
                       m.bytes, missing);
  }
  std::string operator()(const format::Note& m) const { return fmt::format("note {}", m.text); }
  std::string operator()(const format::ThreadStart& m) const {
    return fmt::format("thread {} starts", m.name);
  }
  std::string operator()(const format::ThreadEnd&) const { return "thread ends"; }
  std::string operator()(const format::CommCreated& m) const {
    std::string parent = m.parent == 0 ? "" : fmt::format(" from comm {}", m.parent - 1);
    std::string name = m.name.empty() ? "" : fmt::format(" \"{}\"", m.name);
    return fmt::format("comm {}{} is rank {} of {}{} ({:016x})", m.comm - 1, name, m.rank, m.nranks,
                       parent, m.hash);
  }
  std::string operator()(const format::ModuleLoaded& m) const {
    return fmt::format("module {} {} at {:#x}", m.module, m.path, m.base);
  }
  std::string operator()(const format::StackDefined& m) const {
    return fmt::format("stack {} of {} frames", m.stack, m.frames.size());
  }
  std::string operator()(const format::Crash& m) const {
    std::string sender = m.sender_pid == 0 ? "" : fmt::format(" sent by process {}", m.sender_pid);
    return fmt::format("crash {} address {:#x}{}", SignalName(static_cast<int>(m.signal)),
                       m.address, sender);
  }
  std::string operator()(const format::ProcessExit& m) const {
    static constexpr std::array kHow = {"exit", "_exit", "exec"};
    return fmt::format("{} {}", m.how < kHow.size() ? kHow[m.how] : "exit", m.code);
  }
  std::string operator()(const format::Degraded& m) const {
    return fmt::format("not recorded: {}", m.reason);
  }
  std::string operator()(const format::AsyncError& m) const {
    return fmt::format("asynchronous error of comm {}: {}", m.comm - 1, ResultText(m.result));
  }
  std::string operator()(const format::InputFile& m) const {
    std::string text = fmt::format("file {} {}", m.file, m.path);
    if (m.error != 0) return text + fmt::format(" errno {}", m.error);
    if (S_ISLNK(m.mode)) return text + fmt::format(" -> {}", m.entries);
    text += fmt::format(" of {} bytes", m.size);
    if (m.written) text += ", opened for writing";
    if (!m.entries_hash.IsZero()) text += " entries " + HashText(m.entries_hash);
    return text;
  }
  // The first and last of many.
  std::string operator()(const format::FileRead& m) const {
    constexpr size_t kShown = 4;
    std::string text = fmt::format("file {} ", m.file);
    if (m.how == static_cast<uint32_t>(format::FileReadHow::kChanged))
      text += "not recorded:";
    else
      text += m.how == static_cast<uint32_t>(format::FileReadHow::kMapped) ? "mapped:" : "read:";
    const std::vector<format::FileRange> ranges = format::RangesOf(m);
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (i == kShown && ranges.size() > kShown + 1) {
        text += fmt::format(" … {} more", ranges.size() - kShown);
        break;
      }
      text += fmt::format(" {}+{}", ranges[i].begin, ranges[i].size);
      if (!ranges[i].hash.IsZero()) text += " " + HashText(ranges[i].hash);
    }
    return text;
  }
  std::string operator()(const format::ConnectionOpened& m) const {
    std::string text = fmt::format("connection {} {}", m.connection, m.name);
    if (m.own) text += " (to itself)";
    if (m.result < 0) text += fmt::format(" failed, errno {}", m.error);
    return text;
  }
  std::string operator()(const format::Transfer& m) const {
    static constexpr std::array kDirections = {"receives", "sends", "learns of", "peeks at"};
    std::string text =
        fmt::format("connection {} {} ", m.connection,
                    m.direction < kDirections.size() ? kDirections[m.direction] : "transfers");
    if (m.error != 0 || m.direction == 2) return text + fmt::format("errno {}", m.error);
    text += m.result == 0 && m.direction == 0 ? "end of file" : fmt::format("{} bytes", m.result);
    if (!m.data.empty()) text += " " + BytesText(m.data);
    if (!m.hash.IsZero()) text += " payload " + HashText(m.hash);
    return text;
  }
  std::string operator()(const format::HandleDefined& m) const {
    static constexpr std::array kKindsOfHandle = {"handle", "stream", "window", "registration",
                                                  "memory"};
    return fmt::format("{} {} is {:#x}",
                       m.kind < kKindsOfHandle.size() ? kKindsOfHandle[m.kind] : "handle", m.id - 1,
                       m.value);
  }
  std::string operator()(const format::Child& m) const {
    if (!m.ended) return fmt::format("process {} made, the thread's number {}", m.pid, m.number);
    if (m.signal != 0) return fmt::format("process {} was ended by signal {}", m.pid, m.signal);
    return fmt::format("process {} ended, exit {}", m.pid, m.exit_code);
  }
  std::string operator()(const format::WindowChange& m) const {
    const std::string which =
        m.first_segment == m.last_segment
            ? fmt::format("segment {}", m.last_segment)
            : fmt::format("segments {} to {}", m.first_segment, m.last_segment);
    const std::string why = m.reason.empty() ? "" : fmt::format(" ({})", m.reason);
    if (m.what == static_cast<uint32_t>(format::WindowEvent::kMarked))
      return fmt::format("{} marked to be kept{}", which, why);
    return fmt::format("{} dropped{}: {} payloads of {}", which, why, HumanCount(m.payloads),
                       HumanBytes(m.payload_bytes));
  }
};

nlohmann::json TensorsToJson(const InlineVec<format::Tensor, format::kMaxCallTensors>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const format::Tensor& tensor : tensors) list.push_back(TensorToJson(tensor));
  return list;
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (unsigned char c : bytes) text += fmt::format("{:02x}", c);
  return text;
}

struct JsonWriter {
  const RankStory& story;
  nlohmann::json& json;

  template <typename T>
  void operator()(const T&) const {}
  void operator()(const format::CallEnter& m) const {
    json["call"] = story.ApiName(m.api);
    if (m.comm != 0) json["comm"] = m.comm - 1;
    if (m.comm_seq != 0) json["seq_on_comm"] = m.comm_seq;
    if (m.group_depth != 0) json["group_depth"] = m.group_depth;
    const preload::ApiInfo* info = preload::FindApi(m.api);
    for (uint32_t i = 0; i < m.args.size(); ++i) {
      bool known = info != nullptr && i < info->param_count;
      json["args"][known ? info->params[i].name : fmt::format("arg{}", i)] = m.args[i];
    }
    if (!m.inputs.empty()) json["inputs"] = TensorsToJson(m.inputs);
    if (!m.blob.empty()) json["blob"] = Hex(m.blob);
    if (!m.text.empty()) json["name"] = m.text;
  }
  void operator()(const format::CallLeave& m) const {
    json["enter"] = m.enter_seq;
    json["result"] = m.result;
    for (uint64_t out : m.outs) json["outs"].push_back(out);
    if (!m.blob.empty()) json["blob"] = Hex(m.blob);
  }
  void operator()(const format::CallResults& m) const {
    if (m.comm != 0) json["comm"] = m.comm - 1;
    json[m.comm != 0 ? "seq_on_comm" : "enter"] = m.comm_seq;
    json["outputs"] = TensorsToJson(m.outputs);
  }
  void operator()(const format::Input& m) const {
    json["call"] = story.ApiName(m.api);
    json["key"] = m.key;
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (!m.data.empty()) json["data"] = Hex(m.data);
    if (!m.hash.IsZero()) json["payload"] = HashText(m.hash);
  }
  void operator()(const format::ClockRun& m) const {
    format::ForEachReading(m, [&](format::ClockSource source, int64_t ns) {
      json["readings"].push_back({{"clock", ClockName(source)}, {"ns", ns}});
    });
  }
  void operator()(const format::Step& m) const { json["step"] = m.step; }
  void operator()(const format::Snapshot& m) const {
    json["name"] = m.name;
    json["opaque"] = m.opaque;
    json["shape"] = nlohmann::json::array();
    for (uint64_t extent : m.shape) json["shape"].push_back(extent);
    json["tensor"] = TensorToJson(m.tensor);
    if (m.checkpoint != 0) json["checkpoint"] = m.checkpoint;
  }
  void operator()(const format::Checkpoint& m) const {
    json["checkpoint"] = m.number;
    json["step"] = m.step;
    json["items"] = m.items;
    json["bytes"] = m.bytes;
    json["missing"] = m.missing;
  }
  void operator()(const format::Note& m) const { json["text"] = m.text; }
  void operator()(const format::ThreadStart& m) const {
    json["name"] = m.name;
    json["tid"] = m.tid;
  }
  void operator()(const format::CommCreated& m) const {
    json["comm"] = m.comm - 1;
    json["hash"] = fmt::format("{:016x}", m.hash);
    json["rank"] = m.rank;
    json["nranks"] = m.nranks;
    if (m.parent != 0) json["parent"] = m.parent - 1;
    if (!m.name.empty()) json["name"] = m.name;
    json["device"] = m.device;
  }
  void operator()(const format::ModuleLoaded& m) const {
    json["module"] = m.module;
    json["path"] = m.path;
    json["build_id"] = Hex(m.build_id);
    json["base"] = m.base;
  }
  void operator()(const format::StackDefined& m) const {
    json["stack"] = m.stack;
    for (const format::StackFrame& f : m.frames)
      json["frames"].push_back({{"module", f.module}, {"offset", f.offset}});
  }
  void operator()(const format::Crash& m) const {
    json["signal"] = SignalName(static_cast<int>(m.signal));
    json["code"] = m.code;
    json["address"] = m.address;
    json["pc"] = m.pc;
    for (const format::StackFrame& f : m.frames)
      json["frames"].push_back({{"module", f.module}, {"offset", f.offset}});
  }
  void operator()(const format::ProcessExit& m) const {
    json["code"] = m.code;
    json["how"] = m.how;
  }
  void operator()(const format::Degraded& m) const {
    json["reason"] = m.reason;
    json["events_lost"] = m.events_lost;
    json["payloads_lost"] = m.payloads_lost;
  }
  void operator()(const format::AsyncError& m) const {
    json["comm"] = m.comm - 1;
    json["result"] = m.result;
  }
  void operator()(const format::InputFile& m) const {
    json["file"] = m.file;
    json["path"] = m.path;
    if (m.error != 0) json["errno"] = m.error;
    json["mode"] = m.mode;
    json["size"] = m.size;
    json["mtime_ns"] = m.mtime_ns;
    json["opens"] = m.opens;
    if (m.written) json["written"] = true;
    if (S_ISLNK(m.mode)) json["link"] = m.entries;
    if (!m.entries_hash.IsZero()) json["entries"] = HashText(m.entries_hash);
  }
  void operator()(const format::FileRead& m) const {
    json["file"] = m.file;
    json["how"] = m.how;
    json["kept"] = m.payload == static_cast<uint32_t>(format::PayloadState::kKept);
    for (const format::FileRange& range : format::RangesOf(m))
      json["ranges"].push_back(
          {{"offset", range.begin}, {"size", range.size}, {"hash", HashText(range.hash)}});
  }
  void operator()(const format::ConnectionOpened& m) const {
    json["connection"] = m.connection;
    json["name"] = m.name;
    json["kind_of_connection"] = m.kind;
    json["type"] = m.type;
    if (!m.local.empty()) json["local"] = Hex(m.local);
    if (!m.remote.empty()) json["remote"] = Hex(m.remote);
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (m.listener != 0) json["listener"] = m.listener;
    if (m.own) json["own"] = true;
  }
  void operator()(const format::Transfer& m) const {
    json["connection"] = m.connection;
    json["direction"] = m.direction == 0   ? "received"
                        : m.direction == 1 ? "sent"
                        : m.direction == 2 ? "state"
                                           : "peeked";
    json["number"] = m.number;
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (!m.data.empty()) json["data"] = Hex(m.data);
    if (!m.hash.IsZero()) json["payload"] = HashText(m.hash);
    json["sent_before"] = m.sent_before;
  }
  void operator()(const format::HandleDefined& m) const {
    json["kind_of_handle"] = m.kind;
    json["id"] = m.id;
    json["value"] = m.value;
  }
  void operator()(const format::Child& m) const {
    json["pid"] = m.pid;
    if (m.number != 0) json["number"] = m.number;
    if (m.ended) json["end"] = {{"exit_code", m.exit_code}, {"signal", m.signal}};
  }
  void operator()(const format::WindowChange& m) const {
    const bool marked = m.what == static_cast<uint32_t>(format::WindowEvent::kMarked);
    json["what"] = marked ? "marked" : "dropped";
    json["first_segment"] = m.first_segment;
    json["last_segment"] = m.last_segment;
    if (!m.reason.empty()) json["reason"] = m.reason;
    if (!marked) json["payloads"] = m.payloads;
    if (!marked) json["payload_bytes"] = m.payload_bytes;
  }
};

}  // namespace

const char* KindName(const Event& event) {
  format::EventKind kind = KindOf(event);
  for (const KindRow& row : kKinds)
    if (row.kind == kind) return row.name;
  return "unknown";
}

std::string KindNames() {
  std::string names;
  for (const KindRow& row : kKinds) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string HashText(const Hash128& hash) {
  std::string text;
  for (uint8_t byte : hash.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string DescribeTensor(const format::Tensor& tensor) {
  std::string text = fmt::format("{}[{}]", DTypeText(tensor.dtype), tensor.count);
  if (tensor.hash.IsZero()) return text;
  text += " " + HashText(tensor.hash).substr(0, 12);
  if (tensor.dtype == format::kRawBytes || tensor.count == 0) return text;
  if (tensor.stats.nan_count != 0) text += fmt::format(" nan {}", tensor.stats.nan_count);
  if (tensor.stats.inf_count != 0) text += fmt::format(" inf {}", tensor.stats.inf_count);
  text += fmt::format(" min {:.5g} max {:.5g}", tensor.stats.min, tensor.stats.max);
  if (tensor.payload == static_cast<uint32_t>(format::PayloadState::kDropped))
    text += " (bytes dropped)";
  return text;
}

nlohmann::json TensorToJson(const format::Tensor& tensor) {
  nlohmann::json json = {{"param", tensor.param},
                         {"dtype", DTypeText(tensor.dtype)},
                         {"count", tensor.count},
                         {"address", tensor.address}};
  if (tensor.hash.IsZero()) return json;
  json["hash"] = HashText(tensor.hash);
  json["nan"] = tensor.stats.nan_count;
  json["inf"] = tensor.stats.inf_count;
  json["min"] = tensor.stats.min;
  json["max"] = tensor.stats.max;
  json["sum"] = tensor.stats.sum;
  json["sum_squares"] = tensor.stats.sum_squares;
  json["kept"] = tensor.payload == static_cast<uint32_t>(format::PayloadState::kKept);
  return json;
}

std::string DescribeEvent(const Event& event, const RankStory& story) {
  return std::visit(Describer{story}, event.body);
}

nlohmann::json EventToJson(const Event& event, const RankStory& story) {
  nlohmann::json json = {{"thread", story.ThreadName(event.thread)},
                         {"seq", event.seq},
                         {"time_ns", event.time_ns},
                         {"kind", KindName(event)}};
  std::visit(JsonWriter{story, json}, event.body);
  return json;
}

std::string TellingArguments(const format::CallEnter& enter) {
  const preload::ApiInfo* info = preload::FindApi(enter.api);
  if (info != nullptr && preload::IsMpi(enter.api)) return MpiArguments(*info, enter);
  std::string text;
  for (uint32_t i = 0; info != nullptr && i < info->param_count && i < enter.args.size(); ++i)
    if (IsTelling(info->params[i].role))
      text += fmt::format(" {}={}", info->params[i].name,
                          ArgumentText(info->params[i].role, enter.args[i]));
  return text;
}

uint32_t StackOf(const Event& event) {
  if (const auto* enter = event.As<format::CallEnter>()) return enter->stack;
  if (const auto* snapshot = event.As<format::Snapshot>()) return snapshot->stack;
  if (const auto* crash = event.As<format::Crash>()) return crash->stack;
  return 0;
}

}  // namespace deja::cli
