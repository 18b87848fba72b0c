// Export as dumps of PyTorch's Flight Recorder, for `torchfrtrace` and other readers of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/export/formats.h"
#include "cli/export/pickle.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

using check::Operation;

// The version of dumps whose fields these are.
constexpr std::string_view kVersion = "2.10";
// What PyTorch's process groups name the files.
constexpr std::string_view kPrefix = "nccl_trace_rank_";

std::string_view TorchName(Operation operation) {
  switch (operation) {
    case Operation::kReduce:
      return "reduce";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kReduceScatter:
      return "_reduce_scatter_base";
    case Operation::kAllGather:
      return "_all_gather_base";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kGather:
      return "gather";
    case Operation::kScatter:
      return "scatter";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSend:
      return "send";
    case Operation::kRecv:
    case Operation::kRecvAnySource:
      break;
  }
  return "recv";
}

// Names of c10::ScalarType, by the numbers of common/data_types.def.
std::string_view TorchType(uint32_t dtype) {
  constexpr std::array<std::string_view, 12> kNames = {
      "Char", "Byte",  "Int",    "UInt32",   "Long",          "UInt64",
      "Half", "Float", "Double", "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};
  return dtype < kNames.size() ? kNames[dtype] : "Byte";
}

// A rank's operation.
struct Entry {
  const check::JoinedOperation* operation = nullptr;
  const check::Part* part = nullptr;
};

class Dump {
 public:
  Dump(const ExportSource& source, size_t rank, ExportFile& file)
      : source_(source), rank_(rank), file_(file) {}

  void Write(const std::vector<Entry>& entries) {
    pickle_.BeginDict();
    pickle_.Text("version");
    pickle_.Text(kVersion);
    AddGroups();
    pickle_.Text("entries");
    pickle_.BeginList();
    for (size_t i = 0; i < entries.size(); ++i) {
      AddEntry(i, entries[i]);
      file_.Write(pickle_.Take());
    }
    pickle_.EndList();
    pickle_.EndDict();
    pickle_.Stop();
    file_.Write(pickle_.Take());
  }

 private:
  void Pair(std::string_view key, std::string_view text) {
    pickle_.Text(key);
    pickle_.Text(text);
  }
  void Pair(std::string_view key, int64_t number) {
    pickle_.Text(key);
    pickle_.Number(number);
  }

  std::string Description(size_t communicator) const {
    const check::Communicator& its = source_.job.communicators[communicator];
    return PlainText(its.name.empty() ? source_.job.NameOf(its) : its.name);
  }

  void AddGroups() {
    pickle_.Text("pg_config");
    pickle_.BeginDict();
    for (size_t c = 0; c < source_.job.communicators.size(); ++c) {
      const check::Communicator& its = source_.job.communicators[c];
      if (std::none_of(its.members.begin(), its.members.end(),
                       [&](const check::Member& member) { return member.rank == rank_; }))
        continue;
      const std::string name = fmt::format("{}", c);
      pickle_.Text(name);
      pickle_.BeginDict();
      Pair("name", name);
      Pair("desc", Description(c));
      Pair("ranks", fmt::format("[{}]", fmt::join(source_.job.RanksOf(its), ", ")));
      pickle_.EndDict();
    }
    pickle_.EndDict();
  }

  void AddEntry(size_t index, const Entry& entry) {
    const check::JoinedOperation& one = *entry.operation;
    const check::Part& part = *entry.part;
    const check::Signature& signature = source_.SignatureOf(part);
    pickle_.BeginDict();
    Pair("record_id", static_cast<int64_t>(index));
    Pair("pg_id", static_cast<int64_t>(one.communicator));
    pickle_.Text("process_group");
    pickle_.BeginTuple();
    pickle_.Text(fmt::format("{}", one.communicator));
    pickle_.Text(Description(one.communicator));
    pickle_.EndTuple();
    Pair("collective_seq_id", one.is_transfer ? 0 : static_cast<int64_t>(one.number));
    Pair("p2p_seq_id", one.is_transfer ? static_cast<int64_t>(one.number) : 0);
    Pair("op_id", static_cast<int64_t>(part.call->seq));
    Pair("profiling_name", ProfilingName(one, part, signature));
    Pair("time_created_ns", static_cast<int64_t>(part.begin_ns));
    AddSizes(one, signature);
    Pair("state", part.is_open ? "started" : "completed");
    Pair("time_discovered_started_ns", static_cast<int64_t>(part.begin_ns));
    pickle_.Text("time_discovered_completed_ns");
    if (part.is_open)
      pickle_.None();
    else
      pickle_.Number(static_cast<int64_t>(part.end_ns));
    pickle_.Text("retired");
    pickle_.Bool(!part.is_open);
    Pair("timeout_ms", 600'000);
    pickle_.Text("is_p2p");
    pickle_.Bool(one.is_transfer);
    pickle_.Text("frames");
    pickle_.BeginList();
    for (const check::Place& place : source_.job.sites[part.call->site]) {
      pickle_.BeginDict();
      Pair("name", PlainText(place.function));
      Pair("filename", PlainText(place.file));
      Pair("line", place.line);
      pickle_.EndDict();
    }
    pickle_.EndList();
    pickle_.EndDict();
  }

  std::string ProfilingName(const check::JoinedOperation& one, const check::Part& part,
                            const check::Signature& signature) const {
    std::string name = fmt::format("nccl:{}", TorchName(signature.operation));
    if (!one.is_transfer) return name;
    const uint32_t own = source_.CommOf(one, part).rank;
    const int64_t peer = static_cast<const check::Transfer&>(*part.call).peer;
    return name + fmt::format(" {}{}{}", own, signature.operation == Operation::kSend ? "->" : "<-",
                              peer < 0 ? "?" : fmt::format("{}", peer));
  }

  void AddSizes(const check::JoinedOperation& one, const check::Signature& signature) {
    const bool has_size = signature.count != check::Signature::kAnyCount &&
                          signature.operation != Operation::kBarrier;
    const uint64_t ranks = source_.job.communicators[one.communicator].nranks;
    uint64_t input = has_size ? signature.count : 0;
    uint64_t output = input;
    if (signature.operation == Operation::kReduceScatter ||
        signature.operation == Operation::kScatter)
      input *= ranks;
    if (signature.operation == Operation::kAllGather || signature.operation == Operation::kGather)
      output *= ranks;
    const std::string_view type =
        signature.dtype == check::Signature::kNoType ? "Byte" : TorchType(signature.dtype);
    for (const auto& [name, size] : {std::pair{"input", input}, std::pair{"output", output}}) {
      pickle_.Text(fmt::format("{}_sizes", name));
      pickle_.BeginList();
      pickle_.BeginList();
      pickle_.Number(static_cast<int64_t>(size));
      pickle_.EndList();
      pickle_.EndList();
      pickle_.Text(fmt::format("{}_dtypes", name));
      pickle_.BeginList();
      pickle_.Text(type);
      pickle_.EndList();
    }
  }

  const ExportSource& source_;
  size_t rank_;
  ExportFile& file_;
  Pickle pickle_;
};

}  // namespace

Status ExportFlightRecorder(const ExportSource& source, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::create_directory(path, error))
    return FailErrno(fmt::format("exporting: {}: cannot make the folder", path), error.value());
  std::vector<std::vector<Entry>> entries(source.job.ranks.size());
  for (const check::JoinedOperation& one : source.operations)
    for (const check::Part& part : one.parts) entries[part.rank].push_back({&one, &part});
  for (size_t rank = 0; rank < entries.size(); ++rank) {
    std::stable_sort(
        entries[rank].begin(), entries[rank].end(),
        [](const Entry& a, const Entry& b) { return a.part->begin_ns < b.part->begin_ns; });
    DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(fmt::format("{}/{}{}", path, kPrefix,
                                                                    source.job.ranks[rank].rank)));
    Dump(source, rank, file).Write(entries[rank]);
    DEJA_RETURN_IF_ERROR(file.Finish());
  }
  return {};
}

}  // namespace deja::cli
