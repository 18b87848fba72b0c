#include "cli/events/rank_summary.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "common/process/process_identity.h"
#include "format/log/rank_log.h"
#include "format/reader/imported.h"
#include "format/wire/batch_info.h"

namespace deja::cli {
namespace {

using format::EventKind;
using format::KindBit;

// Batches with one of these are always read.
constexpr uint32_t kDefining = KindBit(EventKind::kThreadStart) | KindBit(EventKind::kCommCreated) |
                               KindBit(EventKind::kModuleLoaded) |
                               KindBit(EventKind::kStackDefined) | KindBit(EventKind::kCrash) |
                               KindBit(EventKind::kProcessExit) | KindBit(EventKind::kDegraded) |
                               KindBit(EventKind::kAsyncError);

// The C++ library's own name of what a program knows as std::random_device.
constexpr std::string_view kRandomDevice = "_ZNSt13random_device9_M_getvalEv";

// A process that wrote no footer: is it still there? (The same pid may be another process by now;
// its tail then is gone or carries another start time, which the reader has checked.)
bool ProcessAlive(const format::TraceHeader& header) {
  if (header.tail.path.empty() || !std::filesystem::exists(std::string(header.tail.path)))
    return false;
  return header.process.pid != 0 && Runs(header.process.pid);  // no zombie
}

// What is needed of a call, until the call turns out to be reported.
struct EnteredCall {
  uint32_t thread = 0;
  uint32_t api = 0;
  uint32_t comm = 0;
  uint64_t comm_seq = 0;
  uint64_t time_ns = 0;
  uint32_t stack = 0;
};

EnteredCall Entered(const format::Event& event, const format::CallEnter& enter) {
  return {event.thread, enter.api, enter.comm, enter.comm_seq, event.time_ns, enter.stack};
}

CallSummary SummaryOf(const EnteredCall& entered, const RankSummary& summary) {
  CallSummary call;
  call.thread = summary.ThreadName(entered.thread);
  call.name = summary.ApiName(entered.api);
  if (entered.comm != 0) call.comm = entered.comm - 1;
  call.comm_seq = entered.comm_seq;
  call.time_ns = entered.time_ns;
  call.stack = entered.stack;
  return call;
}

// What can follow, on the same thread, a call that was not left: a signal handler's events and the
// end. Everything else shows that the thread went on.
bool MayFollowOpenCall(const format::Event& event) {
  return event.As<format::Crash>() != nullptr || event.As<format::ProcessExit>() != nullptr ||
         event.As<format::ModuleLoaded>() != nullptr || event.As<format::StackDefined>() != nullptr;
}

class SummaryBuilder {
 public:
  explicit SummaryBuilder(RankSummary& summary) : summary_(summary) {}

  void Add(const format::Event& event) {
    summary_.last_time_ns = std::max(summary_.last_time_ns, event.time_ns);
    if (!MayFollowOpenCall(event))
      last_ordinary_[event.thread] = std::max(last_ordinary_[event.thread], event.seq);
    std::visit([&](const auto& body) { On(event, body); }, event.body);
  }

  void Finish() {
    if (last_call_) summary_.last_call = SummaryOf(*last_call_, summary_);
    for (auto& [key, call] : open_)
      if (key.second >= last_ordinary_[key.first])
        summary_.open_calls.push_back(SummaryOf(call, summary_));
    for (auto& [number, call] : last_of_comm_)
      if (auto comm = summary_.comms.find(number); comm != summary_.comms.end())
        comm->second.last_call = SummaryOf(call, summary_);
    std::sort(summary_.open_calls.begin(), summary_.open_calls.end(),
              [](const CallSummary& a, const CallSummary& b) { return a.time_ns < b.time_ns; });
  }

 private:
  template <typename T>
  void On(const format::Event&, const T&) {}

  void On(const format::Event&, const format::ThreadStart& start) {
    summary_.threads[start.thread] = std::string(start.name);
  }
  void On(const format::Event&, const format::CommCreated& created) {
    if (created.comm == 0) return;
    CommSummary& comm = summary_.comms[created.comm - 1];
    comm.number = created.comm - 1;
    comm.hash = created.hash;
    comm.joined_as = created.joined_as;
    comm.rank = created.rank;
    comm.nranks = created.nranks;
    if (created.parent != 0) comm.parent = created.parent - 1;
    comm.name = std::string(created.name);
  }
  void On(const format::Event&, const format::AlgorithmChosen& chosen) {
    auto comm = summary_.comms.find(chosen.comm - 1);
    if (comm == summary_.comms.end()) return;
    comm->second.choices[chosen.api] = {summary_.ApiName(chosen.api), std::string(chosen.algorithm),
                                        std::string(chosen.protocol), chosen.channels};
  }
  void On(const format::Event&, const format::AsyncError& error) {
    auto comm = summary_.comms.find(error.comm - 1);
    if (error.given_up_by == 0 || comm == summary_.comms.end()) return;
    comm->second.given_up_by = summary_.ApiName(error.given_up_by - 1);
    comm->second.under_way = error.under_way;
  }
  void On(const format::Event&, const format::ModuleLoaded& module) {
    summary_.modules[module.module] = {std::string(module.path), std::string(module.build_id),
                                       module.base};
  }
  void On(const format::Event&, const format::StackDefined& stack) {
    summary_.stacks[stack.stack].assign(stack.frames.begin(), stack.frames.end());
  }
  void On(const format::Event&, const format::Degraded& degraded) {
    // Said where it happens, and again at the end with what was lost by then.
    auto& reasons = degraded.remark != 0 ? summary_.remarks : summary_.degraded;
    // A function that may be called is of no interest once it has been.
    const std::string function = std::string(degraded.function) + ",";
    const auto is_of_it = [&](const std::string& reason) { return reason.starts_with(function); };
    if (!degraded.function.empty() && degraded.remark == 0)
      std::erase_if(summary_.remarks, is_of_it);
    else if (!degraded.function.empty() &&
             std::any_of(summary_.degraded.begin(), summary_.degraded.end(), is_of_it))
      return;
    if (std::find(reasons.begin(), reasons.end(), degraded.reason) == reasons.end())
      reasons.emplace_back(degraded.reason);
  }
  void On(const format::Event& event, const format::Crash& crash) {
    CrashSummary& summary = summary_.crash.emplace();
    summary.thread = summary_.ThreadName(event.thread);
    summary.signal = static_cast<int>(crash.signal);
    summary.code = crash.code;
    summary.address = crash.address;
    summary.sender_pid = crash.sender_pid;
    summary.stack = crash.stack;
    summary.frames.assign(crash.frames.begin(), crash.frames.end());
  }
  void On(const format::Event&, const format::Note& note) {
    if (std::string text = ExceptionText(note.text); !text.empty())
      summary_.exception = std::move(text);
  }
  void On(const format::Event&, const format::ProcessExit& exit) {
    if (exit.how != 2) summary_.exit = exit;
  }
  void On(const format::Event&, const format::Step& step) { summary_.last_step = step.step; }
  void On(const format::Event& event, const format::CallEnter& enter) {
    const EnteredCall call = Entered(event, enter);
    if (enter.comm_seq != 0 && (!last_call_ || last_call_->time_ns <= call.time_ns))
      last_call_ = call;
    if (enter.comm != 0 && enter.comm_seq != 0) {
      EnteredCall& last = last_of_comm_[enter.comm - 1];
      if (last.comm_seq < call.comm_seq) last = call;
    }
    open_[{event.thread, event.seq}] = call;
  }
  void On(const format::Event& event, const format::CallLeave& leave) {
    open_.erase({event.thread, leave.enter_seq});
  }

  RankSummary& summary_;
  // Calls whose leave was not among the events read, by thread and sequence number.
  std::map<std::pair<uint32_t, uint64_t>, EnteredCall> open_;
  std::optional<EnteredCall> last_call_;          // on a communicator
  std::map<uint32_t, EnteredCall> last_of_comm_;  // by CommId, of the events that were read
  std::map<uint32_t, uint64_t> last_ordinary_;
};

// Takes out of `threads` those of which the batch shows what they did last.
void TakeWhatTheyDid(const format::RankReader& reader, size_t batch, std::set<uint32_t>& threads) {
  auto cursor = reader.EventsOfBatch(batch);
  while (const format::Event* event = cursor->Next())
    if (!MayFollowOpenCall(*event)) threads.erase(event->thread);
}

// Everything that the index says, in as few pieces as it does: blocks of batches where there are
// some.
void ForEachSummary(const format::BatchList& batches,
                    const std::function<void(const format::BatchInfo&)>& sink) {
  for (size_t i = 0; i < batches.size();) {
    size_t behind = i + 1;
    const format::BatchBlock* block = batches.BlockAt(i, behind);
    sink(block != nullptr ? block->all : batches[i]);
    i = behind;
  }
}

// Adds the last batches with an event of this kind, at most `most` of them.
void WantLastWith(const format::BatchList& batches, EventKind kind, size_t most,
                  std::map<size_t, uint32_t>& wanted) {
  const auto has = [&](const format::BatchInfo& batch) {
    return (format::KindsOf(batch) & KindBit(kind)) != 0;
  };
  for (size_t before = batches.size(); most > 0; --most) {
    before = batches.FindLast(
        before, [&](const format::BatchBlock& block) { return has(block.all); }, has);
    if (before == batches.size()) return;
    wanted[before] |= static_cast<uint32_t>(KindBit(kind));
  }
}

// The batches to read, with the kinds of events that matter in them: those that hold definitions,
// and the last ones of each thread. A batch in which a thread only dies says nothing about the call
// in which it does.
std::map<size_t, uint32_t> BatchesToRead(const format::RankReader& reader) {
  constexpr uint32_t kAll = ~uint32_t{0};
  std::map<size_t, uint32_t> wanted;
  const format::BatchList& batches = reader.batches();
  const size_t end = batches.size();
  for (size_t i = 0; (i = batches.FindKinds(i, end, kDefining)) < end; ++i) wanted[i] |= kDefining;
  std::set<uint32_t> threads;
  ForEachSummary(batches, [&](const format::BatchInfo& summary) {
    for (const format::ThreadRange& range : summary.threads) threads.insert(range.thread);
  });
  const auto shows_one = [&](const format::BatchInfo& summary) {
    return std::any_of(summary.threads.begin(), summary.threads.end(),
                       [&](const auto& range) { return threads.contains(range.thread); });
  };
  // A program may have made a thread a step: each batch is read once, for all of them.
  for (size_t before = end; !threads.empty();) {
    const size_t i = batches.FindLast(
        before, [&](const format::BatchBlock& block) { return shows_one(block.all); }, shows_one);
    if (i == end) break;
    wanted[i] = kAll;
    TakeWhatTheyDid(reader, i, threads);
    before = i;
  }
  for (const EventKind kind : {EventKind::kStep, EventKind::kAlgorithmChosen})
    WantLastWith(batches, kind, 1, wanted);
  // Deja's own notes (of collections of garbage) may follow that of an exception.
  constexpr size_t kLastNotes = 16;
  WantLastWith(batches, EventKind::kNote, kLastNotes, wanted);
  if (end != 0) wanted[end - 1] = kAll;
  return wanted;
}

// The communicator's last operation, which need not be in a batch that was read already.
void FindLastCall(const format::RankReader& reader, const RankSummary& summary, CommSummary& comm) {
  if (comm.last_seq == 0 || (comm.last_call && comm.last_call->comm_seq == comm.last_seq)) return;
  comm.last_call.reset();
  auto cursor = reader.EventsFromOp(comm.number + 1, comm.last_seq);
  while (const format::Event* event = cursor->NextOf(KindBit(EventKind::kCallEnter))) {
    const auto* enter = event->As<format::CallEnter>();
    if (enter == nullptr || enter->comm != comm.number + 1 || enter->comm_seq != comm.last_seq)
      continue;
    comm.last_call = SummaryOf(Entered(*event, *enter), summary);
    return;
  }
}

// deja.h's inline functions are in the program's own code.
bool IsOwnHeader(const std::string& file) {
  return std::filesystem::path(file).filename() == "deja.h";
}

bool IsSystemModule(const std::string& path) {
  // PyTorch may lie anywhere: in a folder of PYTHONPATH, or in a developer's source tree.
  for (const char* part :
       {"/site-packages/", "/dist-packages/", "/lib/python3", "/torch/distributed/", "/torch/nn/",
        "/torch/optim/", "/torch/autograd/", "/torch/utils/", "/torch/_"})
    if (path.find(part) != std::string::npos) return true;
  // The interpreter, wherever it is.
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.rfind("python", 0) == 0 && name.find(".py") == std::string::npos) return true;
  if (name.rfind("libpython", 0) == 0) return true;
  return path.rfind('<', 0) == 0 || path.rfind("/lib", 0) == 0 || path.rfind("/usr/lib", 0) == 0 ||
         path.rfind('[', 0) == 0;
}

}  // namespace

bool IsRunning(const format::RankReader& reader) {
  return reader.end().state != format::EndState::kCleanEnd && ProcessAlive(reader.header());
}

bool IsProgramFrame(const SourceFrame& frame) {
  return !frame.module.empty() && !IsDejaModule(frame.module) && !IsSystemModule(frame.module) &&
         !IsOwnHeader(frame.file);
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string CallSummary::Describe() const {
  if (!comm) return name;
  if (comm_seq == 0) return fmt::format("{} of comm {}", name, *comm);
  return fmt::format("{} #{} of comm {}", name, comm_seq, *comm);
}

namespace {

// The first and the last line: an exception that another one holds, as a loader worker's, has its
// text last. Texts of one line stay.
std::string OneLine(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return "";
  text = text.substr(from, text.find_last_not_of(kBlanks) + 1 - from);
  const size_t first = text.find('\n');
  if (first == std::string_view::npos) return std::string(text);
  std::string_view last = text.substr(text.rfind('\n') + 1);
  last.remove_prefix(std::min(last.find_first_not_of(kBlanks), last.size()));
  std::string_view head = text.substr(0, first);
  head = head.substr(0, head.find_last_not_of(kBlanks) + 1);
  return fmt::format("{} … {}", head, last);
}

}  // namespace

std::string ExceptionText(std::string_view note) {
  constexpr std::string_view kException = "exception ";  // python/deja/interpreter/exceptions.py
  if (!note.starts_with(kException)) return "";
  std::string text(note.substr(kException.size()));
  // The frames after the innermost one are for listings.
  const size_t frames = text.rfind("; ");
  if (frames == std::string::npos) return OneLine(text);
  const std::string_view places = std::string_view(text).substr(frames + 2);
  return fmt::format("{} at {}", OneLine(std::string_view(text).substr(0, frames)),
                     places.substr(0, places.find(", ")));
}

std::string RankSummary::ApiName(uint32_t api) const {
  auto it = api_names.find(api);
  if (it == api_names.end()) return fmt::format("call {:#x}", api);
  if (it->second == kRandomDevice) return "random_device";
  return it->second.rfind("nccl", 0) == 0 ? it->second.substr(4) : it->second;
}

std::string RankSummary::ThreadName(uint32_t thread) const {
  if (thread == format::kLogThread) return "deja";
  auto it = threads.find(thread);
  return it == threads.end() ? fmt::format("thread {}", thread) : it->second;
}

std::vector<SourceFrame> RankSummary::Resolve(Symbolizer& symbolizer,
                                              const std::vector<format::StackFrame>& frames,
                                              bool first_is_pc) const {
  std::vector<SourceFrame> result;
  for (size_t i = 0; i < frames.size(); ++i) {
    auto module = modules.find(frames[i].module);
    ModuleName name = module == modules.end() ? ModuleName{} : module->second;
    auto resolved =
        symbolizer.Resolve(name.path, name.build_id, frames[i].offset, i > 0 || !first_is_pc);
    result.insert(result.end(), resolved.begin(), resolved.end());
  }
  return result;
}

std::optional<SourceFrame> RankSummary::ProgramFrame(Symbolizer& symbolizer,
                                                     const std::vector<format::StackFrame>& frames,
                                                     bool first_is_pc) const {
  std::vector<SourceFrame> resolved = Resolve(symbolizer, frames, first_is_pc);
  for (const SourceFrame& frame : resolved)
    if (IsProgramFrame(frame)) return frame;
  if (resolved.empty()) return std::nullopt;
  return resolved.front();
}

std::string RankSummary::PythonPlace(Symbolizer& symbolizer, const CallSummary& call) const {
  auto stack = stacks.find(call.stack);
  if (stack == stacks.end()) return "";
  auto frame = ProgramFrame(symbolizer, stack->second, false);
  return frame && frame->python ? " at " + frame->Describe() : "";
}

namespace {

// The kernel counts; which process it was it only tells its log.
std::string OomWords(uint64_t kills) {
  return fmt::format("the kernel's OOM killer ended {} process{} of its memory cgroup", kills,
                     kills == 1 ? "" : "es");
}

}  // namespace

std::string RankSummary::HowItEnded(Symbolizer& symbolizer) const {
  const std::string step = last_step ? fmt::format(", in step {}", *last_step) : "";
  const std::string after = last_call ? fmt::format(", after {}", last_call->Describe()) : "";
  std::string where = step;
  if (!open_calls.empty())
    where += fmt::format(", in {} (entered, never left){}", open_calls.back().Describe(),
                         PythonPlace(symbolizer, open_calls.back()));
  else
    where += after;

  // A signal that the program survived (it has a handler that went on) is not how it ended.
  if (crash && !(exit && fate.known && fate.signal == 0 && exit->code == fate.exit_code)) {
    auto stack = stacks.find(crash->stack);
    auto frame =
        ProgramFrame(symbolizer, stack == stacks.end() ? crash->frames : stack->second, true);
    std::string place;
    if (frame) place = " at " + (frame->python ? frame->Describe() : frame->Place());
    return SignalName(crash->signal) + place + (last_call ? step + after : where);
  }
  if (exit && exit->code != 0 && !exception.empty())
    return fmt::format("exit {}, {}{}", exit->code, exception, where);
  if (exit)
    return fmt::format("exit {}", exit->code) +
           (exit->code == 0 && open_calls.empty() ? "" : where);
  if (fate.known && fate.signal != 0)
    return fmt::format("killed by {}", SignalName(static_cast<int>(fate.signal))) +
           (fate.signal == SIGKILL && oom_kills != 0 ? fmt::format(" ({})", OomWords(oom_kills))
                                                     : "") +
           where;
  if (fate.known) return fmt::format("exit {}", fate.exit_code) + where;
  if (running) return "still running" + where;
  if (imported) return "ran when its dump was written" + where;
  const std::string why =
      oom_kills != 0 ? "SIGKILL: " + OomWords(oom_kills) : "SIGKILL or power loss";
  return fmt::format("died without a word ({})", why) + where;
}

bool RankSummary::EndedWell() const {
  if (fate.known) return fate.signal == 0 && fate.exit_code == 0;
  return exit && exit->code == 0;
}

RankSummary ReadRankSummary(const format::RankReader& reader) {
  RankSummary summary;
  for (const format::ApiName& api : reader.header().apis)
    summary.api_names[api.id] = std::string(api.name);
  summary.fate = reader.totals().fate;
  summary.swept = reader.totals().swept != 0;
  summary.oom_kills = reader.totals().oom_kills;
  summary.finished = reader.end().state == format::EndState::kCleanEnd;
  summary.running = IsRunning(reader);
  summary.imported = format::IsImported(reader.header().producer);

  SummaryBuilder builder(summary);
  for (const auto& [batch, kinds] : BatchesToRead(reader)) {
    auto cursor = reader.EventsOfBatch(batch);
    while (const format::Event* event = cursor->NextOf(kinds)) builder.Add(*event);
  }
  builder.Finish();
  ForEachSummary(reader.batches(), [&](const format::BatchInfo& batch) {
    for (const format::CommRange& range : batch.comms) {
      auto comm = range.comm == 0 ? summary.comms.end() : summary.comms.find(range.comm - 1);
      if (comm != summary.comms.end())
        comm->second.last_seq = std::max(comm->second.last_seq, range.last_seq);
    }
  });
  // The last operation of all is the last one of its communicator. The batches above need not hold
  // it: threads that only set up, wait or end have their last ones elsewhere.
  for (auto& [number, comm] : summary.comms) {
    FindLastCall(reader, summary, comm);
    if (comm.last_call &&
        (!summary.last_call || summary.last_call->time_ns <= comm.last_call->time_ns))
      summary.last_call = comm.last_call;
  }
  return summary;
}

}  // namespace deja::cli
