#include "comms.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace digits {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

constexpr auto kIdTimeout = 60s;

int FromEnvironment(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return otherwise;
}

void WriteId(const ncclUniqueId& id, const std::string& file) {
  const std::string unfinished = file + ".new";
  std::ofstream(unfinished, std::ios::binary).write(id.internal, sizeof id.internal);
  if (std::rename(unfinished.c_str(), file.c_str()) != 0) {
    std::perror(("digits_train: cannot write " + file).c_str());
    std::exit(1);
  }
}

ncclUniqueId ReadId(const std::string& file) {
  const auto deadline = std::chrono::steady_clock::now() + kIdTimeout;
  ncclUniqueId id;
  while (!std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal)) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::fprintf(stderr, "digits_train: rank 0 has not written %s\n", file.c_str());
      std::exit(1);
    }
    std::this_thread::sleep_for(10ms);
  }
  return id;
}

}  // namespace

Job JobFromEnvironment() {
  Job job;
  job.rank =
      FromEnvironment({"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
  job.size = FromEnvironment({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1);
  if (job.size < 1 || job.rank < 0 || job.rank >= job.size) {
    std::fprintf(stderr, "digits_train: the environment says rank %d of %d\n", job.rank, job.size);
    std::exit(2);
  }
  return job;
}

Communicator::Communicator(const Job& job, const Device& device, const std::string& id_file)
    : name_("world"),
      job_rank_(job.rank),
      rank_(job.rank),
      size_(job.size),
      stream_(device.stream()) {
  ncclUniqueId id;
  if (!id_file.empty() && rank_ != 0) {
    id = ReadId(id_file);
  } else {
    if (id_file.empty() && size_ > 1 && !std::getenv("NCCL_COMM_ID")) {
      std::fprintf(stderr,
                   "digits_train: set NCCL_COMM_ID=host:port for all ranks, or give --id-file\n");
      std::exit(2);
    }
    Check(ncclGetUniqueId(&id), "ncclGetUniqueId", "the id of the job");
    if (!id_file.empty()) WriteId(id, id_file);
  }
  Check(ncclCommInitRank(&comm_, size_, id, rank_), "ncclCommInitRank", "all ranks");
}

Communicator::Communicator(const Communicator& parent, const char* name, int color, int key)
    : name_(name), job_rank_(parent.job_rank_), stream_(parent.stream_) {
  Check(ncclCommSplit(parent.comm_, color, key, &comm_, nullptr), "ncclCommSplit", name);
  Check(ncclCommUserRank(comm_, &rank_), "ncclCommUserRank", name);
  Check(ncclCommCount(comm_, &size_), "ncclCommCount", name);
}

Communicator::~Communicator() {
  Check(ncclCommFinalize(comm_), "ncclCommFinalize", name_);
  Check(ncclCommDestroy(comm_), "ncclCommDestroy", name_);
}

void Communicator::CheckForErrors() const {
  ncclResult_t error = ncclSuccess;
  Check(ncclCommGetAsyncError(comm_, &error), "ncclCommGetAsyncError", "all operations");
  if (error != ncclInProgress) Check(error, "an operation", "earlier calls");
}

void Communicator::Check(ncclResult_t result, const char* call, const char* what) const {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "rank %d: %s of %s on communicator %s failed: %s; %s\n", job_rank_, call,
               what, name_, ncclGetErrorString(result), ncclGetLastError(comm_));
  std::exit(1);
}

}  // namespace digits
