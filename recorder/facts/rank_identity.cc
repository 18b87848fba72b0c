#include "recorder/facts/rank_identity.h"

#include <cstddef>
#include <cstdlib>

namespace deja::recorder {
namespace {

// The three variables of one launcher. torchrun's come first: a program that sets them itself
// (from MPI's, say) means them.
struct LauncherVariables {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

constexpr LauncherVariables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

bool ReadNumber(const char* name, uint32_t& value) {
  const char* text = std::getenv(name);
  if (text == nullptr || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  unsigned long long number = std::strtoull(text, &end, 10);
  if (*end != '\0' || number >= 0xffffffffu) return false;
  value = static_cast<uint32_t>(number);
  return true;
}

}  // namespace

RankIdentity FindRankIdentity(int rank, int nranks) {
  RankIdentity identity;
  for (const LauncherVariables& launcher : kLaunchers) {
    if (!ReadNumber(launcher.rank, identity.rank)) continue;
    if (!ReadNumber(launcher.world_size, identity.world_size)) identity.world_size = 0;
    if (!ReadNumber(launcher.local_rank, identity.local_rank)) identity.local_rank = 0;
    return identity;
  }
  identity.rank = rank < 0 ? 0 : static_cast<uint32_t>(rank);
  identity.world_size = nranks < 0 ? 0 : static_cast<uint32_t>(nranks);
  identity.local_rank = identity.rank;
  return identity;
}

bool HasLauncherRank() {
  uint32_t rank = 0;
  for (const LauncherVariables& launcher : kLaunchers)
    if (ReadNumber(launcher.rank, rank)) return true;
  return false;
}

}  // namespace deja::recorder
