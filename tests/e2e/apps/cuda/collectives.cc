// Every collective and point-to-point call with device buffers. Types, operators, in place and not,
// groups, communicators of a part of the ranks, registered and allocated by NCCL. No kernel: copies
// make the inputs, overwrite them after each call and keep each result. Nothing waits before the
// end. So the program runs on any CUDA driver and NCCL. It prints a hash of all results.
//
//   --unseeded        the inputs' seed is from random(4)
//   --count=N         elements (33, and 1000)
//   --memory=KIND     device, managed or pinned buffers
//   --nonblocking     communicators that do not block
//   --fault=N         the input of call N is changed (on rank 1)
#include <dlfcn.h>
#include <sched.h>
#include <sys/random.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/e2e/apps/cuda/device.h"

using cuda_app::Buffer;
using cuda_app::ForNccl;
using cuda_app::Has;

namespace {

constexpr ncclDataType_t kTypes[] = {ncclInt8,    ncclUint8,   ncclInt32,   ncclUint32,
                                     ncclInt64,   ncclUint64,  ncclFloat16, ncclFloat32,
                                     ncclFloat64, ncclBfloat16};
constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

size_t SizeOf(ncclDataType_t type) {
  return kSizes[type];
}

CUdeviceptr Allocate(const std::string& kind, size_t bytes) {
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  if (kind == "managed") {
    CUDA_CHECK(cuMemAllocManaged(&memory, bytes, CU_MEM_ATTACH_GLOBAL));
  } else if (kind == "pinned") {
    CUDA_CHECK(cuMemHostAlloc(&pinned, bytes, 0));
    memory = reinterpret_cast<uintptr_t>(pinned);
  } else {
    CUDA_CHECK(cuMemAlloc_v2(&memory, bytes));
  }
  return memory;
}

void WaitUntilReady(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    JOB_CHECK(ncclCommGetAsyncError(comm, &state));
    sched_yield();
  }
  JOB_CHECK(state);
}

// A call on a communicator that does not block may be under way when it returns.
#define STARTED(call)                                    \
  do {                                                   \
    ncclResult_t started_ = (call);                      \
    if (started_ != ncclInProgress) JOB_CHECK(started_); \
  } while (0)

// What the program puts on the stream comes after the call only when that is on it.
void Issued(ncclResult_t result, ncclComm_t comm) {
  if (result == ncclInProgress)
    WaitUntilReady(comm);
  else
    JOB_CHECK(result);
}

class Job {
 public:
  Job(int argc, char** argv)
      : seed_(static_cast<unsigned>(100 + job_rank())),
        fault_(job_rank() == 1 ? job_number(argc, argv, "--fault", 0) : 0) {
    const char* kind = job_option(argc, argv, "--memory");
    kind_ = kind == nullptr ? "device" : kind;
    if (Has(argc, argv, "--unseeded") && getrandom(&seed_, sizeof seed_, 0) != sizeof seed_)
      exit(98);
    cuda_app::MakeContext();
    MakeCommunicators(Has(argc, argv, "--nonblocking"));
  }

  void Run(size_t count);
  void Finish();

 private:
  void MakeCommunicators(bool nonblocking) {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (nonblocking) config.blocking = 0;
    JOB_CHECK(ncclGetUniqueId(&id));
    STARTED(ncclCommInitRankConfig(&all_, job_size(), id, job_rank(), &config));
    WaitUntilReady(all_);
    STARTED(ncclCommSplit(all_, job_rank() / 2, job_rank(), &part_, nullptr));
    WaitUntilReady(all_);
    WaitUntilReady(part_);
    JOB_CHECK(ncclCommCount(part_, &part_size_));
    CUDA_CHECK(cuStreamCreate(&streams_[0], CU_STREAM_NON_BLOCKING));
    CUDA_CHECK(cuStreamCreate(&streams_[1], CU_STREAM_NON_BLOCKING));
  }

  // Puts `bytes` pseudorandom bytes there, small enough to be finite numbers of every type.
  void Make(CUdeviceptr to, size_t bytes, unsigned seed, CUstream stream) {
    std::vector<unsigned char> made(bytes);
    uint64_t state = seed;
    for (unsigned char& byte : made) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<unsigned char>(state >> 57) & 0x3b;
    }
    CUDA_CHECK(cuMemcpyAsync(to, reinterpret_cast<uintptr_t>(made.data()), bytes, stream));
  }
  // Keeps what is at `from` when the stream has come so far, and overwrites it.
  void Keep(CUdeviceptr from, size_t bytes, CUstream stream) {
    CUdeviceptr copy = Allocate("device", bytes);
    CUDA_CHECK(cuMemcpyAsync(copy, from, bytes, stream));
    kept_.push_back({copy, bytes, stream});
    Make(from, bytes, 7, stream);
  }
  // One call with an input and an output of that many bytes, on one of the streams.
  using Operation = std::function<ncclResult_t(void* in, void* out, cudaStream_t stream)>;
  void Do(size_t in_bytes, size_t out_bytes, const Operation& operation);
  // The same with one buffer for both; where in it the input is.
  void DoInPlace(size_t bytes, size_t in_offset, size_t out_offset, size_t out_bytes,
                 const Operation& operation);

  void Reductions(size_t count, ncclDataType_t type);
  void Copies(size_t count, ncclDataType_t type);
  void PointToPoint(size_t count);
  void WithAllocatedMemory(size_t count);
  void WithScalar(size_t count);

  unsigned NextSeed() {
    const unsigned changed = ++calls_ == fault_ ? 1 : 0;
    return seed_ * 977 + static_cast<unsigned>(calls_) * 31 + changed;
  }

  struct Kept {
    CUdeviceptr memory;
    size_t bytes;
    CUstream stream;
  };
  unsigned seed_;
  int fault_;
  std::string kind_;
  ncclComm_t all_ = nullptr;
  ncclComm_t part_ = nullptr;
  int part_size_ = 0;
  CUstream streams_[2] = {};
  int calls_ = 0;
  std::vector<Kept> kept_;
};

void Job::Do(size_t in_bytes, size_t out_bytes, const Operation& operation) {
  const unsigned seed = NextSeed();
  CUstream stream = streams_[0];
  CUdeviceptr in = Allocate(kind_, in_bytes);
  CUdeviceptr out = Allocate(kind_, out_bytes);
  Make(in, in_bytes, seed, stream);
  Make(out, out_bytes, 3, stream);
  Issued(operation(Buffer(in), Buffer(out), ForNccl(stream)), all_);
  Make(in, in_bytes, 5, stream);  // nothing has waited for it to be read
  Keep(out, out_bytes, stream);
}

void Job::DoInPlace(size_t bytes, size_t in_offset, size_t out_offset, size_t out_bytes,
                    const Operation& operation) {
  const unsigned seed = NextSeed();
  CUstream stream = streams_[0];
  CUdeviceptr both = Allocate(kind_, bytes);
  Make(both, bytes, seed, stream);
  Issued(operation(Buffer(both + in_offset), Buffer(both + out_offset), ForNccl(stream)), all_);
  Keep(both + out_offset, out_bytes, stream);
}

void Job::Reductions(size_t count, ncclDataType_t type) {
  const auto n = static_cast<size_t>(job_size());
  const auto rank = static_cast<size_t>(job_rank());
  const size_t bytes = count * SizeOf(type);
  const int root = static_cast<int>(type) % job_size();
  for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
    auto all_reduce = [&](void* in, void* out, cudaStream_t stream) {
      return ncclAllReduce(in, out, count, type, op, all_, stream);
    };
    auto reduce = [&](void* in, void* out, cudaStream_t stream) {
      return ncclReduce(in, out, count, type, op, root, all_, stream);
    };
    auto scatter = [&](void* in, void* out, cudaStream_t stream) {
      return ncclReduceScatter(in, out, count, type, op, all_, stream);
    };
    Do(bytes, bytes, all_reduce);
    DoInPlace(bytes, 0, 0, bytes, all_reduce);
    Do(bytes, bytes, reduce);
    DoInPlace(bytes, 0, 0, bytes, reduce);
    Do(bytes * n, bytes, scatter);
    DoInPlace(bytes * n, 0, rank * bytes, bytes, scatter);
  }
}

void Job::Copies(size_t count, ncclDataType_t type) {
  const auto n = static_cast<size_t>(job_size());
  const auto rank = static_cast<size_t>(job_rank());
  const size_t bytes = count * SizeOf(type);
  const int root = static_cast<int>(count) % job_size();
  auto gather = [&](void* in, void* out, cudaStream_t stream) {
    return ncclAllGather(in, out, count, type, all_, stream);
  };
  auto broadcast = [&](void* in, void* out, cudaStream_t stream) {
    return ncclBroadcast(in, out, count, type, root, all_, stream);
  };
  Do(bytes, bytes * n, gather);
  DoInPlace(bytes * n, rank * bytes, 0, bytes * n, gather);
  Do(bytes, bytes, broadcast);
  DoInPlace(bytes, 0, 0, bytes, broadcast);
  DoInPlace(bytes, 0, 0, bytes, [&](void* in, void*, cudaStream_t stream) {
    return ncclBcast(in, count, type, root, all_, stream);
  });
  // Since NCCL 2.28.
  using Exchange =
      ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
  using Rooted =
      ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  if (auto exchange = reinterpret_cast<Exchange>(dlsym(RTLD_DEFAULT, "ncclAlltoAll")))
    Do(bytes * n, bytes * n, [&](void* in, void* out, cudaStream_t stream) {
      return exchange(in, out, count, type, all_, stream);
    });
  for (const char* name : {"ncclGather", "ncclScatter"})
    if (auto rooted = reinterpret_cast<Rooted>(dlsym(RTLD_DEFAULT, name)))
      Do(bytes * n, bytes * n, [&](void* in, void* out, cudaStream_t stream) {
        return rooted(in, out, count, type, root, all_, stream);
      });
}

void Job::PointToPoint(size_t count) {
  const int next = (job_rank() + 1) % job_size();
  const int previous = (job_rank() + job_size() - 1) % job_size();
  const size_t bytes = count * sizeof(float);
  // A ring, and two collectives of another communicator and stream, in one group.
  CUdeviceptr other = Allocate(kind_, bytes);
  CUdeviceptr gathered = Allocate(kind_, bytes * static_cast<size_t>(part_size_));
  Make(other, bytes, NextSeed(), streams_[1]);
  Do(bytes, bytes, [&](void* in, void* out, cudaStream_t stream) {
    JOB_CHECK(ncclGroupStart());
    STARTED(ncclSend(in, count, ncclFloat32, next, all_, stream));
    STARTED(ncclRecv(out, count, ncclFloat32, previous, all_, stream));
    return ncclGroupEnd();
  });
  JOB_CHECK(ncclGroupStart());
  STARTED(ncclAllReduce(Buffer(other), Buffer(other), count, ncclFloat32, ncclSum, part_,
                        ForNccl(streams_[1])));
  STARTED(ncclAllGather(Buffer(other), Buffer(gathered), count, ncclFloat32, part_,
                        ForNccl(streams_[1])));
  Issued(ncclGroupEnd(), part_);
  Keep(gathered, bytes * static_cast<size_t>(part_size_), streams_[1]);
}

// ncclMemAlloc, and a buffer that is registered.
void Job::WithAllocatedMemory(size_t count) {
  const size_t bytes = count * sizeof(float);
  void* memory = nullptr;
  void* handle = nullptr;
  CUstream stream = streams_[0];
  // A communicator that does not block takes no such call while its work is under way.
  CUDA_CHECK(cuStreamSynchronize(stream));
  WaitUntilReady(all_);
  JOB_CHECK(ncclMemAlloc(&memory, bytes));
  const auto at = static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(memory));
  JOB_CHECK(ncclCommRegister(all_, memory, bytes, &handle));
  Make(at, bytes, NextSeed(), stream);
  Issued(ncclAllReduce(memory, memory, count, ncclFloat32, ncclSum, all_, ForNccl(stream)), all_);
  Keep(at, bytes, stream);
  CUDA_CHECK(cuStreamSynchronize(stream));
  WaitUntilReady(all_);
  JOB_CHECK(ncclCommDeregister(all_, handle));
  JOB_CHECK(ncclMemFree(memory));
}

// A factor that is in the device's memory.
void Job::WithScalar(size_t count) {
  const size_t bytes = count * sizeof(float);
  CUstream stream = streams_[0];
  const float factor = 0.5F;
  CUdeviceptr scalar = Allocate("device", sizeof factor);
  CUDA_CHECK(cuMemcpyAsync(scalar, reinterpret_cast<uintptr_t>(&factor), sizeof factor, stream));
  CUDA_CHECK(cuStreamSynchronize(stream));
  WaitUntilReady(all_);
  ncclRedOp_t scaled;
  JOB_CHECK(ncclRedOpCreatePreMulSum(&scaled, Buffer(scalar), ncclFloat32, ncclScalarDevice, all_));
  Do(bytes, bytes, [&](void* in, void* out, cudaStream_t where) {
    return ncclAllReduce(in, out, count, ncclFloat32, scaled, all_, where);
  });
  CUDA_CHECK(cuStreamSynchronize(stream));
  WaitUntilReady(all_);
  JOB_CHECK(ncclRedOpDestroy(scaled, all_));
}

void Job::Run(size_t count) {
  for (ncclDataType_t type : kTypes) {
    Reductions(count, type);
    Copies(count, type);
    WaitUntilReady(all_);
  }
  PointToPoint(count);
  WithAllocatedMemory(count);
  WithScalar(count);
}

void Job::Finish() {
  uint64_t hash = 0;
  std::vector<char> bytes;
  for (const Kept& kept : kept_) {
    bytes.resize(kept.bytes);
    CUDA_CHECK(cuMemcpyAsync(reinterpret_cast<uintptr_t>(bytes.data()), kept.memory, kept.bytes,
                             kept.stream));
    CUDA_CHECK(cuStreamSynchronize(kept.stream));
    for (char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  STARTED(ncclCommFinalize(part_));
  WaitUntilReady(part_);
  JOB_CHECK(ncclCommDestroy(part_));
  STARTED(ncclCommFinalize(all_));
  WaitUntilReady(all_);
  JOB_CHECK(ncclCommDestroy(all_));
  printf("rank %d of %d: %zu results, hash %016llx\n", job_rank(), job_size(), kept_.size(),
         static_cast<unsigned long long>(hash));
}

}  // namespace

int main(int argc, char** argv) {
  Job job(argc, argv);
  if (job_option(argc, argv, "--count") != nullptr) {
    job.Run(static_cast<size_t>(job_number(argc, argv, "--count", 0)));
  } else {
    job.Run(33);
    job.Run(1000);
  }
  job.Finish();
  return 0;
}
