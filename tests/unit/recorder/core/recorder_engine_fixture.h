// Shared by the tests of RecorderEngine: an engine over a log in memory, calls with stand-ins for
// the real functions, and written events by kind.
#ifndef DEJA_TESTS_UNIT_RECORDER_CORE_RECORDER_ENGINE_FIXTURE_H_
#define DEJA_TESTS_UNIT_RECORDER_CORE_RECORDER_ENGINE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "api/nccl_table.h"
#include "include/compat/nccl.h"
#include "recorder/assembly/recorder_engine.h"
#include "tests/unit/recorder/core/fake_log.h"

namespace deja::recorder {

using api::NcclApi;
using format::EventKind;
using preload::Call;
using testing::ElementsAre;
using testing::IsEmpty;

inline constexpr EventKind kEnter = EventKind::kCallEnter;
inline constexpr EventKind kLeave = EventKind::kCallLeave;
inline constexpr EventKind kResults = EventKind::kCallResults;

// A call as a hook makes it, with a stand-in for the real function.
struct TestCall : Call {
  std::function<ncclResult_t()> real;
  TestCall(
      NcclApi api, std::initializer_list<uint64_t> words,
      std::function<ncclResult_t()> real_call = [] { return ncclSuccess; })
      : real(std::move(real_call)) {
    info = &api::NcclInfo(api);
    size_t i = 0;
    for (uint64_t word : words) args[i++] = word;
    invoke = [](Call& call) {
      auto& self = static_cast<TestCall&>(call);
      call.result = static_cast<uint64_t>(self.real());
    };
  }
};

template <typename T>
uint64_t Word(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

class RecorderEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK",
                             "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
      unsetenv(name);
    FakeLog::Reset();
    EventWriter::ForgetThread(preload::Self());
    preload::ResetStacksInChild();
    Use(Level::kFull);
  }
  void TearDown() override { EventWriter::ForgetThread(preload::Self()); }

  void Use(Level level) {
    config_.level = level;
    engine_ = std::make_unique<RecorderEngine>(config_, &FakeLog::Create);
  }
  FakeLog& log() { return *FakeLog::last; }

  ncclResult_t Do(NcclApi api, std::initializer_list<uint64_t> words,
                  ncclResult_t result = ncclSuccess) {
    TestCall call(api, words, [result] { return result; });
    engine_->OnNcclCall(call);
    return static_cast<ncclResult_t>(call.result);
  }
  // Makes communicator `handle` of `nranks` ranks, of which this process is `rank`.
  void InitRank(uint64_t handle, int nranks = 4, int rank = 2) {
    TestCall call(
        NcclApi::ncclCommInitRank,
        {Word(&slot_), static_cast<uint64_t>(nranks), Word(&id_), static_cast<uint64_t>(rank)},
        [&] {
          slot_ = handle;
          return ncclSuccess;
        });
    engine_->OnNcclCall(call);
  }
  void AllReduce(uint64_t handle, ncclResult_t result = ncclSuccess) {
    Do(NcclApi::ncclAllReduce, {Word(send_), Word(receive_), 4, ncclFloat32, ncclSum, handle, 0},
       result);
  }
  void Input(uint32_t api, std::string_view bytes) {
    char buffer[8192];
    preload::InputCall call;
    call.api = api;
    call.out = std::span(reinterpret_cast<std::byte*>(buffer), sizeof buffer);
    call.context = &bytes;
    call.real = [](preload::InputCall& c, void* context) {
      auto text = *static_cast<std::string_view*>(context);
      std::memcpy(c.out.data(), text.data(), text.size());
      c.produced = text.size();
      c.result = static_cast<int64_t>(text.size());
    };
    engine_->OnInput(call);
  }
  // The events after the first `skip`, without the stacks and modules in between.
  std::vector<EventKind> Kinds(size_t skip = 0) {
    std::vector<EventKind> kinds;
    for (EventKind kind : log().Kinds())
      if (kind != EventKind::kStackDefined && kind != EventKind::kModuleLoaded)
        kinds.push_back(kind);
    kinds.erase(kinds.begin(),
                kinds.begin() + static_cast<ptrdiff_t>(std::min(skip, kinds.size())));
    return kinds;
  }
  template <typename T>
  std::vector<T> All() {
    std::vector<T> found;
    for (const format::Event& event : log().Events())
      if (const T* body = event.As<T>()) found.push_back(*body);
    return found;
  }

  Config config_;
  std::unique_ptr<RecorderEngine> engine_;
  uint64_t slot_ = 0;
  ncclUniqueId id_{};
  float send_[4] = {1, 2, 3, 4};
  float receive_[4] = {10, 20, 30, 40};
};

inline constexpr uint64_t kComm = 0x1000;
inline constexpr size_t kAfterInit = 4;  // ThreadStart, CallEnter, CommCreated, CallLeave

}  // namespace deja::recorder

#endif  // DEJA_TESTS_UNIT_RECORDER_CORE_RECORDER_ENGINE_FIXTURE_H_
