// ProfilerHost: how NCCL finds a profiler plugin, and what it tells it, for the stand-in NCCL.
//
// DEJA_FAKE_NCCL_PROFILER=N: as an NCCL that knows versions up to N; unset, as one before 2.23,
// which knows none. DEJA_FAKE_NCCL_PROFILER_THREAD: launches are told on a thread of the library's.
// Any thread.
#ifndef DEJA_TESTS_FAKES_CUDA_NCCL_PROFILER_HOST_H_
#define DEJA_TESTS_FAKES_CUDA_NCCL_PROFILER_HOST_H_

#include <cstddef>
#include <cstdint>

// A collective, and what this library does it by: up to 4 KiB by a tree, else by a ring.
struct ProfiledCollective {
  const char* func = nullptr;  // "AllReduce"; null: nothing is told of it
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  int root = 0;
  int rank = 0;
  void* call = nullptr;  // what the plugin has answered when the call came in

  [[nodiscard]] bool small() const { return count <= 1024; }
};

class ProfilerHost {
 public:
  static ProfilerHost& Get();

  [[nodiscard]] bool loaded() const { return version_ != 0; }
  void OnCommunicator();
  void OnCall(ProfiledCollective& collective);
  void OnLaunch(const ProfiledCollective& collective);

 private:
  ProfilerHost();
  template <typename Plugin, typename Event>
  void Tell(const ProfiledCollective& collective);
  void TellHere(const ProfiledCollective& collective);

  int version_ = 0;  // of the plugin; 0: there is none
  void* plugin_ = nullptr;
  bool own_thread_ = false;
};

#endif  // DEJA_TESTS_FAKES_CUDA_NCCL_PROFILER_HOST_H_
