#include "cli/fold_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

#include "common/ids.h"
#include "preload/api/curand_table.h"
#include "preload/api/mpi_table.h"
#include "preload/api/nccl_table.h"

namespace deja::cli {
namespace {

// Of the folder's path: what a socket's address has room for beside the name in it.
constexpr size_t kLongestFolder = 70;

using CommKey = std::pair<uint64_t, uint32_t>;  // hash and ranks
using RankComms = std::map<uint32_t, CommKey>;  // by number + 1
// Which of its ranks are replayed.
using Presence = std::map<CommKey, std::set<uint32_t>>;

const char* LevelName(uint32_t level) {
  return level == static_cast<uint32_t>(Level::kDigest) ? "digest" : "order";
}

bool IsNccl(uint32_t api) {
  return preload::FindNccl(api) != nullptr;
}

void ReadComms(const format::RankReader& reader, RankComms& comms, Presence& presence) {
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCommCreated))) {
    const auto* comm = event->As<format::CommCreated>();
    const CommKey key{comm->hash, comm->nranks};
    comms[comm->comm] = key;
    presence[key].insert(comm->rank);
  }
}

Status Refuse(const format::RankReader& reader, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("replaying rank {}: it was recorded at level {}, which keeps no results "
                          "of collectives to serve; {}",
                          reader.header().rank, LevelName(reader.header().level), why));
}

// Everything that has no bytes to be served can be computed.
Status CheckOperations(const format::RankReader& reader, const RankComms& comms,
                       const Presence& presence, size_t replayed) {
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCallEnter))) {
    const auto& call = *event->As<format::CallEnter>();
    if (preload::IsMpi(call.api))
      return Refuse(reader, "those of MPI are not computed. Record it again with --level full");
    if (call.comm_seq == 0 || preload::IsCurand(call.api)) continue;
    if (!IsNccl(call.api))
      return Refuse(reader,
                    "those of torch.distributed's own backends are not computed. Record it again "
                    "with --level full");
    const auto comm = comms.find(call.comm);
    if (comm == comms.end()) continue;
    const uint32_t nranks = comm->second.second;
    const size_t there = presence.at(comm->second).size();
    if (there >= nranks) continue;
    return Refuse(
        reader, fmt::format("comm {} has {} ranks, of which {} {} to be replayed ({} in all). "
                            "Replay all ranks of it together (--all, --ranks A-B), which computes "
                            "its collectives among them, or record it again with --level full",
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
  Presence presence;
  std::vector<RankComms> comms(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) ReadComms(*ranks[i], comms[i], presence);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i]->header().level != static_cast<uint32_t>(Level::kFull))
      DEJA_RETURN_IF_ERROR(CheckOperations(*ranks[i], comms[i], presence, ranks.size()));
  for (const auto& [comm, there] : presence)
    if (there.size() == comm.second) plan.comms.insert(comm);
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
    // Of names of MIG devices the driver takes the first one alone.
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
  environment.push_back(fmt::format("DEJA_DEVICES={}/{}", here, std::max(recorded, here)));
}

Result<std::string> MakeMeetingFolder(const FoldPlan& plan, const std::string& scratch) {
  const std::string folder = scratch + "/fold";
  if (folder.size() > kLongestFolder)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the ranks cannot meet in {}: its path has {} bytes, and a socket's "
                            "has room for {}. Give a shorter --scratch, or TMPDIR",
                            folder, folder.size(), kLongestFolder));
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) return FailErrno("making " + folder, error.value());
  std::ofstream out(folder + "/comms");
  for (const auto& [hash, nranks] : plan.comms) out << fmt::format("{:016x} {}\n", hash, nranks);
  out.close();
  if (!out) return FailErrno("writing " + folder + "/comms", errno);
  return folder;
}

}  // namespace deja::cli
