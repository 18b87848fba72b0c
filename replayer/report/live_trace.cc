#include "replayer/report/live_trace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "common/os/cpu.h"
#include "common/text/hex_text.h"
#include "digest/digest.h"
#include "format/reader/replay_origin.h"
#include "preload/cuda/device.h"
#include "preload/engine/snapshot_event.h"
#include "replayer/report/live_stack.h"

namespace deja::replayer {
namespace {

using api::Role;
using preload::BufferUse;

constexpr size_t kIdBytes = 16;

std::array<char, kIdBytes> BytesOfId(std::string_view hex) {
  std::array<char, kIdBytes> id{};
  for (size_t i = 0; i < id.size() && 2 * i + 1 < hex.size(); ++i)
    id[i] = static_cast<char>(
        std::strtol(std::string(hex.substr(2 * i, 2)).c_str(), nullptr, kIdBytes));
  return id;
}

std::string OwnExecutable() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

// One after the other, each with its final zero.
std::string OwnArguments() {
  std::string text;
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char part[4096];
  for (ssize_t size = 0; (size = read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(size));
  close(fd);
  return text;
}

void Digest(format::Tensor& tensor, std::span<const std::byte> bytes) {
  const digest::TensorDigest digest = digest::DigestTensor(bytes, tensor.dtype);
  tensor.hash = digest.hash;
  tensor.stats = digest.stats;
}

// Without contents where these are on a device.
format::Tensor DescribeInput(const LiveInput& operation) {
  const BufferUse& input = operation.input;
  format::Tensor tensor;
  tensor.param = static_cast<uint32_t>(input.arg);
  tensor.dtype = input.dtype;
  tensor.count = input.elements;
  tensor.address = reinterpret_cast<uint64_t>(input.data);
  if (!operation.captured && preload::IsHostMemory(input.data))
    Digest(tensor, {static_cast<const std::byte*>(input.data), input.bytes});
  return tensor;
}

}  // namespace

Result<LiveTrace*> LiveTrace::Open(const LiveTraceOptions& options,
                                   const format::RankReader& recording, const ReplayPlan& plan) {
  constexpr size_t kPayloadBytes = 8 << 20;
  format::RankLogOptions log_options;
  log_options.trace_dir = options.out;
  log_options.tail_dir = options.out;  // elsewhere the replay may not write
  log_options.job_id = options.job_id;
  log_options.payload_bytes = kPayloadBytes;
  DEJA_ASSIGN_OR_RETURN(auto log, format::RankLog::Create(log_options));
  const format::TraceHeader& recorded = recording.header();
  auto* trace = new LiveTrace(std::move(log), plan, recorded.start_mono_ns);  // never destroyed
  format::ReplayOrigin origin;
  origin.trace = options.recording;
  origin.job_id = HexText(recorded.job_id);
  origin.attempt = recorded.attempt;
  if (const LateStart* start = plan.start()) {
    origin.from_step = start->checkpoint().step;
    origin.skipped = {start->first_step_ns() + 1, start->checkpoint().at.time_ns};
  }
  trace->Write(format::Note{origin.Write()}, recorded.start_mono_ns);
  ForwardStacks(trace);
  LearnModules();
  DEJA_RETURN_IF_ERROR(trace->BecomeRank(options, recorded));
  return trace;
}

Status LiveTrace::BecomeRank(const LiveTraceOptions& options, const format::TraceHeader& recorded) {
  format::TraceHeader header = recorded;
  const std::array<char, kIdBytes> id = BytesOfId(options.job_id);
  const std::string executable = OwnExecutable();
  const std::string build_id = LiveBuildId(executable);
  const std::string arguments = OwnArguments();
  const std::string cpu_model = CpuModel();
  const std::string cpu_features = CpuFeatures();
  header.job_id = {id.data(), id.size()};
  header.level = static_cast<uint32_t>(Level::kDigest);
  header.tail = {};
  header.shares_with = {};
  header.origin = {};
  header.inputs = 1;  // nothing is kept of files
  header.process.pid = static_cast<uint32_t>(syscall(SYS_getpid));
  header.process.parent_pid = static_cast<uint32_t>(syscall(SYS_getppid));
  header.process.executable = executable;
  header.process.executable_build_id = build_id;
  header.process.argv.clear();
  for (size_t at = 0; at < arguments.size();) {
    header.process.argv.emplace_back(arguments.c_str() + at);
    at += header.process.argv.back().size() + 1;
  }
  header.process.cpu_model = cpu_model;
  header.process.cpu_features = cpu_features;
  return log_->BecomeRank(header);
}

LiveTrace::Stream& LiveTrace::StreamLocked() {
  const preload::ThreadRecord& self = preload::Self();
  const auto [found, is_new] = streams_.try_emplace(&self);
  Stream& stream = found->second;
  if (!is_new) return stream;
  stream.index = next_index_++;
  stream.sink = log_->ClaimSink(stream.index);
  format::ThreadStart start;
  start.thread = stream.index;
  start.name = self.name;
  start.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  AppendLocked(stream, start, last_ns_);
  return stream;
}

void LiveTrace::FillEnter(const preload::Call& call, uint32_t comm, const RecordedCall* recorded,
                          format::CallEnter& enter) {
  enter.api = call.info->id;
  enter.stack = LiveStackNumber();
  const auto recorded_args =
      recorded == nullptr ? std::vector<uint64_t>() : plan_.Words(recorded->args);
  for (uint32_t i = 0; i < call.info->param_count; ++i) {
    uint64_t word = call.args[i];
    const Role role = call.info->params[i].role;
    if (role == Role::kComm) {
      word = comm;
      enter.comm = comm;
    } else if (role == Role::kStream || role == Role::kHandle) {
      word = i < recorded_args.size() ? recorded_args[i] : 0;  // by their numbers there
    }
    enter.args.push_back(word);
  }
}

uint64_t LiveTrace::Enter(const LiveInput& operation, uint64_t comm_seq, uint32_t group_depth) {
  const RecordedCall* recorded =
      operation.index == kNone ? nullptr : &plan_.calls()[operation.index];
  format::CallEnter enter;
  FillEnter(operation.call, operation.comm, recorded, enter);
  enter.comm = operation.comm;
  enter.comm_seq = comm_seq;
  enter.group_depth = group_depth;
  if (!operation.input.empty()) enter.inputs.push_back(DescribeInput(operation));
  const uint64_t recorded_ns = recorded == nullptr ? 0 : recorded->time_ns;
  const uint64_t seq = Write(enter, recorded_ns);
  WriteDeviceInput(operation, enter, recorded_ns);
  return seq;
}

// As a recording has it: like the results. What is captured is read at each launch, and not
// described; what is overwritten, the results describe.
void LiveTrace::WriteDeviceInput(const LiveInput& operation, const format::CallEnter& enter,
                                 uint64_t recorded_ns) {
  const BufferUse& input = operation.input;
  if (input.empty() || operation.captured || input.arg == operation.output.arg ||
      preload::IsHostMemory(input.data))
    return;
  const auto bytes = preload::ReadAndWait(input.data, input.bytes, operation.stream);
  if (!bytes) return;
  format::CallResults read;
  read.comm = enter.comm;
  read.comm_seq = enter.comm_seq;
  read.outputs.push_back(enter.inputs[0]);
  Digest(read.outputs[0], *bytes);
  Write(read, recorded_ns);
}

uint64_t LiveTrace::Enter(const preload::Call& call, uint32_t comm, const RecordedCall& recorded) {
  format::CallEnter enter;
  FillEnter(call, comm, &recorded, enter);
  return Write(enter, recorded.time_ns);
}

void LiveTrace::Leave(uint64_t enter_seq, int64_t result, const RecordedCall& recorded) {
  format::CallLeave leave;
  leave.enter_seq = enter_seq;
  leave.result = result;
  Write(leave, recorded.left_ns);
}

void LiveTrace::Results(const RecordedCall& recorded) {
  format::CallResults results;
  results.comm = recorded.comm;
  results.comm_seq = recorded.comm_seq;
  for (format::Tensor tensor : plan_.Tensors(recorded.outputs)) {
    if (results.outputs.size() == format::kMaxCallTensors) break;
    tensor.payload = static_cast<uint32_t>(format::PayloadState::kNotKept);
    tensor.segment = 0;
    results.outputs.push_back(tensor);
  }
  Write(results, recorded.left_ns);
}

void LiveTrace::Comm(const RecordedComm& comm) {
  format::CommCreated created;
  created.comm = comm.number;
  created.hash = comm.hash;
  created.rank = comm.rank;
  created.nranks = comm.nranks;
  created.parent = comm.parent;
  created.name = comm.name;
  created.device = comm.device;
  created.joined_as = comm.joined_as;
  Write(created, 0);
}

void LiveTrace::Snapshot(const preload::SnapshotCall& call, const RecordedSnapshot* recorded) {
  format::Snapshot snapshot;
  preload::DescribeSnapshot(call, snapshot);
  snapshot.stack = LiveStackNumber();
  if (preload::IsHostMemory(call.data)) {
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(call.data), call.bytes};
    Digest(snapshot.tensor, bytes);
    // What is as it was, the recording has.
    if (recorded == nullptr || recorded->tensor.hash != snapshot.tensor.hash) {
      const format::Placed placed =
          log_->PutPayload(snapshot.tensor.hash, bytes, digest::ElementSize(snapshot.tensor.dtype));
      snapshot.tensor.payload = static_cast<uint32_t>(placed.kept ? format::PayloadState::kKept
                                                                  : format::PayloadState::kDropped);
      snapshot.tensor.segment = placed.segment;
    }
  }
  Write(snapshot, recorded == nullptr ? 0 : recorded->time_ns);
}

void LiveTrace::Note(std::string_view text) {
  constexpr size_t kMaxNote = 16 << 10;
  Write(format::Note{text.substr(0, kMaxNote)}, 0);
}

void LiveTrace::EndThread() {
  lock_.Lock();
  const auto found = streams_.find(&preload::Self());
  if (found != streams_.end()) {
    AppendLocked(found->second, format::ThreadEnd{}, last_ns_);
    log_->ReleaseSink(found->second.sink);
    streams_.erase(found);
  }
  lock_.Unlock();
}

void LiveTrace::Exit(int code, uint32_t how) {
  if (!lock_.LockBriefly()) return;
  WriteLocked(format::ProcessExit{code, how}, 0);
  lock_.Unlock();
}

}  // namespace deja::replayer
