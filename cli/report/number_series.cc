#include "cli/report/number_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace deja::cli {
namespace {

// ncclFloat16, the first floating-point type.
constexpr uint32_t kFirstReal = 6;
// Equal operations of one place in one step that have series of their own.
constexpr uint32_t kMostInStep = 8;

struct SeriesKey {
  uint32_t comm = 0;
  uint32_t signature = 0;
  uint32_t site = 0;
  uint32_t names = 0;
  uint32_t in_step = 0;  // which one within the step
  bool has_step = false;
  std::string snapshot;  // name of a snapshot; then nothing else counts

  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};

class SeriesReader {
 public:
  explicit SeriesReader(const check::RankSummary& summary) : summary_(summary) {
    for (const check::CommSummary& comm : summary.comms) {
      AddCalls(comm, comm.collectives);
      AddCalls(comm, comm.transfers);
    }
  }

  std::vector<NumberSeries> Read(const format::RankReader& reader, const SeriesLimits& limits) {
    using format::EventKind;
    using format::KindBit;
    auto cursor = reader.Events();
    while (const format::Event* event =
               cursor->NextOf(KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCallResults) |
                              KindBit(EventKind::kSnapshot) | KindBit(EventKind::kStep))) {
      if (const auto* enter = event->As<format::CallEnter>())
        for (const format::Tensor& tensor : enter->inputs)
          Add(enter->comm, enter->comm_seq, tensor, false);
      if (const auto* results = event->As<format::CallResults>())
        for (const format::Tensor& tensor : results->outputs)
          Add(results->comm, results->comm_seq, tensor, true);
      if (const auto* step = event->As<format::Step>()) step_ = step->step;
      if (const auto* snapshot = event->As<format::Snapshot>()) AddSnapshot(*snapshot);
    }
    return Chosen(limits);
  }

 private:
  struct Place {
    SeriesKey key;
    uint64_t x = 0;
    const check::Call* call = nullptr;
  };
  struct Gathered {
    NumberSeries series;
    std::map<std::pair<uint64_t, uint64_t>, std::pair<NumberPoint, bool>> points;  // x, number
  };

  template <typename Calls>
  void AddCalls(const check::CommSummary& comm, const Calls& calls) {
    std::map<std::tuple<SeriesKey, uint64_t>, uint32_t> counts;
    for (const check::Call& call : calls) {
      Place place;
      place.key = {
          comm.number, call.signature, call.site, call.names, 0, call.step != check::kNoStep, ""};
      // Steps and numbers of operations do not go on one axis.
      place.x = place.key.has_step ? call.step : call.seq;
      has_steps_ = has_steps_ || place.key.has_step;
      place.call = &call;
      if (place.key.has_step) {
        const uint32_t index = counts[{place.key, call.step}]++;
        if (index >= kMostInStep) continue;
        place.key.in_step = index;
      }
      places_.emplace(std::pair{comm.number + 1, call.seq}, std::move(place));
    }
  }

  void Add(uint32_t comm, uint64_t seq, const format::Tensor& tensor, bool is_result) {
    const auto found = places_.find({comm, seq});
    if (found == places_.end()) return;
    const Place& place = found->second;
    Gathered* gathered = Take(place.key, tensor, place.x, seq, is_result);
    if (gathered == nullptr || !gathered->series.title.empty()) return;
    const check::Signature& signature = summary_.signatures[place.call->signature];
    gathered->series.title = check::Describe(signature);
    if (const std::string site = check::Describe(summary_.sites[place.call->site]); !site.empty())
      gathered->series.title += " at " + site;
    if (place.key.in_step != 0)
      gathered->series.title += fmt::format(", number {} in the step", place.key.in_step + 1);
    if (const std::string& names = summary_.names[place.call->names]; !names.empty())
      gathered->series.title += ", " + names;
    gathered->series.has_steps = place.key.has_step;
    if (has_steps_ && !place.key.has_step) gathered->series.title += ", before the first step";
  }

  void AddSnapshot(const format::Snapshot& snapshot) {
    if (snapshot.opaque) return;
    SeriesKey key;
    key.snapshot = std::string(snapshot.name);
    Gathered* gathered = Take(key, snapshot.tensor, step_, 0, true);
    if (gathered == nullptr) return;
    gathered->series.title = "snapshot " + key.snapshot;
    gathered->series.has_steps = true;
  }

  // A result replaces an input. Null: the tensor has no numbers.
  Gathered* Take(const SeriesKey& key, const format::Tensor& tensor, uint64_t x, uint64_t number,
                 bool is_result) {
    if (tensor.hash.IsZero() || tensor.dtype < kFirstReal || tensor.dtype == format::kRawBytes ||
        tensor.count == 0)
      return nullptr;
    Gathered& gathered = gathered_[key];
    NumberPoint point;
    point.x = x;
    point.is_nan = tensor.stats.nan_count != 0;
    gathered.series.is_scalar = tensor.count == 1;
    point.value = tensor.count == 1 ? tensor.stats.sum : std::sqrt(tensor.stats.sum_squares);
    const auto [it, added] = gathered.points.try_emplace({x, number}, point, is_result);
    if (!added && (is_result || !it->second.second)) it->second = {point, is_result};
    return &gathered;
  }

  std::vector<NumberSeries> Chosen(const SeriesLimits& limits) {
    std::vector<NumberSeries> all;
    for (auto& [key, gathered] : gathered_) {
      const size_t stride = (gathered.points.size() + limits.points - 1) / limits.points;
      size_t index = 0;
      for (const auto& [at, point] : gathered.points)
        if (index++ % std::max<size_t>(stride, 1) == 0 ||
            (point.first.is_nan && gathered.series.points.size() < 2 * limits.points))
          gathered.series.points.push_back(point.first);
      all.push_back(std::move(gathered.series));
    }
    std::stable_sort(all.begin(), all.end(), [](const NumberSeries& a, const NumberSeries& b) {
      return std::pair(!a.is_scalar, b.points.size()) < std::pair(!b.is_scalar, a.points.size());
    });
    if (all.size() > limits.series) all.resize(limits.series);
    return all;
  }

  const check::RankSummary& summary_;
  std::map<std::pair<uint32_t, uint64_t>, Place> places_;  // communicator + 1, number
  std::map<SeriesKey, Gathered> gathered_;
  uint64_t step_ = 0;
  bool has_steps_ = false;  // some operation is in a step
};

}  // namespace

std::vector<NumberSeries> ReadNumberSeries(const format::RankReader& reader,
                                           const check::RankSummary& summary,
                                           const SeriesLimits& limits) {
  if (!summary.has_digests) return {};
  return SeriesReader(summary).Read(reader, limits);
}

}  // namespace deja::cli
