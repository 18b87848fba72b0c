#include "cli/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "check/evidence/job.h"
#include "cli/events/comm_names.h"
#include "cli/events/rank_summary.h"

namespace deja::cli {
namespace {

constexpr uint64_t kRateSeconds = 10;
// Shorter waits are the work of the operation itself.
constexpr uint64_t kLeastWaitNs = 100'000'000;
// One machine has one clock; what threads need to wake is no difference of clocks.
constexpr int64_t kClockNoiseNs = 50'000'000;
// A rank that is late by less is on time.
constexpr uint64_t kOnTimeNs = 5'000'000;
constexpr double kLateShare = 0.7;
constexpr size_t kLeastCompared = 8;

// A rank's end of a communicator.
struct End {
  size_t rank = 0;  // index of the ranks
  uint32_t number = 0;
  const LiveComm* comm = nullptr;
  std::vector<std::pair<uint64_t, const LiveOperation*>> collectives;

  [[nodiscard]] const LiveOperation* Find(uint64_t number_of_it) const {
    if (collectives.empty() || number_of_it < collectives.front().first) return nullptr;
    const uint64_t index = number_of_it - collectives.front().first;
    return index < collectives.size() ? collectives[index].second : nullptr;
  }
  [[nodiscard]] uint64_t Furthest() const {
    return collectives.empty() ? comm->forgotten_collectives : collectives.back().first;
  }
};

using Ends = std::vector<End>;

std::vector<Ends> JoinCommunicators(const std::vector<LiveRank>& ranks) {
  CommNames names;
  for (const LiveRank& rank : ranks)
    for (const auto& [number, comm] : rank.comms) names.Add(comm.hash, comm.joined_as);
  // Its size tells apart what has a hash twice.
  std::map<std::pair<uint64_t, uint32_t>, Ends> by_hash;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (const auto& [number, comm] : ranks[i].comms)
      if (comm.nranks > 1)
        by_hash[{names.Of(comm.hash), comm.nranks}].push_back(
            {i, number, &comm, comm.Collectives()});
  std::vector<Ends> joined;
  joined.reserve(by_hash.size());
  for (auto& [hash, ends] : by_hash) joined.push_back(std::move(ends));
  return joined;
}

// How far each end's clock is ahead of the first one's: the middle of their differences.
std::vector<int64_t> ClockOffsets(const Ends& ends) {
  std::vector<int64_t> offsets(ends.size());
  for (size_t e = 1; e < ends.size(); ++e) {
    std::vector<int64_t> differences;
    for (const auto& [number, one] : ends[e].collectives) {
      const LiveOperation* first = ends.front().Find(number);
      if (first == nullptr || first->end_ns == 0 || one->end_ns == 0 ||
          !check::WaitsForAll(one->operation))
        continue;
      differences.push_back(static_cast<int64_t>(one->end_ns - first->end_ns));
    }
    if (differences.empty()) continue;
    const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
    std::nth_element(differences.begin(), middle, differences.end());
    if (std::abs(*middle) >= kClockNoiseNs) offsets[e] = *middle;
  }
  return offsets;
}

class ViewMaker {
 public:
  ViewMaker(const std::vector<LiveRank>& ranks, uint64_t now_ns, TopView& view)
      : ranks_(ranks),
        now_ns_(now_ns),
        view_(view),
        joined_(JoinCommunicators(ranks)),
        times_late_(ranks.size()),
        times_compared_(ranks.size()) {}

  void Make() {
    for (const LiveRank& rank : ranks_) AddRow(rank);
    for (const Ends& ends : joined_) {
      FindWaits(ends);
      FindLate(ends);
    }
    std::stable_sort(view_.waits.begin(), view_.waits.end(),
                     [](const TopWait& a, const TopWait& b) { return a.since_ns > b.since_ns; });
    FindStragglers();
    Sum();
  }

 private:
  // How long ago that was, by the clock of the rank's machine. A rank that has ended ages no more.
  [[nodiscard]] uint64_t Since(const LiveRank& rank, uint64_t time_ns) const {
    const uint64_t now = rank.is_running ? std::max(now_ns_, rank.last_ns) : rank.last_ns;
    return now > time_ns ? now - time_ns : 0;
  }

  static std::string StateOf(const LiveRank& rank) {
    if (rank.is_running) return "running";
    if (rank.crashed_by != 0) return SignalName(rank.crashed_by);
    if (rank.exit_code) return fmt::format("exit {}", *rank.exit_code);
    return rank.is_finished ? "ended" : "gone";
  }

  void AddRow(const LiveRank& rank) {
    TopRow row;
    row.rank = rank.rank;
    row.state = StateOf(rank);
    row.host = rank.host;
    row.pid = rank.pid;
    row.step = rank.step;
    row.operations = rank.operations;
    row.bytes = rank.bytes;
    double span = 0;
    const LiveSecond lately = rank.Lately(kRateSeconds, span);
    // A rank that does nothing has no events: its time goes on, in the whole seconds of rates.
    const uint64_t idle_s = Since(rank, rank.last_ns) / 1'000'000'000;
    if (rank.is_running) span += static_cast<double>(idle_s);
    if (span > 0) {
      row.steps_per_second = static_cast<double>(lately.steps) / span;
      row.operations_per_second = static_cast<double>(lately.operations) / span;
      row.bytes_per_second = static_cast<double>(lately.bytes) / span;
    }
    SayWhatItDoes(rank, row);
    view_.rows.push_back(std::move(row));
  }

  // The operation that it entered last, of those that it is in if there are any.
  void SayWhatItDoes(const LiveRank& rank, TopRow& row) const {
    const LiveOperation* last = nullptr;
    uint32_t comm = 0;
    uint64_t seq = 0;
    for (const auto& [number, its] : rank.comms) {
      for (const auto& [at, operation] : its.recent) {
        if (!operation.is_entered || operation.is_other) continue;
        const auto key = [](const LiveOperation& one) {
          return std::pair(one.end_ns == 0, one.end_ns == 0 ? one.begin_ns : one.end_ns);
        };
        if (last != nullptr && key(operation) < key(*last)) continue;
        last = &operation;
        comm = number;
        seq = at;
      }
    }
    if (last == nullptr) {
      row.doing = "before its first operation";
      row.since_ns = Since(rank, rank.begin_ns);
      return;
    }
    const bool is_in = last->end_ns == 0;
    row.doing = fmt::format("{} {} #{} of comm {}", is_in ? "in" : "after",
                            check::NameOf(last->operation), seq, comm);
    row.since_ns = Since(rank, is_in ? last->begin_ns : last->end_ns);
  }

  static std::string NameOf(const LiveOperation& operation, uint64_t number, const End& end) {
    const std::string name = end.comm->name.empty() ? "" : fmt::format(" ({})", end.comm->name);
    return check::IsTransfer(operation.operation)
               ? fmt::format("{} #{} of comm {}{}", check::NameOf(operation.operation), number,
                             end.number, name)
               : fmt::format("{} {} of comm {}{}", check::NameOf(operation.operation), number,
                             end.number, name);
  }

  void FindWaits(const Ends& ends) {
    // Two ranks in one place of it: it is several, and nothing is known of who waits for whom.
    std::set<uint32_t> places;
    for (const End& end : ends)
      if (!places.insert(end.comm->rank).second) return;
    std::map<uint64_t, TopWait> waits;
    for (const End& end : ends) {
      if (!ranks_[end.rank].is_running) continue;
      for (const auto& [number, operation] : end.collectives) {
        if (operation->end_ns != 0) continue;
        TopWait& wait = waits[number];
        wait.waiting.push_back(ranks_[end.rank].rank);
        wait.operation = NameOf(*operation, number, end);
        wait.since_ns = std::max(wait.since_ns, Since(ranks_[end.rank], operation->begin_ns));
      }
      FindTransfers(ends, end);
    }
    for (auto& [number, wait] : waits) {
      for (const End& end : ends)
        if (end.Furthest() < number) wait.awaited.push_back(ranks_[end.rank].rank);
      Keep(std::move(wait));
    }
  }

  // Sends and receives wait for their peer.
  void FindTransfers(const Ends& ends, const End& end) {
    for (const auto& [seq, operation] : end.comm->recent) {
      if (!operation.is_entered || operation.is_other || operation.end_ns != 0 ||
          !check::IsTransfer(operation.operation))
        continue;
      TopWait wait;
      wait.waiting = {ranks_[end.rank].rank};
      wait.operation = NameOf(operation, seq, end);
      wait.since_ns = Since(ranks_[end.rank], operation.begin_ns);
      for (const End& other : ends)
        if (other.comm->rank == operation.peer) wait.awaited = {ranks_[other.rank].rank};
      Keep(std::move(wait));
    }
  }

  void Keep(TopWait wait) {
    std::sort(wait.waiting.begin(), wait.waiting.end());
    std::sort(wait.awaited.begin(), wait.awaited.end());
    if (wait.since_ns >= kLeastWaitNs) view_.waits.push_back(std::move(wait));
  }

  // The rank that entered last, in collectives that all have made and that wait for all.
  void FindLate(const Ends& ends) {
    if (ends.size() < 2 || ends.size() != ends.front().comm->nranks) return;
    const std::vector<int64_t> offsets = ClockOffsets(ends);
    for (const auto& [number, first] : ends.front().collectives) {
      if (!check::WaitsForAll(first->operation)) continue;
      size_t last = 0;
      uint64_t latest = 0;
      uint64_t second = 0;
      bool is_whole = true;
      for (size_t e = 0; e < ends.size() && is_whole; ++e) {
        const LiveOperation* its = ends[e].Find(number);
        is_whole = its != nullptr && its->operation == first->operation;
        if (!is_whole) break;
        // No rank is late for an operation while it is in the one before.
        const LiveOperation* before = ends[e].Find(number - 1);
        uint64_t begin = its->begin_ns;
        if (before != nullptr) begin = std::max(begin, before->end_ns);
        begin -= static_cast<uint64_t>(offsets[e]);
        second = std::max(second, std::min(begin, latest));
        if (begin >= latest) last = e;
        latest = std::max(latest, begin);
      }
      if (!is_whole) continue;
      for (const End& end : ends) ++times_compared_[end.rank];
      if (latest - second < kOnTimeNs) continue;
      ++times_late_[ends[last].rank];
      view_.rows[ends[last].rank].waited_for_ns += latest - second;
    }
  }

  void FindStragglers() {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (times_compared_[i] == 0) continue;
      view_.rows[i].late_share =
          static_cast<double>(times_late_[i]) / static_cast<double>(times_compared_[i]);
      if (times_compared_[i] >= kLeastCompared && view_.rows[i].late_share >= kLateShare)
        view_.stragglers.push_back(i);
    }
    std::sort(view_.stragglers.begin(), view_.stragglers.end(), [&](size_t a, size_t b) {
      return view_.rows[a].waited_for_ns > view_.rows[b].waited_for_ns;
    });
  }

  void Sum() {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    std::optional<double> slowest;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const LiveRank& rank = ranks_[i];
      const TopRow& row = view_.rows[i];
      view_.world_size = std::max(view_.world_size, rank.world_size);
      view_.running += rank.is_running ? 1 : 0;
      view_.bytes += row.bytes;
      view_.operations_per_second += row.operations_per_second;
      view_.bytes_per_second += row.bytes_per_second;
      begin = std::min(begin, rank.begin_ns);
      end = std::max(end, rank.is_running ? std::max(now_ns_, rank.last_ns) : rank.last_ns);
      if (!row.step) continue;
      view_.first_step = std::min(view_.first_step.value_or(*row.step), *row.step);
      view_.last_step = std::max(view_.last_step.value_or(*row.step), *row.step);
      slowest = std::min(slowest.value_or(row.steps_per_second), row.steps_per_second);
    }
    view_.elapsed_ns = end > begin ? end - begin : 0;
    view_.steps_per_second = slowest.value_or(0);
  }

  const std::vector<LiveRank>& ranks_;
  uint64_t now_ns_;
  TopView& view_;
  std::vector<Ends> joined_;
  std::vector<size_t> times_late_;      // by index of the ranks
  std::vector<size_t> times_compared_;  // likewise
};

}  // namespace

std::string TopWait::Describe() const {
  const std::string who = check::RanksText(waiting);
  if (awaited.empty())
    return fmt::format("{} {} in {}", who, waiting.size() == 1 ? "is" : "are", operation);
  return fmt::format("{} {} for {} in {}", who, waiting.size() == 1 ? "waits" : "wait",
                     check::RanksText(awaited), operation);
}

TopView MakeTopView(const std::string& trace, const std::vector<LiveRank>& ranks, uint64_t now_ns) {
  TopView view;
  view.trace = trace;
  ViewMaker(ranks, now_ns, view).Make();
  return view;
}

nlohmann::json ToJson(const TopView& view) {
  nlohmann::json json = {{"trace", view.trace},
                         {"world_size", view.world_size},
                         {"running", view.running},
                         {"elapsed_ns", view.elapsed_ns},
                         {"steps_per_second", view.steps_per_second},
                         {"operations_per_second", view.operations_per_second},
                         {"bytes_per_second", view.bytes_per_second},
                         {"bytes", view.bytes},
                         {"ranks", nlohmann::json::array()},
                         {"waits", nlohmann::json::array()},
                         {"stragglers", nlohmann::json::array()},
                         {"notes", view.notes}};
  if (view.first_step) json["first_step"] = *view.first_step;
  if (view.last_step) json["last_step"] = *view.last_step;
  for (const TopRow& row : view.rows) {
    nlohmann::json its = {{"rank", row.rank},
                          {"state", row.state},
                          {"host", row.host},
                          {"pid", row.pid},
                          {"steps_per_second", row.steps_per_second},
                          {"operations_per_second", row.operations_per_second},
                          {"bytes_per_second", row.bytes_per_second},
                          {"operations", row.operations},
                          {"bytes", row.bytes},
                          {"doing", row.doing},
                          {"since_ns", row.since_ns},
                          {"late_share", row.late_share},
                          {"waited_for_ns", row.waited_for_ns}};
    if (row.step) its["step"] = *row.step;
    json["ranks"].push_back(std::move(its));
  }
  for (const TopWait& wait : view.waits)
    json["waits"].push_back({{"waiting", wait.waiting},
                             {"for", wait.awaited},
                             {"operation", wait.operation},
                             {"since_ns", wait.since_ns}});
  for (const size_t row : view.stragglers) json["stragglers"].push_back(view.rows[row].rank);
  return json;
}

}  // namespace deja::cli
