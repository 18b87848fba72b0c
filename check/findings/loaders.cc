// input: which rows the loaders of the ranks read, and in which order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/findings/matchers.h"
#include "check/matching/standing.h"

namespace deja::check {
namespace {

// One pass of a rank over the data of one of its loaders.
struct Pass {
  std::vector<uint64_t> rows;  // in order
  const BatchSeen* first = nullptr;
  size_t batches = 0;
  bool is_whole = false;  // to the end, each batch with numbers of rows
};

using PassesOfRank = std::map<uint64_t, Pass>;  // by number of the pass

class LoaderMatcher {
 public:
  LoaderMatcher(const Job& job, uint32_t loader, Found& found)
      : job_(job), loader_(loader), found_(found) {
    for (const RankSummary& rank : job.ranks) {
      PassesOfRank passes;
      std::set<uint64_t> without_rows;
      for (const BatchSeen& batch : rank.seen.batches) {
        if (batch.loader != loader) continue;
        Pass& pass = passes[batch.pass];
        if (pass.first == nullptr) pass.first = &batch;
        ++pass.batches;
        pass.rows.insert(pass.rows.end(), batch.rows.begin(), batch.rows.end());
        if (batch.rows.empty()) without_rows.insert(batch.pass);
      }
      for (const PassSeen& end : rank.seen.passes) {
        const auto pass = passes.find(end.pass);
        if (end.loader == loader && pass != passes.end())
          pass->second.is_whole =
              pass->second.batches == end.batches && without_rows.count(end.pass) == 0;
      }
      ranks_.push_back(std::move(passes));
    }
  }

  void Match() {
    if (OnSameOrder()) return;
    std::set<uint64_t> numbers;
    for (const auto& [number, pass] : ranks_.front()) numbers.insert(number);
    for (const uint64_t number : numbers)
      if (OnRows(number)) return;
  }

 private:
  // A loader that shuffles gives the same order again.
  bool OnSameOrder() {
    constexpr size_t kFew = 8;  // rows that may come twice in one order by chance
    uint64_t repeated = 0;
    for (const PassesOfRank& passes : ranks_) {
      bool found = false;
      for (const auto& [number, pass] : passes) {
        const auto next = passes.find(number + 1);
        if (next == passes.end() || pass.rows.size() < kFew || !pass.first->shuffles ||
            !pass.first->trains || !pass.is_whole || pass.rows != next->second.rows)
          continue;
        if (!found) repeated = number;
        found = true;
        break;
      }
      if (!found) return false;
    }
    const Pass& first = ranks_.front().at(repeated);
    const Pass& second = ranks_.front().at(repeated + 1);
    Finding finding = Begin(second);
    for (const RankSummary& rank : job_.ranks) finding.blamed.push_back(rank.rank);
    finding.sentence = fmt::format(
        "pass {} over the data reads the same {} batches in the same order as pass {} on {}, "
        "though "
        "its {} shuffles{}",
        repeated + 2, first.batches, repeated + 1, RanksText(finding.blamed), first.first->sampler,
        EpochText(*first.first, *second.first));
    finding.sides = {SideOfPass(finding.blamed, second)};
    found_.findings.push_back(std::move(finding));
    return true;
  }

  static std::string EpochText(const BatchSeen& first, const BatchSeen& second) {
    if (first.epoch == "none") return "";
    return first.epoch == second.epoch
               ? fmt::format(": its epoch is {} both times (set_epoch is not called)", first.epoch)
               : fmt::format(" (epochs {} and {})", first.epoch, second.epoch);
  }

  // The parts that the ranks read must be the whole, each row once, where numbers are made of it;
  // in training they may not be another shuffle's.
  bool OnRows(uint64_t number) {
    std::map<uint64_t, std::vector<uint32_t>> readers;
    std::map<std::string, std::vector<uint32_t>> epochs;
    size_t total = 0;
    const Pass* first = nullptr;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto it = ranks_[r].find(number);
      if (it == ranks_[r].end() || !it->second.is_whole || it->second.first->size == 0)
        return false;
      const Pass& pass = it->second;
      // A rank that reads everything shares nothing.
      if (pass.rows.size() >= pass.first->size) return false;
      if (first == nullptr) first = &pass;
      if (pass.first->size != first->first->size || pass.first->trains != first->first->trains ||
          pass.first->sampler != first->first->sampler)
        return false;
      epochs[pass.first->epoch].push_back(job_.ranks[r].rank);
      total += pass.rows.size();
      for (const uint64_t row : pass.rows) readers[row].push_back(job_.ranks[r].rank);
    }
    if (first == nullptr || ranks_.size() < 2) return false;
    std::vector<uint32_t> twice;
    std::vector<uint32_t> nobody;
    for (const auto& [row, ranks] : readers)
      if (ranks.size() > 1) twice.push_back(static_cast<uint32_t>(row));
    for (uint64_t row = 0; row < first->first->size && row < (1u << 24); ++row)
      if (readers.count(row) == 0) nobody.push_back(static_cast<uint32_t>(row));
    if (twice.empty() && nobody.empty()) return false;
    if (first->first->trains && epochs.size() < 2) return false;
    Finding finding = Begin(*first);
    std::string what = RowsText("read by two ranks", twice) + RowsText("read by no rank", nobody);
    if (epochs.size() > 1) {
      const auto most = std::max_element(
          epochs.begin(), epochs.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      std::string text;
      for (const auto& [epoch, ranks] : epochs) {
        text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", epoch, RanksText(ranks));
        std::vector<uint32_t>& side = &ranks == &most->second ? finding.waiting : finding.blamed;
        side.insert(side.end(), ranks.begin(), ranks.end());
      }
      std::sort(finding.blamed.begin(), finding.blamed.end());
      what += fmt::format("; the epoch of the sampler is {}", text);
    } else {
      for (const RankSummary& rank : job_.ranks) finding.blamed.push_back(rank.rank);
    }
    finding.sentence =
        fmt::format("of {} rows the ranks read {} in pass {}{}{}", first->first->size, total,
                    number + 1, first->first->trains ? "" : " without gradients", what);
    std::vector<uint32_t> all;
    for (const RankSummary& rank : job_.ranks) all.push_back(rank.rank);
    finding.sides = {SideOfPass(finding.blamed, *first)};
    found_.findings.push_back(std::move(finding));
    return true;
  }

  static std::string RowsText(const char* what, const std::vector<uint32_t>& rows) {
    if (rows.empty()) return "";
    constexpr size_t kShown = 16;
    const std::vector<uint32_t> shown(
        rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), kShown)));
    return fmt::format("; {}: {} ({}{})", what, rows.size(), RangesText(shown),
                       rows.size() > kShown ? ", …" : "");
  }

  Finding Begin(const Pass& pass) const {
    Finding finding;
    finding.kind = Kind::kInput;
    finding.time_ns = pass.first->time_ns;
    finding.next = {fmt::format("show RUN --rank {} --kind note", job_.ranks.front().rank)};
    return finding;
  }

  Side SideOfPass(const std::vector<uint32_t>& ranks, const Pass& pass) const {
    Side side;
    side.ranks = ranks;
    side.what = fmt::format("loader {} with {}", loader_, pass.first->sampler);
    side.site = job_.sites[pass.first->at];
    return side;
  }

  const Job& job_;
  uint32_t loader_;
  Found& found_;
  std::vector<PassesOfRank> ranks_;  // by index of the job's
};

}  // namespace

void MatchLoaders(const Job& job, Found& found) {
  std::set<uint32_t> loaders;
  for (const RankSummary& rank : job.ranks) {
    if (rank.is_partial) return;
    for (const BatchSeen& batch : rank.seen.batches) loaders.insert(batch.loader);
  }
  for (const uint32_t loader : loaders) LoaderMatcher(job, loader, found).Match();
}

}  // namespace deja::check
