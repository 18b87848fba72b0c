// Makes a ReplayPlan of a rank's events, in one pass over them. A call, an input, a file or a
// connection is listed by the thread and the order in which the program will ask for it.
//
// One per ReplayPlan::Build(), on its thread, and gone with it. Private to the plan: nothing else
// includes this.
#ifndef DEJA_REPLAYER_PLAN_PLAN_BUILDER_H_
#define DEJA_REPLAYER_PLAN_PLAN_BUILDER_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/scratch/created_names.h"
#include "format/tail/clock_run.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

// Pools are addressed by 32 bits; a rank whose metadata is larger than this cannot be indexed.
inline constexpr size_t kMaxPool = 0xfffffff0u;

class PlanBuilder {
 public:
  PlanBuilder(ReplayPlan& plan, const ApiKinds& kinds) : plan_(plan), kinds_(kinds) {}

  // What is added until the next call are the events of this batch.
  void BeginBatch(size_t batch) { plan_.pages_.BeginBatch(batch); }
  void Add(const format::Event& event);

  Status Finish();

 private:
  static uint32_t KindNumber(const format::Event& event) {
    return std::visit(
        [](const auto& body) {
          return static_cast<uint32_t>(format::kKindOf<std::decay_t<decltype(body)>>);
        },
        event.body);
  }

  uint32_t ThreadAt(uint32_t index);
  RecordedThread& Thread(uint32_t index) { return plan_.threads_[ThreadAt(index)]; }

  template <typename Pool, typename Items>
  PoolRange Keep(Pool& pool, const Items& items) {
    if (pool.size() + items.size() > kMaxPool) {
      TooLarge();
      return {};
    }
    PoolRange range{static_cast<uint32_t>(pool.size()), static_cast<uint32_t>(items.size())};
    pool.insert(pool.end(), items.begin(), items.end());
    return range;
  }

  void TooLarge() { error_ = "the recording of this rank is larger than a replay can index"; }

  void StartThread(const format::ThreadStart& start);

  // Calls and what they led to.
  void Enter(const format::Event& event, const format::CallEnter& enter);
  // Adds a call to those of its communicator.
  void NumberOperation(std::vector<uint32_t>& operations, uint32_t call) const;
  void Leave(const format::Event& event, const format::CallLeave& leave);
  // Results without a communicator belong to the call of this thread with that number.
  void AddResultsOfOpenCall(const format::Event& event, const format::CallResults& results);
  void Results(const format::Event& event, const format::CallResults& results);
  // What a call had read, where it was not known when the call was entered, comes like its results.
  // For a call that was captured into a graph both come once a launch.
  void AddResults(uint32_t index, PoolRange results, std::span<const format::Tensor> tensors);
  // The first tensor of a range that some event before had.
  [[nodiscard]] format::Tensor FirstOf(PoolRange range) const {
    return plan_.Tensors({range.at, 1}).front();
  }
  // Which operations came back because another thread gave the communicator up.
  void FindWaits();

  // Inputs: plan_inputs.cc.
  void AddReading(const format::Event& event, format::ClockSource source, int64_t value);
  void AddInput(const format::Event& event, const format::Input& input);
  void AddConnection(const format::Event& event, const format::ConnectionOpened& opened);
  void AddTransfer(const format::Event& event, const format::Transfer& recorded);
  // Numbers become positions. One that was never defined belongs to events that are lost.
  void ResolveConnections();
  void AddFile(const format::Event& event, const format::InputFile& recorded);
  void AddRanges(const format::FileRead& event);
  // A range may stand before its file: another thread wrote it.
  void ResolveFiles();

  void AddCollection(const format::Event& event, const format::GarbageCollection& collection);
  void ListActingCollections();
  void AddSnapshot(const format::Event& event, const format::Snapshot& snapshot);
  void AddComm(const format::Event& event, const format::CommCreated& created);
  uint32_t LastMaker(uint32_t thread) const;

  void AddModule(const format::ModuleLoaded& module);
  void AddStack(const format::StackDefined& stack);
  void AddCrash(const format::Event& event, const format::Crash& crash);
  void AddExit(const format::Event& event, const format::ProcessExit& exit);
  void AddChild(const format::Event& event, const format::Child& child);
  void CountOperationsBefore(RecordedAsyncError& error);

  ReplayPlan& plan_;
  ApiKinds kinds_;
  bool behind_start_ = false;  // the event at hand
  bool has_python_threads_ = false;
  std::string error_;
  std::unordered_map<uint32_t, uint32_t> thread_at_;
  std::unordered_map<uint32_t, std::vector<std::pair<uint64_t, uint32_t>>> open_;
  // Results of operations whose enter has not come yet: another thread's batch, later in the file,
  // has it.
  struct EarlyResults {
    PoolRange range;
    std::vector<format::Tensor> tensors;
  };
  std::map<std::pair<uint32_t, uint64_t>, std::vector<EarlyResults>> early_results_;
  std::unordered_map<uint32_t, uint32_t> connection_at_;                  // by number
  std::unordered_map<uint32_t, std::vector<RecordedRange>> file_ranges_;  // by number
  format::CreatedNameFinder created_;
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_PLAN_PLAN_BUILDER_H_
