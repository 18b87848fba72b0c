#include "cli/replay/fold/fold_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "api/curand_table.h"
#include "api/mpi_table.h"
#include "api/nccl_table.h"
#include "cli/events/comm_names.h"
#include "cli/own_variables.h"
#include "cli/replay/start/replay_launch.h"
#include "common/ids.h"
#include "format/scratch/fold_files.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

// The longest path of the folder: a socket's address also has to hold a name in it.
constexpr size_t kLongestFolder = 70;

// Which of its ranks are replayed.
using Presence = std::map<CommKey, std::set<uint32_t>>;

const char* LevelName(uint32_t level) {
  return level == static_cast<uint32_t>(Level::kDigest) ? "digest" : "order";
}

bool IsNccl(uint32_t api) {
  return api::FindNccl(api) != nullptr;
}

std::vector<format::CommCreated> ReadComms(const format::RankReader& reader, CommNames& names) {
  std::vector<format::CommCreated> comms;
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCommCreated))) {
    comms.push_back(*event->As<format::CommCreated>());
    comms.back().name = {};  // the event's
    names.Add(comms.back().hash, comms.back().joined_as);
  }
  return comms;
}

Status Refuse(const format::RankReader& reader, std::string_view why) {
  DEJA_RETURN_IF_ERROR(CheckRecorded(reader.header()));
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("replaying: rank {}: level {} keeps no results of collectives to serve, and {}",
                  reader.header().rank, LevelName(reader.header().level), why));
}

// Everything that has no bytes to be served can be computed.
Status CheckOperations(const format::RankReader& reader, const RankComms& comms,
                       const Presence& presence, size_t replayed) {
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCallEnter))) {
    const auto& call = *event->As<format::CallEnter>();
    if (api::IsMpi(call.api))
      return Refuse(reader, "those of MPI are not computed; record it again with --level full");
    if (call.comm_seq == 0 || api::IsCurand(call.api)) continue;
    if (!IsNccl(call.api))
      return Refuse(reader,
                    "those of torch.distributed's own backends are not computed; record it again "
                    "with --level full");
    const auto comm = comms.find(call.comm);
    if (comm == comms.end()) continue;
    const uint32_t nranks = comm->second.second;
    const size_t there = presence.at(comm->second).size();
    if (there >= nranks) continue;
    return Refuse(
        reader,
        fmt::format(
            "comm {} has {} ranks, of which {} {} to be replayed ({} in all); replay all its ranks "
            "together (--all, --ranks A-B) to compute them, or record it again with --level full",
            comm->first - 1, nranks, there, there == 1 ? "is" : "are", replayed));
  }
  return {};
}

}  // namespace

Result<FoldPlan> PlanFold(std::span<const format::RankReader* const> ranks, bool asked) {
  bool needed = asked;
  for (const format::RankReader* reader : ranks)
    needed = needed || reader->header().level != static_cast<uint32_t>(Level::kFull);
  FoldPlan plan;
  if (!needed) return plan;
  CommNames names;
  std::vector<std::vector<format::CommCreated>> created;
  for (const format::RankReader* reader : ranks) created.push_back(ReadComms(*reader, names));
  Presence presence;
  std::vector<RankComms> comms(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (const format::CommCreated& comm : created[i]) {
      const CommKey key{names.Of(comm.hash), comm.nranks};
      comms[i][comm.comm] = key;
      presence[key].insert(comm.rank);
      if (key.first != comm.hash) plan.other_names[{comm.hash, comm.nranks}] = key.first;
    }
  }
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i]->header().level != static_cast<uint32_t>(Level::kFull))
      DEJA_RETURN_IF_ERROR(CheckOperations(*ranks[i], comms[i], presence, ranks.size()));
  for (const auto& [comm, there] : presence)
    if (there.size() == comm.second) plan.comms.insert(comm);
  if (plan.computes()) plan.others_results = FindOthersResults(ranks, comms);
  if (asked && plan.comms.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--compute: no communicator has all of its ranks among those to be replayed; "
                "replay them together: --all");
  return plan;
}

std::vector<uint32_t> RecordedDevices(std::span<const format::RankReader* const> ranks,
                                      std::span<const format::RankReader* const> job) {
  std::vector<uint32_t> devices;
  for (const format::RankReader* rank : ranks) {
    const std::string_view host = rank->header().process.hostname;
    devices.push_back(static_cast<uint32_t>(
        std::count_if(job.begin(), job.end(), [&](const format::RankReader* other) {
          return other->header().process.hostname == host;
        })));
  }
  return devices;
}

void UseDevices(uint32_t here, uint32_t recorded, std::vector<std::string>& environment) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  for (std::string& entry : environment) {
    if (entry.rfind(kVisible, 0) != 0) continue;
    std::string_view list = std::string_view(entry).substr(kVisible.size());
    if (list.empty()) return;  // the program was to have none
    // The driver takes only the first name of a MIG device.
    const auto named = list.rfind("MIG-", 0) == 0
                           ? 1
                           : static_cast<uint32_t>(std::count(list.begin(), list.end(), ',')) + 1;
    recorded = named;
    uint32_t only = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), only);
    const bool is_number = error == std::errc() && end == list.data() + list.size();
    std::string names = is_number ? std::to_string(only % here) : "0";
    for (uint32_t i = 1; named > 1 && i < std::min(here, named); ++i)
      names += fmt::format(",{}", i);
    entry = std::string(kVisible) + names;
    here = named > 1 ? std::min(here, named) : 1;
    break;
  }
  environment.push_back(Entry(env::kDevices, fmt::format("{}/{}", here, std::max(recorded, here))));
}

Result<std::string> MakeMeetingFolder(const FoldPlan& plan, const std::string& scratch) {
  const std::string folder = scratch + format::kFoldFolder;
  if (folder.size() > kLongestFolder)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("replaying: {}: its path has {} bytes, and a socket's has room for {}; "
                            "give a shorter --scratch, or TMPDIR",
                            folder, folder.size(), kLongestFolder));
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) return FailErrno("making: " + folder, error.value());
  std::vector<format::FoldResult> results;
  for (const auto& [meets, nranks, seq] : plan.others_results)
    results.push_back({meets, nranks, seq});
  DEJA_RETURN_IF_ERROR(format::WriteFoldResults(folder, results));
  std::vector<format::FoldComm> comms;
  for (const auto& [hash, nranks] : plan.comms) comms.push_back({hash, nranks, hash});
  for (const auto& [other, meets] : plan.other_names)
    if (plan.comms.count({meets, other.second}) != 0)
      comms.push_back({other.first, other.second, meets});
  DEJA_RETURN_IF_ERROR(format::WriteFoldComms(folder, comms));
  return folder;
}

}  // namespace deja::cli
