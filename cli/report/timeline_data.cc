#include "cli/report/timeline_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "cli/report/packed_numbers.h"

namespace deja::cli {
namespace {

using check::JoinedOperation;
using check::Part;

// Numbers of page.js, too.
enum OperationFlag : uint32_t {
  kIsTransfer = 1,
  kDisagrees = 2,
  kIsOpen = 4,
  kHasFailed = 8,
  kHasNan = 16,
  kHasParts = 32,
  kIsOfFinding = 64,
};
enum PartFlag : uint32_t {
  kPartIsOpen = 1,
  kPartFailed = 2,
  kPartHasNan = 4,
  kPartDiffers = 8,   // its own signature and site follow
  kPartMisfits = 16,  // its call does not fit that of most ranks
};

constexpr uint8_t kNanFlags = check::kNanIn | check::kNanOut;
constexpr size_t kHeatRows = 256;
constexpr size_t kHeatColumns = 600;

// A number for each text that a report repeats.
class Numbered {
 public:
  uint64_t Of(const std::string& text) {
    const auto [it, added] = numbers_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return it->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, uint64_t> numbers_;
  std::vector<std::string> texts_;
};

// Marks in `chosen` as many as fit into `room`. Urgent ones come first. Those with the longest
// waits get half of what is left, an even sample gets the rest.
template <typename Cost, typename Urgent>
void Choose(const std::vector<JoinedOperation>& operations, size_t room, const Urgent& is_urgent,
            const Cost& cost, std::vector<bool>& chosen) {
  const auto take = [&](size_t i, size_t& left) {
    if (chosen[i] || cost(i) > left) return;
    chosen[i] = true;
    left -= cost(i);
  };
  size_t left = room;
  for (size_t i = 0; i < operations.size(); ++i)
    if (is_urgent(i)) take(i, left);
  std::vector<size_t> by_wait(operations.size());
  for (size_t i = 0; i < by_wait.size(); ++i) by_wait[i] = i;
  std::stable_sort(by_wait.begin(), by_wait.end(), [&](size_t a, size_t b) {
    return operations[a].met_ns - operations[a].begin_ns >
           operations[b].met_ns - operations[b].begin_ns;
  });
  size_t half = left / 2;
  left -= half;
  for (const size_t i : by_wait) take(i, half);
  left += half;
  size_t all = 0;
  for (size_t i = 0; i < operations.size(); ++i) all += chosen[i] ? 0 : cost(i);
  const size_t stride = left == 0 ? operations.size() : all / left + 1;
  for (size_t i = 0; i < operations.size(); i += std::max<size_t>(stride, 1)) take(i, left);
}

// The call that most parts have made; of several the first.
const check::Call& UsualCall(const JoinedOperation& one) {
  std::map<uint32_t, size_t> counts;
  const Part* usual = &one.parts.front();
  if (one.agrees) return *usual->call;
  for (const Part& part : one.parts) ++counts[part.call->signature];
  for (const Part& part : one.parts)
    if (counts[part.call->signature] > counts[usual->call->signature]) usual = &part;
  return *usual->call;
}

class TimelineWriter {
 public:
  TimelineWriter(const check::Job& job, const std::vector<JoinedOperation>& operations,
                 uint64_t origin_ns)
      : job_(job), operations_(operations), origin_ns_(origin_ns) {}

  nlohmann::json Write(const check::Report& report, const TimelineLimits& limits) {
    FindUrgent(report);
    std::vector<bool> listed(operations_.size());
    const auto is_urgent = [&](size_t i) { return urgent_[i]; };
    Choose(
        operations_, limits.operations, is_urgent, [](size_t) { return size_t{1}; }, listed);
    std::vector<bool> with_parts(operations_.size());
    Choose(
        operations_, limits.parts, is_urgent,
        [&](size_t i) { return listed[i] ? operations_[i].parts.size() : limits.parts + 1; },
        with_parts);
    size_t kept = 0;
    size_t detailed = 0;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (!listed[i]) continue;
      ++kept;
      detailed += with_parts[i] ? 1 : 0;
      AddOperation(operations_[i], with_parts[i]);
    }
    nlohmann::json ranks = nlohmann::json::array();
    for (const check::RankSummary& rank : job_.ranks) ranks.push_back(rank.rank);
    nlohmann::json comms = nlohmann::json::array();
    for (const check::Communicator& communicator : job_.communicators)
      comms.push_back({{"name", job_.NameOf(communicator)},
                       {"given", communicator.name},
                       {"size", communicator.nranks},
                       {"first", EdgeRow(communicator, false)},
                       {"last", EdgeRow(communicator, true)}});
    return {{"ranks", ranks},
            {"comms", comms},
            {"signatures", signatures_.texts()},
            {"sites", sites_.texts()},
            {"span", Since(LastTime())},
            {"total", operations_.size()},
            {"listed", kept},
            {"detailed", detailed},
            {"operations", packed_.Text()},
            {"heat", Heat()}};
  }

 private:
  [[nodiscard]] uint64_t Since(uint64_t time_ns) const {
    return time_ns > origin_ns_ ? (time_ns - origin_ns_) / 1000 : 0;
  }
  [[nodiscard]] uint64_t LastTime() const {
    uint64_t last = job_.last_time_ns;
    for (const JoinedOperation& one : operations_) last = std::max(last, one.end_ns);
    return last;
  }

  // The lowest index of its ranks, or the highest one.
  static size_t EdgeRow(const check::Communicator& communicator, bool highest) {
    size_t row = communicator.members.front().rank;
    for (const check::Member& member : communicator.members)
      row = highest ? std::max(row, member.rank) : std::min(row, member.rank);
    return row;
  }

  void FindUrgent(const check::Report& report) {
    std::set<std::pair<std::string, uint64_t>> named;
    for (const check::Finding& finding : report.findings)
      if (finding.number != 0) named.emplace(finding.comm, finding.number);
    std::vector<std::string> names;
    for (const check::Communicator& communicator : job_.communicators)
      names.push_back(job_.NameOf(communicator));
    for (const JoinedOperation& one : operations_) {
      of_finding_.push_back(!one.is_transfer &&
                            named.count({names[one.communicator], one.number}) != 0);
      const bool is_odd = std::any_of(one.parts.begin(), one.parts.end(), [](const Part& part) {
        return part.is_open || part.call->Is(check::kFailed) || (part.call->flags & kNanFlags) != 0;
      });
      urgent_.push_back(of_finding_.back() || is_odd || !one.agrees);
    }
  }

  void AddOperation(const JoinedOperation& one, bool with_parts) {
    const auto index = static_cast<size_t>(&one - operations_.data());
    const check::Call& usual = UsualCall(one);
    uint32_t flags = 0;
    if (one.is_transfer) flags |= kIsTransfer;
    if (!one.agrees) flags |= kDisagrees;
    if (of_finding_[index]) flags |= kIsOfFinding;
    if (with_parts) flags |= kHasParts;
    for (const Part& part : one.parts) {
      if (part.is_open) flags |= kIsOpen;
      if (part.call->Is(check::kFailed)) flags |= kHasFailed;
      if ((part.call->flags & kNanFlags) != 0) flags |= kHasNan;
    }
    packed_.Add(flags);
    packed_.Add(one.communicator);
    packed_.Add(one.number);
    packed_.Add(signatures_.Of(job_.SignatureText(usual)));
    packed_.Add(sites_.Of(check::Describe(job_.sites[usual.site])));
    packed_.Add(usual.step == check::kNoStep ? 0 : usual.step + 1);
    packed_.Add(usual.seq);
    packed_.AddSigned(static_cast<int64_t>(Since(one.begin_ns)) - static_cast<int64_t>(before_us_));
    before_us_ = Since(one.begin_ns);
    packed_.Add(Since(one.met_ns) - before_us_);
    packed_.Add(Since(one.end_ns) - before_us_);
    packed_.Add(one.parts[one.Last()].rank);
    packed_.Add(one.parts.size());
    if (with_parts) AddParts(one, usual);
  }

  void AddParts(const JoinedOperation& one, const check::Call& usual) {
    int64_t next_rank = 0;
    for (const Part& part : one.parts) {
      const bool differs = part.call->signature != usual.signature || part.call->site != usual.site;
      uint32_t flags = 0;
      if (part.is_open) flags |= kPartIsOpen;
      if (part.call->Is(check::kFailed)) flags |= kPartFailed;
      if ((part.call->flags & kNanFlags) != 0) flags |= kPartHasNan;
      if (differs) flags |= kPartDiffers;
      if (!one.is_transfer &&
          !Fit(job_.signatures[usual.signature], job_.signatures[part.call->signature]))
        flags |= kPartMisfits;
      packed_.Add(flags);
      packed_.AddSigned(static_cast<int64_t>(part.rank) - next_rank);
      next_rank = static_cast<int64_t>(part.rank) + 1;
      packed_.Add(Since(part.begin_ns) - before_us_);
      packed_.Add(Since(part.end_ns) - Since(part.begin_ns));
      if (!differs) continue;
      packed_.Add(signatures_.Of(job_.SignatureText(*part.call)));
      packed_.Add(sites_.Of(check::Describe(job_.sites[part.call->site])));
    }
  }

  // A byte for each group of ranks and each piece of time. The high four bits are the part of it in
  // operations, the low four the part until the last rank had entered. Both count fifteenths.
  nlohmann::json Heat() const {
    const size_t rows = std::min(job_.ranks.size(), kHeatRows);
    const double span = std::max<double>(1, static_cast<double>(Since(LastTime())));
    const double column_us = span / kHeatColumns;
    std::vector<double> inside(rows * kHeatColumns);
    std::vector<double> waited(rows * kHeatColumns);
    const auto add = [&](std::vector<double>& cells, size_t row, double from, double to) {
      if (to <= from) return;
      const auto last = std::min<size_t>(static_cast<size_t>(to / column_us), kHeatColumns - 1);
      for (auto column = static_cast<size_t>(from / column_us); column <= last; ++column) {
        const double begin = std::max(from, static_cast<double>(column) * column_us);
        const double end = std::min(to, static_cast<double>(column + 1) * column_us);
        cells[row * kHeatColumns + column] += std::max(0.0, end - begin);
      }
    };
    for (const JoinedOperation& one : operations_) {
      for (const Part& part : one.parts) {
        const size_t row = part.rank * rows / job_.ranks.size();
        const auto begin = static_cast<double>(Since(part.begin_ns));
        add(inside, row, begin, static_cast<double>(Since(part.end_ns)));
        if (!one.is_transfer)
          add(waited, row, begin, static_cast<double>(Since(std::min(one.met_ns, part.end_ns))));
      }
    }
    std::string cells;
    for (size_t i = 0; i < inside.size(); ++i) {
      const size_t row = i / kHeatColumns;
      const size_t first = (row * job_.ranks.size() + rows - 1) / rows;
      const size_t end = ((row + 1) * job_.ranks.size() + rows - 1) / rows;
      const double room = column_us * static_cast<double>(std::max<size_t>(1, end - first));
      const auto fifteenths = [&](double part) {
        return static_cast<uint32_t>(std::min(15.0, part / room * 15 + 0.5));
      };
      cells += static_cast<char>(fifteenths(inside[i]) << 4 | fifteenths(waited[i]));
    }
    return {{"rows", rows}, {"columns", kHeatColumns}, {"cells", Base64(cells)}};
  }

  const check::Job& job_;
  const std::vector<JoinedOperation>& operations_;
  uint64_t origin_ns_;
  std::vector<bool> urgent_;
  std::vector<bool> of_finding_;
  Numbered signatures_;
  Numbered sites_;
  PackedNumbers packed_;
  uint64_t before_us_ = 0;
};

}  // namespace

nlohmann::json TimelineData(const check::Job& job, const std::vector<JoinedOperation>& operations,
                            const check::Report& report, uint64_t origin_ns,
                            const TimelineLimits& limits) {
  return TimelineWriter(job, operations, origin_ns).Write(report, limits);
}

}  // namespace deja::cli
