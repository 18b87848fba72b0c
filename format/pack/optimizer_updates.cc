#include "format/pack/optimizer_updates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

namespace deja::format {
namespace {

constexpr uint32_t kFloat32 = 7;  // ncclDataType_t
constexpr uint64_t kMostAddress = uint64_t{1} << 62;

// In bytes, of an element of an ncclDataType_t; anything else is bytes.
uint64_t WidthOf(uint32_t dtype) {
  constexpr std::array<uint64_t, 12> kWidths = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return dtype < kWidths.size() ? kWidths[dtype] : 1;
}

bool IsSomewhere(const Tensor& tensor) {
  return tensor.address != 0 && tensor.address < kMostAddress && tensor.count != 0 &&
         tensor.count < kMaxPayloadBytes;
}
bool IsKeptFloats(const Tensor& tensor) {
  return tensor.dtype == kFloat32 && tensor.payload == static_cast<uint32_t>(PayloadState::kKept) &&
         IsSomewhere(tensor);
}

// What collectives have written last, by address.
class Results {
 public:
  void Add(const Tensor& tensor) {
    const uint64_t begin = tensor.address;
    const uint64_t end = begin + tensor.count * WidthOf(tensor.dtype);
    Cut(begin);
    Cut(end);
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    // What is not kept has overwritten what was there all the same.
    if (IsKeptFloats(tensor)) ranges_[begin] = {end, tensor.hash, 0};
  }

  // The payloads that [begin, end) came from; empty if not all of it did.
  [[nodiscard]] std::vector<GradientRange> Find(uint64_t begin, uint64_t end) const {
    std::vector<GradientRange> found;
    while (begin < end) {
      auto range = ranges_.upper_bound(begin);
      if (range == ranges_.begin()) return {};
      --range;
      const auto& [last, payload, offset] = range->second;
      if (last <= begin) return {};
      const uint64_t size = std::min(last, end) - begin;
      found.push_back({payload, offset + (begin - range->first), size});
      begin += size;
    }
    return found;
  }

 private:
  struct Range {
    uint64_t end = 0;
    Hash128 payload;
    uint64_t offset = 0;  // of its beginning, in the payload
  };

  // Makes a range that goes on over `at` two.
  void Cut(uint64_t at) {
    auto range = ranges_.lower_bound(at);
    if (range == ranges_.begin()) return;
    --range;
    Range& before = range->second;
    if (before.end <= at) return;
    ranges_[at] = {before.end, before.payload, before.offset + (at - range->first)};
    before.end = at;
  }

  std::map<uint64_t, Range> ranges_;
};

// What happened, to be put in the order of time: threads are interleaved by batches in a file.
struct Moment {
  uint64_t time_ns = 0;
  std::variant<Tensor, OptimizerUpdate, Snapshot, Checkpoint> what;
};

std::vector<Moment> ReadMoments(const RankReader& reader) {
  constexpr uint64_t kKinds = KindBit(EventKind::kCallResults) | KindBit(EventKind::kSnapshot) |
                              KindBit(EventKind::kCheckpoint) |
                              KindBit(EventKind::kOptimizerUpdate);
  std::vector<Moment> moments;
  const std::unique_ptr<EventCursor> cursor = reader.Events();
  while (const Event* event = cursor->NextOf(kKinds)) {
    if (const auto* results = event->As<CallResults>()) {
      for (const Tensor& tensor : results->outputs)
        if (IsSomewhere(tensor)) moments.push_back({event->time_ns, tensor});
    } else if (const auto* item = event->As<Snapshot>()) {
      if (item->checkpoint == 0 || !IsKeptFloats(item->tensor)) continue;
      Snapshot copy = *item;
      copy.name = {};  // is gone with the batch
      moments.push_back({event->time_ns, copy});
    } else if (const auto* update = event->As<OptimizerUpdate>()) {
      if (update->dtype == kFloat32) moments.push_back({event->time_ns, *update});
    } else if (const auto* checkpoint = event->As<Checkpoint>()) {
      moments.push_back({event->time_ns, *checkpoint});
    }
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const Moment& a, const Moment& b) { return a.time_ns < b.time_ns; });
  return moments;
}

class ChangeFinder {
 public:
  void On(const Tensor& result) { results_.Add(result); }
  void On(const OptimizerUpdate& update) {
    RecordedUpdate recorded;
    recorded.said = update;
    if (update.gradient < kMostAddress && update.count < kMaxPayloadBytes / sizeof(float))
      recorded.gradient =
          results_.Find(update.gradient, update.gradient + update.count * sizeof(float));
    updates_[{update.parameters, update.first_moment, update.second_moment, update.count}]
        .push_back(std::move(recorded));
  }
  void On(const Snapshot& item) { open_[item.checkpoint][item.tensor.address] = item.tensor; }
  void On(const Checkpoint& checkpoint) {
    Items items = std::move(open_[checkpoint.number]);
    open_.erase(checkpoint.number);
    for (auto& [state, updates] : updates_) {
      const auto& [parameters, first, second, count] = state;
      StateChange change;
      change.count = count;
      change.updates = std::move(updates);
      size_t part = 0;
      for (const uint64_t address : {parameters, first, second}) {
        change.before[part] = PayloadAt(before_, address, count);
        change.after[part] = PayloadAt(items, address, count);
        // Nothing follows from half of it.
        if (change.before[part].IsZero() || change.after[part].IsZero())
          change.before[part] = change.after[part] = Hash128{};
        ++part;
      }
      const bool any = std::any_of(change.after.begin(), change.after.end(),
                                   [](const Hash128& hash) { return !hash.IsZero(); });
      if (any) changes.push_back(std::move(change));
    }
    updates_.clear();
    before_ = std::move(items);
  }

  std::vector<StateChange> changes;

 private:
  using Items = std::map<uint64_t, Tensor>;  // by address

  static Hash128 PayloadAt(const Items& items, uint64_t address, uint64_t count) {
    const auto item = items.find(address);
    return item == items.end() || item->second.count != count ? Hash128{} : item->second.hash;
  }

  Results results_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>, std::vector<RecordedUpdate>>
      updates_;
  std::map<uint64_t, Items> open_;  // by number of the checkpoint
  Items before_;
};

double Power(double base, double exponent, bool in_single) {
  if (!in_single) return std::pow(base, exponent);
  return std::pow(static_cast<float>(base), static_cast<float>(exponent));
}

// 1 - x, rounded as the program may have.
float OneLess(double x, bool in_single) {
  return in_single ? 1 - static_cast<float>(x) : static_cast<float>(1 - x);
}

}  // namespace

std::vector<StateChange> FindStateChanges(const RankReader& reader) {
  ChangeFinder finder;
  for (const Moment& moment : ReadMoments(reader))
    std::visit([&](const auto& what) { finder.On(what); }, moment.what);
  return std::move(finder.changes);
}

std::vector<float> NumbersOf(const OptimizerUpdate& update, const UpdateRules& rules,
                             bool in_single) {
  constexpr uint32_t kFirstOfQuotients = 2;  // of the rules of parameters
  constexpr uint32_t kFirstOfRates = 4;
  const bool adam = rules.method == static_cast<uint32_t>(PredictionMethod::kAdam);
  std::vector<float> numbers(adam ? kAdamNumbers : kSgdNumbers);
  const bool decoupled = update.optimizer == 3;
  const float rate = static_cast<float>(update.learning_rate);
  numbers[kGradientScale] = static_cast<float>(update.gradient_scale);
  numbers[kGradientDecay] = decoupled ? 0 : static_cast<float>(update.weight_decay);
  numbers[kKeepFirst] = static_cast<float>(update.beta1);
  numbers[kAddFirst] = OneLess(adam ? update.beta1 : update.beta2, in_single);
  numbers[kRate] = rate;
  numbers[kShrink] = 1;
  if (!adam) return numbers;
  if (decoupled) {
    numbers[kShrink] = in_single
                           ? 1 - rate * static_cast<float>(update.weight_decay)
                           : static_cast<float>(1 - update.learning_rate * update.weight_decay);
  }
  numbers[kKeepSecond] = static_cast<float>(update.beta2);
  numbers[kAddSecond] = OneLess(update.beta2, in_single);
  numbers[kEpsilon] = static_cast<float>(update.epsilon);
  const auto updates = static_cast<double>(update.updates);
  const double first = Power(update.beta1, updates, in_single);
  const double second = Power(update.beta2, updates, in_single);
  const auto corrections = [&](auto one) {
    using Real = decltype(one);
    const Real a = one - static_cast<Real>(first);
    const Real b = one - static_cast<Real>(second);
    if (rules.parameters >= kFirstOfRates) {
      numbers[kRate] = static_cast<float>(static_cast<Real>(update.learning_rate) / a);
      numbers[kFirstCorrection] = 1;
      numbers[kSecondCorrection] = static_cast<float>(std::sqrt(b));
    } else if (rules.parameters >= kFirstOfQuotients) {
      numbers[kFirstCorrection] = static_cast<float>(a);
      numbers[kSecondCorrection] = static_cast<float>(b);
    } else {
      numbers[kFirstCorrection] = static_cast<float>(one / a);
      numbers[kSecondCorrection] = static_cast<float>(one / b);
    }
  };
  if (in_single)
    corrections(1.0F);
  else
    corrections(1.0);
  return numbers;
}

}  // namespace deja::format
