#include "cli/import/import_trace.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/c10d_table.h"
#include "cli/version.h"
#include "common/process/process_identity.h"
#include "format/layout/rank_folder.h"
#include "format/log/rank_writer.h"
#include "format/reader/imported.h"
#include "format/wire/format_version.h"
#include "format/wire/message_codec.h"

namespace deja::cli {
namespace {

using api::C10dApi;

constexpr uint64_t kMillisecondNs = 1'000'000;
// A watchdog writes its dump some time after an operation has timed out.
constexpr uint64_t kDumpDelayNs = uint64_t{600} * 1'000'000'000;
constexpr size_t kMostFrames = 32;

std::optional<C10dApi> ApiOf(std::string_view name) {
  static const std::map<std::string_view, C10dApi> known = {
      {"all_reduce", C10dApi::c10d_allreduce},
      {"allreduce", C10dApi::c10d_allreduce},
      {"allreduce_coalesced", C10dApi::c10d_allreduce_coalesced},
      {"broadcast", C10dApi::c10d_broadcast},
      {"_broadcast_oop", C10dApi::c10d_broadcast},
      {"reduce", C10dApi::c10d_reduce},
      {"_reduce_oop", C10dApi::c10d_reduce},
      {"all_gather", C10dApi::c10d_allgather},
      {"allgather", C10dApi::c10d_allgather},
      {"all_gather_v", C10dApi::c10d_allgather},
      {"all_gather_single", C10dApi::c10d_allgather_base},
      {"_all_gather_base", C10dApi::c10d_allgather_base},
      {"_allgather_base", C10dApi::c10d_allgather_base},
      {"allgather_coalesced", C10dApi::c10d_allgather_coalesced},
      {"ALLGATHER_coalesced", C10dApi::c10d_allgather_coalesced},
      {"all_gather_into_tensor_coalesced", C10dApi::c10d_allgather_into_tensor_coalesced},
      {"allgather_into_tensor_coalesced", C10dApi::c10d_allgather_into_tensor_coalesced},
      {"gather", C10dApi::c10d_gather},
      {"scatter", C10dApi::c10d_scatter},
      {"reduce_scatter", C10dApi::c10d_reduce_scatter},
      {"reduce_scatter_v", C10dApi::c10d_reduce_scatter},
      {"reduce_scatter_single", C10dApi::c10d_reduce_scatter_base},
      {"_reduce_scatter_base", C10dApi::c10d_reduce_scatter_base},
      {"REDUCE_SCATTER_coalesced", C10dApi::c10d_reduce_scatter_tensor_coalesced},
      {"reduce_scatter_tensor_coalesced", C10dApi::c10d_reduce_scatter_tensor_coalesced},
      {"all_to_all", C10dApi::c10d_alltoall},
      {"alltoall", C10dApi::c10d_alltoall},
      {"all_to_all_single", C10dApi::c10d_alltoall_base},
      {"all_to_all_v_single", C10dApi::c10d_alltoall_base},
      {"alltoall_base", C10dApi::c10d_alltoall_base},
      {"barrier", C10dApi::c10d_barrier},
      {"all_reduce_barrier", C10dApi::c10d_barrier},
      {"monitored_barrier", C10dApi::c10d_monitored_barrier},
      {"send", C10dApi::c10d_send},
      {"recv", C10dApi::c10d_recv},
      {"recv_anysource", C10dApi::c10d_recv_anysource},
  };
  const auto found = known.find(name);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

// Numbers of common/data_types.def, by the names of c10::ScalarType.
uint32_t TypeOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, uint32_t>, 15> kTypes = {
      {{"Char", 0},
       {"Byte", 1},
       {"Bool", 1},
       {"Int", 2},
       {"UInt32", 3},
       {"Long", 4},
       {"UInt64", 5},
       {"Half", 6},
       {"Float", 7},
       {"Double", 8},
       {"BFloat16", 9},
       {"Float8_e4m3fn", 10},
       {"Float8_e5m2", 11},
       {"Float8_e4m3fnuz", 10},
       {"Float8_e5m2fnuz", 11}}};
  for (const auto& [known, number] : kTypes)
    if (known == name) return number;
  return format::kRawBytes;
}

// What the ranks' dumps say together.
struct Common {
  std::string job_id;
  uint32_t world_size = 0;
  // The first collective that all dumps of a group have, by its name.
  std::map<std::string, uint64_t> first;
  std::map<std::string, std::vector<uint32_t>> members;  // ranks of the job, by their rank in it
  std::map<std::string, std::string> descriptions;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

class DumpWriter {
 public:
  DumpWriter(const FlightDump& dump, const Common& common, format::RankWriter& writer,
             ImportSummary& summary)
      : dump_(dump), common_(common), writer_(writer), summary_(summary) {}

  Status Write() {
    DEJA_RETURN_IF_ERROR(WriteHeader());
    Add(common_.begin_ns, format::ThreadStart{0, "0", 0});
    AddGroups();
    for (const FlightEntry& entry : dump_.entries) AddEntry(entry);
    AddEnds();
    const std::string note =
        fmt::format("imported from a dump of PyTorch's Flight Recorder, version {}", dump_.version);
    Add(common_.end_ns, format::Note{note});
    DEJA_RETURN_IF_ERROR(written_);
    DEJA_RETURN_IF_ERROR(writer_.WriteBatch());
    return writer_.Finish(format::Footer{});
  }

 private:
  struct End {
    uint64_t time_ns = 0;
    format::CallResults results;
  };

  Status WriteHeader() {
    const std::string producer = fmt::format("deja {}{}", kVersion, format::kImportedSuffix);
    format::TraceHeader header;
    header.format_major = format::kFormatMajor;
    header.format_minor = format::kFormatMinor;
    header.producer = producer;
    header.job_id = common_.job_id;
    header.rank = dump_.rank;
    header.world_size = common_.world_size;
    header.process.hostname = dump_.host;
    header.start_wall_ns = header.start_mono_ns = common_.begin_ns;
    for (const api::ApiInfo& info : api::C10dTable()) header.apis.push_back({info.id, info.name});
    return writer_.SetHeader(header);
  }

  template <typename Body>
  uint64_t Add(uint64_t time_ns, const Body& body) {
    const uint64_t seq = seq_++;
    const std::string encoded =
        format::EncodeEventToString(format::EventHead{0, seq, time_ns}, body);
    writer_.AddEvent(format::AsBytes(encoded));
    if (writer_.batch_bytes() >= format::kBatchBytes && written_) written_ = writer_.WriteBatch();
    return seq;
  }

  void AddGroups() {
    for (const auto& [name, members] : common_.members) {
      const auto place = std::find(members.begin(), members.end(), dump_.rank);
      if (place == members.end()) continue;
      format::CommCreated created;
      created.comm = static_cast<uint32_t>(numbers_.size()) + 1;
      created.hash = std::hash<std::string>{}(name) | 1;
      created.rank = static_cast<uint32_t>(place - members.begin());
      created.nranks = static_cast<uint32_t>(members.size());
      const auto description = common_.descriptions.find(name);
      created.name = description == common_.descriptions.end() ? name : description->second;
      created.device = -1;
      numbers_[name] = created.comm;
      Add(common_.begin_ns, created);
    }
  }

  uint32_t StackOf(const std::vector<FlightFrame>& frames) {
    if (frames.empty()) return 0;
    format::StackDefined stack;
    std::vector<std::pair<uint32_t, uint32_t>> key;
    for (const FlightFrame& frame : frames) {
      if (key.size() == std::min(kMostFrames, format::kMaxStackFrames)) break;
      const std::string path = fmt::format("python:{}:{}", frame.function, frame.file);
      const auto [module, is_new] =
          modules_.try_emplace(path, static_cast<uint32_t>(modules_.size()) + 1);
      if (is_new) {
        format::ModuleLoaded loaded;
        loaded.module = module->second;
        loaded.path = path;
        Add(common_.begin_ns, loaded);
      }
      key.emplace_back(module->second, frame.line);
      stack.frames.push_back({module->second, frame.line});
    }
    const auto [known, is_new] =
        stacks_.try_emplace(key, static_cast<uint32_t>(stacks_.size()) + 1);
    stack.stack = known->second;
    if (is_new) Add(common_.begin_ns, stack);
    return known->second;
  }

  void AddEntry(const FlightEntry& entry) {
    const auto group = numbers_.find(entry.group);
    const auto api = ApiOf(entry.name);
    if (group == numbers_.end() || !api) {
      ++unknown_[entry.name];
      return;
    }
    const auto first = common_.first.find(entry.group);
    if (!entry.is_transfer && first != common_.first.end() && entry.number < first->second) return;
    FlushEnds(entry.created_ns);
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(*api);
    enter.comm = group->second;
    enter.comm_seq = ++operations_[group->second];
    enter.stack = StackOf(entry.frames);
    // As many arguments as are known: operator and root are not in a dump.
    if (!entry.dtype.empty() && *api != C10dApi::c10d_barrier &&
        *api != C10dApi::c10d_monitored_barrier) {
      for (const uint64_t argument : {uint64_t{0}, entry.input_count, uint64_t{0},
                                      entry.output_count, uint64_t{TypeOf(entry.dtype)}})
        enter.args.push_back(argument);
      if (entry.is_transfer && entry.peer) enter.args.push_back(*entry.peer);
    }
    format::CallLeave leave;
    leave.enter_seq = Add(entry.created_ns, enter);
    Add(entry.created_ns, leave);
    ++summary_.operations;
    if (!entry.is_completed) return;
    End end;
    end.time_ns = std::max(entry.completed_ns.value_or(entry.created_ns), entry.created_ns);
    end.results.comm = enter.comm;
    end.results.comm_seq = enter.comm_seq;
    ends_.emplace(end.time_ns, end.results);
  }

  // A thread's events come by time.
  void FlushEnds(uint64_t until_ns) {
    while (!ends_.empty() && ends_.begin()->first <= until_ns) {
      Add(ends_.begin()->first, ends_.begin()->second);
      ends_.erase(ends_.begin());
    }
  }
  void AddEnds() {
    FlushEnds(UINT64_MAX);
    for (const auto& [name, count] : unknown_)
      summary_.missing.push_back(
          fmt::format("rank {}: {} operations '{}' are left out: their name "
                      "or group is not known",
                      dump_.rank, count, name));
  }

  const FlightDump& dump_;
  const Common& common_;
  format::RankWriter& writer_;
  ImportSummary& summary_;
  Status written_;
  uint64_t seq_ = 0;
  std::map<std::string, uint32_t> numbers_;  // of groups, as CommCreated has them
  std::map<uint32_t, uint64_t> operations_;  // by that number
  std::map<std::string, uint32_t> modules_;  // by path
  std::map<std::vector<std::pair<uint32_t, uint32_t>>, uint32_t> stacks_;
  std::multimap<uint64_t, format::CallResults> ends_;
  std::map<std::string, uint64_t> unknown_;
};

void FindMembers(const std::vector<FlightDump>& dumps, Common& common) {
  for (const FlightDump& dump : dumps) {
    common.world_size = std::max(common.world_size, dump.rank + 1);
    for (const auto& [name, group] : dump.groups) {
      std::vector<uint32_t>& members = common.members[name];
      if (members.size() < group.ranks.size()) members = group.ranks;
      if (!group.description.empty()) common.descriptions[name] = group.description;
      for (const uint32_t rank : group.ranks)
        common.world_size = std::max(common.world_size, rank + 1);
    }
  }
}

// Gloo's groups have no name in a dump's list of groups, but in its operations. If there is one
// group, the list says who is in it; else those are whose dumps have operations of it.
void FindUnnamedMembers(const std::vector<FlightDump>& dumps, Common& common) {
  std::map<std::string, std::set<uint32_t>> users;
  for (const FlightDump& dump : dumps)
    for (const FlightEntry& entry : dump.entries) {
      if (common.members.contains(entry.group)) continue;
      users[entry.group].insert(dump.rank);
      if (!entry.description.empty()) common.descriptions[entry.group] = entry.description;
    }
  const auto unnamed = common.members.find("");
  for (const auto& [name, ranks] : users)
    common.members[name] = users.size() == 1 && unnamed != common.members.end()
                               ? unnamed->second
                               : std::vector<uint32_t>(ranks.begin(), ranks.end());
  if (!users.contains("")) common.members.erase("");
}

// Old operations are overwritten in the ring of each rank: what not all have is left out.
void FindFirst(const std::vector<FlightDump>& dumps, Common& common, ImportSummary& summary) {
  for (const FlightDump& dump : dumps) {
    std::map<std::string, uint64_t> of_dump;
    for (const FlightEntry& entry : dump.entries) {
      if (entry.is_transfer || !ApiOf(entry.name)) continue;
      const auto [first, added] = of_dump.try_emplace(entry.group, entry.number);
      first->second = std::min(first->second, entry.number);
    }
    for (const auto& [group, number] : of_dump) {
      const auto [first, added] = common.first.try_emplace(group, number);
      first->second = std::max(first->second, number);
    }
  }
  for (const auto& [group, number] : common.first)
    if (number > 1)
      summary.missing.push_back(fmt::format(
          "group {}: collectives begin at #{} of the dumps, which is #1 here", group, number));
}

// When the dumps were written: by their files, unless these were copied later.
void FindTimes(const std::vector<FlightDump>& dumps, Common& common, ImportSummary& summary) {
  uint64_t written = 0;
  uint64_t timeout_ns = 0;
  uint64_t open_since = 0;
  common.begin_ns = UINT64_MAX;
  for (const FlightDump& dump : dumps) {
    written = std::max(written, dump.written_ns);
    for (const FlightEntry& entry : dump.entries) {
      common.begin_ns = std::min(common.begin_ns, entry.created_ns);
      common.end_ns = std::max({common.end_ns, entry.created_ns, entry.completed_ns.value_or(0)});
      if (entry.is_completed) continue;
      timeout_ns = std::max(timeout_ns, entry.timeout_ms * kMillisecondNs);
      open_since = std::max(open_since, entry.created_ns);
    }
  }
  common.begin_ns = std::min(common.begin_ns, common.end_ns);
  if (open_since == 0) return;
  const uint64_t latest = std::max(common.end_ns, open_since + timeout_ns);
  if (written >= common.end_ns && written <= latest + kDumpDelayNs) {
    common.end_ns = written;
    return;
  }
  common.end_ns = latest;
  summary.missing.emplace_back(
      "the dumps do not say when they were written: operations that are not done are taken to "
      "have timed out");
}

}  // namespace

Result<ImportSummary> ImportTrace(const std::vector<FlightDump>& dumps, const std::string& out) {
  ImportSummary summary;
  Common common;
  std::array<uint8_t, 16> id{};
  RandomBytes(id.data(), id.size());
  common.job_id.assign(id.begin(), id.end());
  FindMembers(dumps, common);
  FindUnnamedMembers(dumps, common);
  FindFirst(dumps, common, summary);
  FindTimes(dumps, common, summary);
  summary.world_size = common.world_size;
  if (mkdir(out.c_str(), 0700) != 0) return FailErrno("importing: making " + out, errno);
  std::set<uint32_t> there;
  for (const FlightDump& dump : dumps) {
    const std::string folder = out + "/" + format::MakeRankFolderName(dump.rank, 0);
    DEJA_ASSIGN_OR_RETURN(const auto writer, format::RankWriter::Create(folder, {}));
    DEJA_RETURN_IF_ERROR(DumpWriter(dump, common, *writer, summary).Write());
    there.insert(dump.rank);
  }
  if (there.size() < common.world_size)
    summary.missing.push_back(fmt::format("{} of {} ranks have no dump",
                                          common.world_size - there.size(), common.world_size));
  return summary;
}

}  // namespace deja::cli
