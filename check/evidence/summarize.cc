#include "check/evidence/summarize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/c10d_table.h"
#include "api/find_api.h"
#include "api/nccl_table.h"
#include "check/evidence/gather_seen.h"
#include "check/evidence/numbered.h"
#include "check/evidence/sites.h"
#include "check/evidence/step_times.h"
#include "check/evidence/surroundings.h"
#include "common/ids.h"
#include "common/text/nccl_result_text.h"
#include "format/reader/imported.h"

namespace deja::check {
namespace {

using api::Role;
using format::EventKind;
using format::KindBit;

constexpr uint64_t kKinds =
    KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCallLeave) |
    KindBit(EventKind::kCallResults) | KindBit(EventKind::kStep) | KindBit(EventKind::kSnapshot) |
    KindBit(EventKind::kNote) | KindBit(EventKind::kCommCreated) |
    KindBit(EventKind::kModuleLoaded) | KindBit(EventKind::kStackDefined) |
    KindBit(EventKind::kCrash) | KindBit(EventKind::kProcessExit) | KindBit(EventKind::kDegraded) |
    KindBit(EventKind::kInputFile) | KindBit(EventKind::kFileRead) | KindBit(EventKind::kInput) |
    KindBit(EventKind::kClockRun) | KindBit(EventKind::kConnectionOpened);

// What says which communicators there were, and how the rank ended.
constexpr uint64_t kHeadKinds = KindBit(EventKind::kNote) | KindBit(EventKind::kCommCreated) |
                                KindBit(EventKind::kCrash) | KindBit(EventKind::kProcessExit) |
                                KindBit(EventKind::kDegraded);

// Events that damage may have taken away.
constexpr uint64_t kSlack = 1 << 16;
constexpr uint64_t kMostCalls = uint64_t{1} << 28;  // of a communicator

// A signal by which another process ends this one.
bool EndsFromOutside(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGKILL;
}

std::string WithoutPrefix(std::string_view name) {
  for (const std::string_view prefix : {"nccl", "c10d_"})
    if (name.substr(0, prefix.size()) == prefix) return std::string(name.substr(prefix.size()));
  return std::string(name);
}

// A call as it is gathered; what belongs to it comes in any order of batches.
struct Gathered {
  Transfer call;
  uint32_t stack = 0;
  bool is_entered = false;
  bool is_torch = false;
  bool is_grouped = false;
};

struct OpenEnter {
  uint64_t enter_seq = 0;
  uint32_t api = 0;
  uint32_t comm = 0;
  uint64_t comm_seq = 0;
  uint32_t stack = 0;
  uint64_t time_ns = 0;
  uint64_t nranks = 0;
  int64_t place = -1;
  uint64_t identity = 0;
  std::vector<uint64_t> members;
  std::string key;  // of a store
};

bool IsStoreCall(std::string_view name) {
  return name.rfind("store_", 0) == 0;
}

class Summarizer {
 public:
  Summarizer(const format::RankReader& reader, PlaceFinder& places, RankSummary& summary)
      : reader_(reader),
        summary_(summary),
        sites_(places, summary.sites),
        seen_(summary.seen, [this](const Site& site) { return sites_.Number(site); }) {
    const format::TraceHeader& header = reader.header();
    summary.rank = header.rank;
    summary.world_size = header.world_size;
    summary.has_digests = header.level != static_cast<uint32_t>(Level::kOrder);
    // Times of a rank count from an origin of its machine's.
    to_wall_ = header.start_wall_ns - header.start_mono_ns;
    for (const format::ApiName& api : header.apis) api_names_[api.id] = WithoutPrefix(api.name);
    const uint64_t events =
        reader.totals().events + reader.totals().events_lost + reader.end().tail_events + kSlack;
    most_calls_ = std::min(kMostCalls, events);
  }

  void Read(const SummarizeOptions& options) {
    if (options.only_heads) {
      ReadHeads();
    } else {
      ReadFrom(*reader_.Events(), kKinds);
      FindLastTime();
    }
    FindLoss(options);
    Finish(options);
  }

 private:
  void ReadFrom(format::EventCursor& cursor, uint64_t kinds) {
    while (const format::Event* event = cursor.NextOf(kinds)) {
      Live(event->time_ns);
      std::visit([&](const auto& body) { On(*event, body); }, event->body);
    }
    if (cursor.damaged_batches() != 0) MissingEvents(cursor.damage());
  }

  // The index says where they are, and when the last event was.
  void ReadHeads() {
    const format::BatchList& batches = reader_.batches();
    const size_t end = batches.size();
    for (size_t batch = 0; (batch = batches.FindKinds(batch, end, kHeadKinds)) < end; ++batch)
      ReadFrom(*reader_.EventsOfBatch(batch), kHeadKinds);
    for (size_t batch = 0; batch < end;) {
      size_t next = batch + 1;
      const format::BatchBlock* block = batches.BlockAt(batch, next);
      Live(block != nullptr ? block->all.last_time_ns : batches[batch].last_time_ns);
      batch = next;
    }
  }

  template <typename T>
  void On(const format::Event&, const T&) {}

  void On(const format::Event& event, const format::CallEnter& enter) {
    const uint64_t time = Wall(event.time_ns);
    if (enter.api == static_cast<uint32_t>(api::C10dApi::c10d_work)) {
      works_[{event.thread, event.seq}] = {enter.comm, enter.args.size() > 1 ? enter.args[1] : 0,
                                           enter.args.size() > 2 ? enter.args[2] : 0};
      return;
    }
    const api::ApiInfo* info = api::FindApi(enter.api);
    open_[event.thread].push_back(Opened(event, enter, info));
    if (enter.comm == 0 || enter.comm_seq == 0) return;
    Gathered* gathered = Of(enter.comm, enter.comm_seq);
    const auto signature = SignatureOf(enter);
    if (gathered == nullptr || !signature) return;
    gathered->is_entered = true;
    gathered->is_torch = api::FindC10d(enter.api) != nullptr;
    gathered->is_grouped = enter.group_depth != 0;
    gathered->stack = enter.stack;
    gathered->call.signature = Number(*signature);
    gathered->call.seq = enter.comm_seq;
    gathered->call.time_ns = time;
    gathered->call.thread = event.thread;
    if (std::string names = std::exchange(next_calls_[event.thread].names, {}); !names.empty())
      gathered->call.names = NumberOfNames(names);
    if (gathered->is_grouped && !gathered->is_torch)
      grouped_[event.thread].emplace_back(enter.comm, enter.comm_seq);
    for (const format::Tensor& tensor : enter.inputs) Digest(*gathered, tensor, true);
    if (!early_.empty()) TakeEarly(enter, *gathered);
    if (const int peer = info->Find(Role::kPeer); peer >= 0 && HasArgument(enter, peer))
      gathered->call.peer = static_cast<int32_t>(enter.args[static_cast<size_t>(peer)]);
    if (const int tag = info->Find(Role::kInt); tag >= 0 && HasArgument(enter, tag))
      gathered->call.tag = static_cast<int64_t>(enter.args[static_cast<size_t>(tag)]);
  }

  OpenEnter Opened(const format::Event& event, const format::CallEnter& enter,
                   const api::ApiInfo* info) {
    OpenEnter open;
    open.enter_seq = event.seq;
    open.api = enter.api;
    open.comm = enter.comm;
    open.comm_seq = enter.comm_seq;
    open.stack = enter.stack;
    open.time_ns = Wall(event.time_ns);
    if (api::FindC10d(enter.api) != nullptr && IsStoreCall(ApiName(enter.api)))
      open.key = std::string(enter.blob);
    const bool makes = info != nullptr && MakesCommunicator(*info);
    if (!makes) return open;
    open.members = std::exchange(next_calls_[event.thread].members, {});
    if (const int nranks = info->Find(Role::kNRanks); nranks >= 0 && HasArgument(enter, nranks))
      open.nranks = enter.args[static_cast<size_t>(nranks)];
    if (const int place = info->Find(Role::kRank); place >= 0 && HasArgument(enter, place))
      open.place = static_cast<int64_t>(enter.args[static_cast<size_t>(place)]);
    // The name of torch's group, the unique ids of NCCL's communicator.
    open.identity =
        std::hash<std::string_view>{}(enter.text) * 31 + std::hash<std::string_view>{}(enter.blob);
    return open;
  }

  static bool MakesCommunicator(const api::ApiInfo& info) {
    return info.Find(Role::kNewComm) >= 0 || info.Find(Role::kNewComms) >= 0;
  }
  static bool HasArgument(const format::CallEnter& enter, int index) {
    return static_cast<size_t>(index) < enter.args.size();
  }

  void On(const format::Event& event, const format::CallLeave& leave) {
    if (const auto work = works_.find({event.thread, leave.enter_seq}); work != works_.end()) {
      if (Gathered* gathered = Of(work->second.comm, work->second.operation)) {
        Finished(*gathered, event.time_ns, leave.result != 0);
        // The sender to a receive from any.
        if (leave.result == 0) gathered->call.peer = static_cast<int32_t>(work->second.source);
      }
      works_.erase(work);
      return;
    }
    std::vector<OpenEnter>& open = open_[event.thread];
    const auto it = std::find_if(open.rbegin(), open.rend(), [&](const OpenEnter& enter) {
      return enter.enter_seq == leave.enter_seq;
    });
    if (it == open.rend()) return;
    if (it->comm != 0 && it->comm_seq != 0) {
      if (Gathered* gathered = Of(it->comm, it->comm_seq)) {
        // Those of torch.distributed return before they are done, grouped ones before they begin.
        if (leave.result != kNcclSuccess && leave.result != kNcclInProgress)
          Finished(*gathered, event.time_ns, true);
        else if (!gathered->is_torch && !gathered->is_grouped)
          Finished(*gathered, event.time_ns, false);
      }
    }
    if (!it->key.empty() && leave.result == 0)
      seen_.OnStore(it->key, leave.blob, event.thread, Wall(event.time_ns));
    if (it->api == static_cast<uint32_t>(api::NcclApi::ncclGroupEnd)) EndGroup(event, leave.result);
    open.erase(std::next(it).base());
  }

  // The outermost one: what was grouped on this thread has been done, or has failed.
  void EndGroup(const format::Event& event, int64_t result) {
    const bool failed = result != kNcclSuccess && result != kNcclInProgress;
    for (const auto& [comm, seq] : grouped_[event.thread])
      if (Gathered* gathered = Of(comm, seq)) Finished(*gathered, event.time_ns, failed);
    grouped_[event.thread].clear();
  }

  void Finished(Gathered& gathered, uint64_t time_ns, bool failed) const {
    Call& call = gathered.call;
    call.flags |= failed ? kDone | kFailed : kDone;
    const uint64_t now = Wall(time_ns);
    if (call.lasted_us == 0 && gathered.is_entered && now > call.time_ns)
      call.lasted_us =
          static_cast<uint32_t>(std::min<uint64_t>((now - call.time_ns) / 1000, UINT32_MAX));
  }

  void On(const format::Event& event, const format::CallResults& results) {
    if (results.comm == 0 || results.comm_seq == 0) return;
    Gathered* gathered = Of(results.comm, results.comm_seq);
    if (gathered == nullptr) return;
    Finished(*gathered, event.time_ns, false);
    for (const format::Tensor& tensor : results.outputs) {
      const bool aborted = tensor.payload == static_cast<uint32_t>(format::PayloadState::kAborted);
      if (aborted) gathered->call.flags |= kFailed;
      if (aborted) continue;
      if (gathered->is_entered)
        Digest(*gathered, tensor, ReadsParameter(*gathered, tensor.param));
      else
        early_[{results.comm, results.comm_seq}].push_back(tensor);
    }
  }

  // Results that were written before the batch of the thread that made the call.
  void TakeEarly(const format::CallEnter& enter, Gathered& gathered) {
    const auto early = early_.extract({enter.comm, enter.comm_seq});
    if (early.empty()) return;
    for (const format::Tensor& tensor : early.mapped())
      Digest(gathered, tensor, ReadsParameter(gathered, tensor.param));
  }

  // Results of device buffers are also what was read.
  bool ReadsParameter(const Gathered& gathered, uint32_t param) const {
    const api::ApiInfo* info = api::FindApi(summary_.signatures[gathered.call.signature].api);
    return info != nullptr && param < info->param_count && IsOnlyRead(info->params[param].role);
  }

  static void Digest(Gathered& gathered, const format::Tensor& tensor, bool reads) {
    if (tensor.hash.IsZero()) return;
    uint64_t& digest = reads ? gathered.call.input : gathered.call.output;
    if (digest != 0) gathered.call.flags |= kRepeated;
    digest = std::max<uint64_t>(tensor.hash.Prefix(), 1);
    if (tensor.stats.nan_count != 0) gathered.call.flags |= reads ? kNanIn : kNanOut;
    if (tensor.stats.inf_count != 0) gathered.call.flags |= reads ? kInfIn : kInfOut;
  }

  void On(const format::Event& event, const format::Step& step) {
    steps_.Add(Wall(event.time_ns), step.step);
  }
  void On(const format::Event& event, const format::Snapshot& snapshot) {
    constexpr std::string_view kGenerator = "rng/";
    if (snapshot.opaque && snapshot.name.substr(0, kGenerator.size()) == kGenerator)
      seen_.OnGenerator(snapshot.name, snapshot.tensor.hash.Prefix(), Wall(event.time_ns));
    if (snapshot.checkpoint == 0 || snapshot.opaque || snapshot.tensor.hash.IsZero()) return;
    const bool is_real = snapshot.tensor.dtype >= 6 && snapshot.tensor.dtype != format::kRawBytes;
    if (is_real)
      summary_.states.push_back({std::string(snapshot.name), snapshot.checkpoint,
                                 snapshot.tensor.hash.Prefix(), Wall(event.time_ns)});
  }
  void On(const format::Event& event, const format::InputFile& file) {
    seen_.OnFile(file, event.thread, Wall(event.time_ns));
  }
  void On(const format::Event& event, const format::FileRead& read) {
    seen_.OnRead(read, event.thread, Wall(event.time_ns));
  }
  void On(const format::Event& event, const format::Input& input) {
    seen_.OnInput(input, ApiName(input.api), event.thread, Wall(event.time_ns));
  }
  void On(const format::Event& event, const format::ClockRun& run) {
    seen_.OnClock(run, event.thread, Wall(event.time_ns));
  }
  void On(const format::Event& event, const format::ConnectionOpened& opened) {
    seen_.OnConnection(opened, Wall(event.time_ns));
  }
  void On(const format::Event& event, const format::Note& note) {
    if (seen_.OnNote(note.text, Wall(event.time_ns), next_calls_[event.thread])) return;
    constexpr std::string_view kException = "exception ";  // python/deja/interpreter/exceptions.py
    if (note.text.substr(0, kException.size()) != kException) return;
    const std::string text(note.text.substr(kException.size()));
    const size_t frames = text.rfind("; ");
    if (frames == std::string::npos) return;
    summary_.end.exception = text.substr(0, frames);
    const size_t begin = frames + 2;
    exception_place_ = ParsePlace(text.substr(begin, text.find(", ", begin) - begin));
  }

  void On(const format::Event&, const format::CommCreated& created) {
    if (created.comm == 0) return;
    CommSummary& comm = created_[created.comm];
    comm.number = created.comm - 1;
    comm.hash = created.hash;
    comm.joined_as = created.joined_as;
    comm.rank = created.rank;
    comm.nranks = created.nranks;
    comm.name = std::string(created.name);
  }
  void On(const format::Event&, const format::ModuleLoaded& module) {
    sites_.AddModule(module);
    AddLibrary(module.path, module.build_id, summary_.surroundings);
  }
  void On(const format::Event&, const format::StackDefined& stack) { sites_.AddStack(stack); }
  void On(const format::Event&, const format::Crash& crash) {
    crash_signal_ = static_cast<int>(crash.signal);
    const auto own = static_cast<int32_t>(reader_.header().process.pid);
    crash_from_outside_ = crash.sender_pid != 0 && crash.sender_pid != own;
    crash_stack_ = crash.stack;
    crash_frames_.assign(crash.frames.begin(), crash.frames.end());
  }
  void On(const format::Event&, const format::ProcessExit& exit) {
    if (exit.how != 2) exit_code_ = exit.code;
  }
  void On(const format::Event&, const format::Degraded& degraded) {
    if (degraded.events_lost != 0)
      MissingEvents(fmt::format("{} events were lost: {}", degraded.events_lost, degraded.reason));
  }

  // ---- helpers

  uint64_t Wall(uint64_t time_ns) const { return time_ns + to_wall_; }
  void Live(uint64_t time_ns) {
    summary_.last_time_ns = std::max(summary_.last_time_ns, Wall(time_ns));
  }

  // Numbers count from 1 without gaps, so there are no more than events.
  Gathered* Of(uint32_t comm, uint64_t seq) {
    if (seq == 0 || seq > most_calls_) return nullptr;
    if (last_calls_ == nullptr || last_comm_ != comm) {
      last_calls_ = &calls_[comm];  // stays where it is
      last_comm_ = comm;
    }
    return &(*last_calls_)[seq];
  }

  uint32_t Number(const Signature& signature) {
    uint32_t& known = recent_signatures_[signature.count % recent_signatures_.size()];
    if (known < summary_.signatures.size() && summary_.signatures[known] == signature) return known;
    return known = NumberOfNew(signature);
  }
  uint32_t NumberOfNew(const Signature& signature) {
    const auto [it, added] =
        signature_numbers_.try_emplace(signature, static_cast<uint32_t>(signature_numbers_.size()));
    if (added) summary_.signatures.push_back(signature);
    return it->second;
  }

  uint32_t NumberOfNames(const std::string& names) {
    const auto [it, added] =
        name_numbers_.try_emplace(names, static_cast<uint32_t>(summary_.names.size()));
    if (added) summary_.names.push_back(names);
    return it->second;
  }

  std::string ApiName(uint32_t api) const {
    const auto it = api_names_.find(api);
    return it == api_names_.end() ? fmt::format("call {:#x}", api) : it->second;
  }

  void MissingEvents(std::string why) {
    if (!summary_.is_partial) summary_.unknown = std::move(why);
    summary_.is_partial = true;
  }

  // Kinds that are not read show that the rank lived, too.
  void FindLastTime() {
    const format::BatchList& batches = reader_.batches();
    if (batches.size() == 0) return;
    auto cursor = reader_.EventsOfBatch(batches.size() - 1);
    while (const format::Event* event = cursor->Next()) Live(event->time_ns);
  }

  void FindLoss(const SummarizeOptions& options) {
    const format::Footer& totals = reader_.totals();
    const format::EndReport& end = reader_.end();
    if (totals.events_lost != 0)
      MissingEvents(fmt::format("{} events are missing", totals.events_lost));
    if (end.state == format::EndState::kCorrupt) MissingEvents(end.detail);
    const bool has_tail = totals.swept != 0 || end.tail_events != 0 || options.is_running;
    if (end.state == format::EndState::kTornTail && !has_tail)
      MissingEvents("its writer died, and what it had not written yet is gone");
  }

  void Finish(const SummarizeOptions& options) {
    steps_.Settle();
    summary_.last_step = steps_.Last();
    for (auto& [number, comm] : created_) {
      // A generator of cuRAND's is a communicator of one rank.
      const bool compares = comm.name.rfind("cuRAND", 0) != 0;
      if (compares) TakeCalls(calls_[number], comm);
      if (compares) summary_.comms.push_back(std::move(comm));
    }
    calls_.clear();
    FinishStates();
    seen_.Finish();
    FinishOpenCalls();
    FinishEnd(options);
    AddSurroundings(reader_.header(), summary_.surroundings);
  }

  void TakeCalls(Numbered<Gathered>& calls, CommSummary& comm) {
    size_t collectives = 0;
    calls.ForEach([&](const Gathered& gathered) {
      if (!gathered.is_entered) return;
      const Signature& signature = summary_.signatures[gathered.call.signature];
      collectives += IsTransfer(signature.operation) ? 0 : 1;
    });
    comm.collectives.Own().reserve(collectives);
    std::set<uint32_t> has_results;  // signatures
    std::optional<Call> last;
    uint64_t last_time = last_call_time_;
    calls.TakeEach([&](Gathered& gathered) {
      if (!gathered.is_entered) return;
      // A call on a stream returns before it is done: then its results say when it is.
      if (gathered.call.output != 0)
        has_results.insert(gathered.call.signature);
      else if (has_results.count(gathered.call.signature) != 0 && !gathered.call.Is(kFailed))
        gathered.call.flags &= static_cast<uint8_t>(~kDone);
      gathered.call.site = sites_.OfStack(gathered.stack);
      gathered.call.step = steps_.At(gathered.call.time_ns);
      const Signature& signature = summary_.signatures[gathered.call.signature];
      if (IsTransfer(signature.operation))
        comm.transfers.push_back(gathered.call);
      else
        comm.collectives.Own().push_back(static_cast<const Call&>(gathered.call));
      if (gathered.call.time_ns >= last_time) last = gathered.call;
      last_time = std::max(last_time, gathered.call.time_ns);
    });
    if (last) {
      last_call_time_ = last->time_ns;
      summary_.last_call =
          fmt::format("{} #{} of comm {}", NameOf(summary_.signatures[last->signature].operation),
                      last->seq, comm.number);
      summary_.last_site = last->site;
    }
  }

  // Items come before the checkpoint's step is known by its own event; the step of the loop says
  // it.
  void FinishStates() {
    for (StateDigest& state : summary_.states) state.step = steps_.At(state.time_ns);
  }

  void FinishOpenCalls() {
    for (auto& [thread, open] : open_) {
      for (const OpenEnter& enter : open) {
        OpenCall call;
        call.name = ApiName(enter.api);
        if (!enter.key.empty())
          call.name += fmt::format("({})", enter.key.substr(enter.key.find(':') + 1));
        if (enter.comm != 0) call.comm = enter.comm - 1;
        call.seq = enter.comm_seq;
        call.site = sites_.OfStack(enter.stack);
        call.time_ns = enter.time_ns;
        call.nranks = enter.nranks;
        const api::ApiInfo* info = api::FindApi(enter.api);
        call.makes_communicator = info != nullptr && MakesCommunicator(*info);
        call.place = enter.place;
        call.identity = enter.identity;
        call.members = enter.members;
        summary_.open.push_back(std::move(call));
      }
    }
    std::sort(summary_.open.begin(), summary_.open.end(),
              [](const OpenCall& a, const OpenCall& b) { return a.time_ns < b.time_ns; });
  }

  void FinishEnd(const SummarizeOptions& options) {
    EndState& end = summary_.end;
    const format::ProcessFate& fate = reader_.totals().fate;
    end.time_ns = summary_.last_time_ns;
    const bool survived = exit_code_ && fate.known && fate.signal == 0;
    const bool asked_to_end = crash_from_outside_ && EndsFromOutside(crash_signal_);
    if (crash_signal_ != 0 && (!survived || (asked_to_end && *exit_code_ != 0))) {
      end.kind = asked_to_end ? EndKind::kEnded : EndKind::kSignal;
      end.signal = crash_signal_;
      end.site = sites_.OfCrash(crash_stack_, crash_frames_);
    } else if (exit_code_) {
      end.kind = EndKind::kExit;
      end.code = *exit_code_;
      if (end.code != 0 && !exception_place_.file.empty())
        end.site = sites_.Number(Site{exception_place_});
    } else if (fate.known && fate.signal != 0) {
      end.signal = static_cast<int>(fate.signal);
      end.kind = EndsFromOutside(end.signal) ? EndKind::kEnded : EndKind::kSignal;
    } else if (fate.known) {
      end.kind = EndKind::kExit;
      end.code = fate.exit_code;
    } else {
      // Dumps of another recorder are written by ranks that live.
      const bool lived = options.is_running || format::IsImported(reader_.header().producer);
      end.kind = lived ? EndKind::kRunning : EndKind::kUnknown;
    }
  }

  struct Work {
    uint32_t comm = 0;
    uint64_t operation = 0;
    uint64_t source = 0;
  };

  const format::RankReader& reader_;
  RankSummary& summary_;
  Sites sites_;
  uint64_t to_wall_ = 0;
  uint64_t most_calls_ = 0;
  Numbered<Gathered>* last_calls_ = nullptr;  // of calls_; those of last_comm_
  uint32_t last_comm_ = 0;
  std::map<uint32_t, std::string> api_names_;
  std::map<Signature, uint32_t> signature_numbers_;
  std::array<uint32_t, 61> recent_signatures_{};  // numbers, by what is cheap to tell apart
  std::map<uint32_t, CommSummary> created_;       // by number + 1
  std::map<uint32_t, Numbered<Gathered>> calls_;  // the same
  std::map<std::pair<uint32_t, uint64_t>, std::vector<format::Tensor>> early_;  // by call
  std::map<uint32_t, std::vector<OpenEnter>> open_;                             // by thread
  std::map<std::pair<uint32_t, uint64_t>, Work> works_;
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint64_t>>> grouped_;
  StepTimes steps_;
  uint64_t last_call_time_ = 0;
  int crash_signal_ = 0;
  bool crash_from_outside_ = false;
  uint32_t crash_stack_ = 0;
  std::vector<format::StackFrame> crash_frames_;
  std::optional<int> exit_code_;
  SeenGatherer seen_;
  std::map<uint32_t, NextCall> next_calls_;  // by thread
  std::map<std::string, uint32_t> name_numbers_ = {{"", 0}};
  Place exception_place_;
};

}  // namespace

RankSummary Summarize(const format::RankReader& reader, PlaceFinder& places,
                      const SummarizeOptions& options) {
  RankSummary summary;
  Summarizer(reader, places, summary).Read(options);
  return summary;
}

}  // namespace deja::check
