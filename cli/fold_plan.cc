#include "cli/fold_plan.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

#include "common/ids.h"
#include "preload/api/curand_table.h"
#include "preload/api/mpi_table.h"
#include "preload/api/nccl_table.h"

namespace deja::cli {
namespace {

// Of the folder's path: what a socket's address has room for beside the name in it.
constexpr size_t kLongestFolder = 70;

using RankComms = std::map<uint32_t, uint64_t>;  // hashes by number + 1

const char* LevelName(uint32_t level) {
  return level == static_cast<uint32_t>(Level::kDigest) ? "digest" : "order";
}

bool IsNccl(uint32_t api) {
  return preload::FindNccl(api) != nullptr;
}

// How many of a communicator's ranks are replayed.
struct Presence {
  uint32_t nranks = 0;
  std::set<uint32_t> ranks;  // in the communicator
};

void ReadComms(const format::RankReader& reader, RankComms& comms,
               std::map<uint64_t, Presence>& presence) {
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kCommCreated))) {
    const auto* comm = event->As<format::CommCreated>();
    comms[comm->comm] = comm->hash;
    Presence& there = presence[comm->hash];
    there.nranks = comm->nranks;
    there.ranks.insert(comm->rank);
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
                       const std::map<uint64_t, Presence>& presence, size_t replayed) {
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
    const Presence& there = presence.at(comm->second);
    if (there.ranks.size() >= there.nranks) continue;
    return Refuse(
        reader, fmt::format("comm {} has {} ranks, of which {} {} to be replayed ({} in all). "
                            "Replay all ranks of it together (--all, --ranks A-B), which computes "
                            "its collectives among them, or record it again with --level full",
                            comm->first - 1, there.nranks, there.ranks.size(),
                            there.ranks.size() == 1 ? "is" : "are", replayed));
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
  std::map<uint64_t, Presence> presence;
  std::vector<RankComms> comms(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) ReadComms(*ranks[i], comms[i], presence);
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i]->header().level != static_cast<uint32_t>(Level::kFull))
      DEJA_RETURN_IF_ERROR(CheckOperations(*ranks[i], comms[i], presence, ranks.size()));
  for (const auto& [hash, there] : presence)
    if (there.nranks != 0 && there.ranks.size() == there.nranks) plan.comms.insert(hash);
  if (asked && plan.comms.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--compute: no communicator has all of its ranks among those to be replayed; "
                "replay them together: --all");
  return plan;
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
  for (const uint64_t hash : plan.comms) out << fmt::format("{:016x}\n", hash);
  out.close();
  if (!out) return FailErrno("writing " + folder + "/comms", errno);
  return folder;
}

}  // namespace deja::cli
