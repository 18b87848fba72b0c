#include "cli/events/event_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <map>
#include <variant>

#include "api/curand_table.h"
#include "api/find_api.h"
#include "api/libc_table.h"
#include "api/mpi_table.h"
#include "cli/events/event_fields.h"
#include "cli/events/event_words.h"
#include "cli/output.h"
#include "cli/programs/executed_program.h"
#include "common/text/nccl_result_text.h"
#include "digest/digest.h"
#include "digest/elements.h"
#include "format/reader/file_ranges.h"
#include "format/tail/clock_run.h"
#include "format/tail/lock_reading.h"

namespace deja::cli {
namespace {

using api::Role;
using format::Event;

std::string RedOpText(uint64_t op) {
  static constexpr std::array kNames = {"sum", "prod", "max", "min", "avg"};
  return op < kNames.size() ? kNames[op] : fmt::format("user op {:#x}", op);
}

// ncclResult_t in words; numbers beyond it as they are.
std::string ResultText(int64_t result) {
  const NcclResultInfo* info = FindNcclResult(result);
  return info == nullptr ? fmt::format("{}", result) : info->words;
}

std::string ArgumentText(const api::ParamInfo& param, uint64_t value) {
  if (const char* name = api::CurandValueName(param.type, value)) return name;
  switch (param.role) {
    case Role::kDType:
      return digest::DTypeText(value);
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
      return fmt::format("{}", static_cast<int64_t>(value));
    case Role::kUInt:
      return fmt::format("{}", value);
    case Role::kReal:
      return fmt::format("{}", std::bit_cast<double>(value));
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
    case Role::kReal:
      return true;
    default:
      return false;
  }
}

// MPI's handles say more than numbers: MPI_COMM_WORLD, MPI_SUM.
std::string MpiArguments(const api::ApiInfo& info, const format::CallEnter& enter) {
  std::string text;
  for (uint32_t i = 0; i < info.param_count && i < enter.args.size(); ++i) {
    const Role role = info.params[i].role;
    if (api::IsMpiHandle(role))
      text += fmt::format(" {}={}", info.params[i].name, api::NameOfMpiHandle(enter.args[i]).text);
    else if (IsTelling(role))
      text +=
          fmt::format(" {}={}", info.params[i].name, ArgumentText(info.params[i], enter.args[i]));
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

// Seconds.
std::string ClockText(int64_t ns) {
  constexpr uint64_t kSecond = 1000000000;
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:09}", ns < 0 ? "-" : "", size / kSecond, size % kSecond);
}

struct Describer {
  const RankSummary& summary;

  // A kind that has no words of its own.
  template <typename T>
  std::string operator()(const T& m) const {
    return KindName(format::kKindOf<T>) + FieldsText(m);
  }

  std::string operator()(std::monostate) const {
    return "(an event that this version of Deja does not know)";
  }
  std::string operator()(const format::CallEnter& m) const {
    std::string group = m.group_depth == 0 ? "" : " (in group)";
    return "enter " + summary.ApiName(m.api) + OperationText(m.comm, m.comm_seq) +
           TellingArguments(m) + group + TensorList(m.inputs, "in");
  }
  std::string operator()(const format::CallLeave& m) const {
    return "leave -> " + ResultText(m.result);
  }
  std::string operator()(const format::CallResults& m) const {
    // Without a communicator: of the call with this number on the thread.
    const std::string of =
        m.comm == 0 ? fmt::format(" of call {}", m.comm_seq) : OperationText(m.comm, m.comm_seq);
    if (m.outputs.empty()) return "done" + of;
    return "results" + of + TensorList(m.outputs, "out");
  }
  std::string operator()(const format::AlgorithmChosen& m) const {
    return "chosen for " + summary.ApiName(m.api) + OperationText(m.comm, m.comm_seq) + ": " +
           ChoiceText(m.algorithm, m.protocol, m.channels);
  }
  std::string operator()(const format::Input& m) const {
    std::string text =
        fmt::format("input {} key={} -> {}", summary.ApiName(m.api), m.key, m.result);
    const bool is_signal = m.api == static_cast<uint32_t>(api::LibcApi::ksigaction);
    if (m.error != 0 && is_signal)  // its place among the thread's sleeps
      text += fmt::format(" {} sleep {}", m.error % 2 != 0 ? "in" : "after", (m.error + 1) / 2);
    else if (m.error != 0)
      text += fmt::format(" errno {}", m.error);
    if (!m.data.empty()) text += " " + BytesText(m.data);
    if (!m.hash.IsZero()) text += " payload " + HashText(m.hash);
    return text;
  }
  // Each reading of a few; of many how often each clock was read or lock taken, and the last time.
  std::string operator()(const format::ClockRun& m) const {
    constexpr size_t kShown = 4;
    std::string text = "clocks";
    std::map<std::string, std::pair<size_t, std::string>> readings;
    format::ForEachReading(m, [&](format::ClockSource source, int64_t value) {
      format::LockReading lock;
      const bool is_lock = format::ReadLock(source, value, lock);
      const std::string name = is_lock ? LockText(lock) : ClockName(source);
      auto& [count, last] = readings[name];
      ++count;
      last = is_lock ? LockResultText(lock) : ClockText(value);
      if (m.deltas.size() <= kShown) text += fmt::format(" {} -> {}", name, last);
    });
    if (m.deltas.size() <= kShown) return text;
    for (const auto& [name, reading] : readings)
      text += fmt::format(" {} x{}, last {}", name, reading.first, reading.second);
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
  std::string operator()(const format::OptimizerUpdate& m) const {
    return fmt::format("update {} of {} elements by {}, learning rate {}", m.updates, m.count,
                       OptimizerName(m.optimizer), m.learning_rate);
  }
  std::string operator()(const format::Note& m) const { return fmt::format("note {}", m.text); }
  std::string operator()(const format::ThreadStart& m) const {
    return fmt::format("thread {} starts", m.name);
  }
  std::string operator()(const format::ThreadEnd&) const { return "thread ends"; }
  std::string operator()(const format::CommCreated& m) const {
    std::string parent = m.parent == 0 ? "" : fmt::format(" from comm {}", m.parent - 1);
    std::string name = m.name.empty() ? "" : fmt::format(" \"{}\"", m.name);
    std::string joined =
        m.joined_as == 0 ? "" : fmt::format(", {:016x} for newcomers", m.joined_as);
    return fmt::format("comm {}{} is rank {} of {}{} ({:016x}{})", m.comm - 1, name, m.rank,
                       m.nranks, parent, m.hash, joined);
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
    if (const std::string next = ExecutedText(m.program, m.arguments); !next.empty())
      return "exec " + next;
    return fmt::format("{} {}", m.how < kHow.size() ? kHow[m.how] : "exit", m.code);
  }
  std::string operator()(const format::Degraded& m) const {
    return fmt::format("not recorded: {}", m.reason);
  }
  std::string operator()(const format::AsyncError& m) const {
    if (m.given_up_by != 0)
      return fmt::format("comm {} is given up by {}, {} tensors under way", m.comm - 1,
                         summary.ApiName(m.given_up_by - 1), m.under_way);
    return fmt::format("asynchronous error of comm {}: {}", m.comm - 1, ResultText(m.result));
  }
  std::string operator()(const format::InputFile& m) const {
    std::string text = fmt::format("{} {} {}", m.program ? "program file" : "file", m.file, m.path);
    if (m.error != 0) return text + fmt::format(" errno {}", m.error);
    if (S_ISLNK(m.mode)) return text + fmt::format(" -> {}", m.entries);
    text += fmt::format(" of {} bytes", m.size);
    if (m.written) text += ", opened for writing";
    if (m.tries != 0) text += ", changed by another process";
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
    if (!m.ended) {
      const std::string next = ExecutedText(m.program, m.arguments);
      return fmt::format("process {} made, the thread's number {}{}{}", m.pid, m.number,
                         next.empty() ? "" : ", runs ", next);
    }
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

}  // namespace

std::string DescribeTensor(const format::Tensor& tensor) {
  std::string text = fmt::format("{}[{}]", digest::DTypeText(tensor.dtype), tensor.count);
  if (tensor.payload == static_cast<uint32_t>(format::PayloadState::kAborted))
    return text + " (aborted)";
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

std::string DescribeEvent(const Event& event, const RankSummary& summary) {
  return std::visit(Describer{summary}, event.body);
}

std::string TellingArguments(const format::CallEnter& enter) {
  const api::ApiInfo* info = api::FindApi(enter.api);
  if (info != nullptr && api::IsMpi(enter.api)) return MpiArguments(*info, enter);
  std::string text;
  for (uint32_t i = 0; info != nullptr && i < info->param_count && i < enter.args.size(); ++i)
    if (IsTelling(info->params[i].role))
      text +=
          fmt::format(" {}={}", info->params[i].name, ArgumentText(info->params[i], enter.args[i]));
  if (const uint64_t tag = ProfilerTag(enter); tag != 0) text += fmt::format(" tag={}", tag);
  return text;
}

uint32_t StackOf(const Event& event) {
  if (const auto* enter = event.As<format::CallEnter>()) return enter->stack;
  if (const auto* snapshot = event.As<format::Snapshot>()) return snapshot->stack;
  if (const auto* crash = event.As<format::Crash>()) return crash->stack;
  return 0;
}

}  // namespace deja::cli
