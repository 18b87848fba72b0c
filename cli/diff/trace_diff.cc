#include "cli/diff/trace_diff.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "api/find_api.h"
#include "api/libc_table.h"
#include "cli/events/event_text.h"
#include "cli/events/event_words.h"
#include "digest/digest.h"

namespace deja::cli {
namespace {

// Larger tensors are not compared element by element.
constexpr uint64_t kMaxComparedBytes = 256 << 20;

// kInput: what an operation read, where it came like its results.
enum class ItemKind : uint8_t { kEnter, kInput, kResults, kSnapshot, kEntropy };

// What is to be found on the other side.
struct Key {
  ItemKind kind = ItemKind::kEnter;
  uint64_t comm = 0;    // number + 1, or what identifies it; of entropy: the call
  uint64_t number = 0;  // of the operation; the how manieth of its name
  std::string name;     // of a snapshot; of entropy: the thread

  auto operator<=>(const Key&) const = default;
};

struct Item {
  uint64_t time_ns = 0;
  std::optional<uint64_t> step;
  uint32_t thread = 0;
  uint32_t stack = 0;
  uint32_t api = 0;  // of an operation
  std::string arguments;
  std::vector<format::Tensor> tensors;
  Hash128 bytes;  // of entropy
};

bool IsSameOnAllRanks(const std::string& name) {
  return name == "AllReduce" || name == "AllGather" || name == "Broadcast" || name == "Bcast" ||
         name == "c10d_allreduce" || name == "c10d_allgather" || name == "c10d_broadcast";
}

// The parameter of an operation is memory that it only reads.
bool OnlyReads(uint32_t api, uint32_t param) {
  const api::ApiInfo* info = api::FindApi(api);
  if (info == nullptr || param >= info->param_count) return false;
  const api::Role role = info->params[param].role;
  return role == api::Role::kIn || role == api::Role::kInN || role == api::Role::kInRoot ||
         role == api::Role::kInNRoot;
}

// The items of one recording, in its order.
class ItemStream {
 public:
  ItemStream(const DiffSide& side, const DiffSide& other, const DiffOptions& options)
      : side_(side), other_(other), options_(options), cursor_(side.reader->Events()) {}

  // False at the end.
  bool Next(Key& key, Item& item) {
    using format::EventKind;
    constexpr uint32_t kWanted =
        format::KindBit(EventKind::kCallEnter) | format::KindBit(EventKind::kCallResults) |
        format::KindBit(EventKind::kSnapshot) | format::KindBit(EventKind::kStep) |
        format::KindBit(EventKind::kInput);
    while (const format::Event* event = cursor_->NextOf(kWanted)) {
      item = Item();
      item.time_ns = event->time_ns;
      item.thread = event->thread;
      if (const auto* step = event->As<format::Step>())
        steps_.emplace_back(event->time_ns, step->step);
      if (IsSkipped(event->time_ns)) continue;
      if (Take(*event, key, item)) return true;
    }
    return false;
  }

  // In which step it was then. To be asked when everything has been read.
  std::optional<uint64_t> StepAt(uint64_t time_ns) {
    std::sort(steps_.begin(), steps_.end());
    const auto after =
        std::upper_bound(steps_.begin(), steps_.end(), std::pair{time_ns, UINT64_MAX});
    return after == steps_.begin() ? std::nullopt : std::optional(std::prev(after)->second);
  }

 private:
  // The program's other threads may have run part of it in a replay before the replay went to its
  // checkpoint. The times are the recording's.
  [[nodiscard]] bool IsSkipped(uint64_t time_ns) const {
    return (other_.replay && other_.replay->skipped.Has(time_ns)) ||
           (side_.replay && side_.replay->skipped.Has(time_ns));
  }

  // What a communicator is called in keys. Each rank has numbers of its own.
  [[nodiscard]] uint64_t CommOf(uint32_t comm) const {
    if (!options_.between_ranks) return comm;
    const auto summary = side_.summary->comms.find(comm - 1);
    return summary == side_.summary->comms.end() ? 0 : summary->second.hash;
  }

  bool Take(const format::Event& event, Key& key, Item& item) {
    if (const auto* enter = event.As<format::CallEnter>()) return TakeEnter(*enter, key, item);
    if (const auto* results = event.As<format::CallResults>())
      return TakeResults(*results, key, item);
    if (const auto* snapshot = event.As<format::Snapshot>())
      return TakeSnapshot(*snapshot, key, item);
    if (const auto* input = event.As<format::Input>()) return TakeEntropy(*input, key, item);
    return false;
  }

  bool TakeEnter(const format::CallEnter& enter, Key& key, Item& item) {
    if (enter.comm == 0 || enter.comm_seq == 0 ||
        (options_.between_ranks && !IsSameOnAllRanks(side_.summary->ApiName(enter.api))))
      return false;
    entered_[{enter.comm, enter.comm_seq}] = {enter.api, enter.stack, item.time_ns, item.thread};
    if (options_.between_ranks) return false;
    key = {ItemKind::kEnter, enter.comm, enter.comm_seq, {}};
    item.api = enter.api;
    item.stack = enter.stack;
    item.arguments = TellingArguments(enter);
    item.tensors.assign(enter.inputs.begin(), enter.inputs.end());
    return true;
  }

  bool TakeResults(const format::CallResults& results, Key& key, Item& item) {
    const auto entered = entered_.find({results.comm, results.comm_seq});
    if (results.comm == 0 || entered == entered_.end()) return false;
    const bool is_input =
        results.outputs.size() == 1 && OnlyReads(entered->second.api, results.outputs[0].param);
    if (is_input && options_.between_ranks) return false;
    if (is_input) {  // it was there when the operation was entered, whenever it was seen
      item.time_ns = entered->second.time_ns;
      item.thread = entered->second.thread;
    }
    key = {is_input ? ItemKind::kInput : ItemKind::kResults,
           CommOf(results.comm),
           results.comm_seq,
           {}};
    item.api = entered->second.api;
    item.stack = entered->second.stack;
    item.tensors.assign(results.outputs.begin(), results.outputs.end());
    if (!is_input) entered_.erase(entered);
    return true;
  }

  bool TakeSnapshot(const format::Snapshot& snapshot, Key& key, Item& item) {
    // A replay takes no checkpoints.
    if (snapshot.checkpoint != 0 && (side_.replay || other_.replay)) return false;
    std::string name(snapshot.name);
    const auto& ignored = options_.ignored;
    if (std::any_of(ignored.begin(), ignored.end(), [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        }))
      return false;
    const uint64_t number = ++snapshots_[name];
    key = {ItemKind::kSnapshot, 0, number, std::move(name)};
    item.stack = snapshot.stack;
    item.tensors.assign(1, snapshot.tensor);
    return true;
  }

  bool TakeEntropy(const format::Input& input, Key& key, Item& item) {
    if (options_.between_ranks || input.api < api::kLibcFamily || input.api >= api::kDejaFamily ||
        api::InputKindOf(input.api) != api::InputKind::kEntropy)
      return false;
    std::string thread = side_.summary->ThreadName(item.thread);
    const uint64_t number = ++entropy_[{thread, input.api}];
    key = {ItemKind::kEntropy, input.api, number, std::move(thread)};
    item.api = input.api;
    item.bytes =
        !input.hash.IsZero() ? input.hash : digest::HashBytes(std::as_bytes(std::span(input.data)));
    return true;
  }

  struct Entered {
    uint32_t api = 0;
    uint32_t stack = 0;
    uint64_t time_ns = 0;
    uint32_t thread = 0;
  };
  using Operation = std::pair<uint32_t, uint64_t>;  // communicator and number
  DiffSide side_;
  DiffSide other_;
  DiffOptions options_;
  std::unique_ptr<format::EventCursor> cursor_;
  std::vector<std::pair<uint64_t, uint64_t>> steps_;  // when which one began
  std::map<Operation, Entered> entered_;              // whose results have not come
  std::map<std::string, uint64_t> snapshots_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> entropy_;
};

// Reads both streams in turns and keeps what has no counterpart yet.
class Comparison {
 public:
  Comparison(const DiffSide& a, const DiffSide& b, const DiffOptions& options)
      : sides_{a, b}, options_(options), streams_{{a, b, options}, {b, a, options}} {}

  RankDiff Run() {
    bool more[2] = {true, true};
    while (more[0] || more[1])
      for (int side : {0, 1})
        if (more[side]) more[side] = Advance(side);
    if (!options_.between_ranks) FindMissing();
    Finish();
    return std::move(result_);
  }

 private:
  struct Found {
    DiffKind kind = DiffKind::kMissing;
    Key key;
    std::array<std::optional<Item>, 2> items;
    size_t tensor = 0;  // of those of an item
  };

  bool Advance(int side) {
    Key key;
    Item item;
    if (!streams_[side].Next(key, item)) return false;
    auto& others = waiting_[1 - side];
    const auto other = others.find(key);
    if (other == others.end()) {
      waiting_[side].emplace(std::move(key), std::move(item));
      return true;
    }
    if (side == 0)
      Compare(key, item, other->second);
    else
      Compare(key, other->second, item);
    others.erase(other);
    return true;
  }

  void Compare(const Key& key, const Item& a, const Item& b) {
    if (key.kind == ItemKind::kEntropy) {
      if (a.bytes != b.bytes && (!entropy_ || a.time_ns < entropy_->second.time_ns))
        entropy_ = {key, a};
      return;
    }
    if (key.kind == (options_.between_ranks ? ItemKind::kResults : ItemKind::kEnter))
      ++result_.operations;
    if (key.kind == ItemKind::kSnapshot) ++result_.snapshots;
    if (a.api != b.api) return Add(DiffKind::kOperation, key, a, b, 0);
    if (a.arguments != b.arguments) return Add(DiffKind::kArguments, key, a, b, 0);
    for (size_t i = 0; i < std::min(a.tensors.size(), b.tensors.size()); ++i) {
      const Hash128& hash = a.tensors[i].hash;
      if (hash.IsZero() || b.tensors[i].hash.IsZero()) continue;
      ++result_.tensors;
      if (hash != b.tensors[i].hash) return Add(KindOfTensors(key.kind), key, a, b, i);
    }
  }

  static DiffKind KindOfTensors(ItemKind kind) {
    if (kind == ItemKind::kSnapshot) return DiffKind::kSnapshot;
    return kind == ItemKind::kResults ? DiffKind::kResult : DiffKind::kInput;
  }

  // When an item came, as seconds of its own recording.
  [[nodiscard]] double Seconds(int side, const Item& item) const {
    const uint64_t begin = sides_[side].reader->header().start_mono_ns;
    return (static_cast<double>(item.time_ns) - static_cast<double>(begin)) * 1e-9;
  }
  [[nodiscard]] double Seconds(const Found& found) const {
    return found.items[0] ? Seconds(0, *found.items[0]) : Seconds(1, *found.items[1]);
  }

  void Add(Found found) {
    if (!first_ || Seconds(found) < Seconds(*first_)) first_ = std::move(found);
  }
  void Add(DiffKind kind, const Key& key, const Item& a, const Item& b, size_t tensor) {
    Add(Found{kind, key, {a, b}, tensor});
  }

  // Operations and snapshots that one side has and the other one has not. (Results may be missing
  // where a rank died in the call.)
  void FindMissing() {
    for (int side : {0, 1})
      for (const auto& [key, item] : waiting_[side]) {
        if (key.kind != ItemKind::kEnter && key.kind != ItemKind::kSnapshot) continue;
        const auto& replay = sides_[1 - side].replay;
        if (replay && replay->ended_ns && item.time_ns > *replay->ended_ns) continue;
        Found found;
        found.key = key;
        found.items[side] = item;
        Add(std::move(found));
      }
  }

  [[nodiscard]] std::string Describe(const Found& found) const {
    const int side = found.items[0] ? 0 : 1;
    if (found.key.kind == ItemKind::kSnapshot)
      return fmt::format("snapshot {} (#{})", found.key.name, found.key.number);
    const RankSummary& summary = *sides_[side].summary;
    std::string text = summary.ApiName(found.items[side]->api);
    text += fmt::format(" #{}", found.key.number);
    if (const auto number = CommNumber(summary, found.key))
      text += fmt::format(" of comm {}", *number);
    return text;
  }

  // As this side numbers it.
  [[nodiscard]] std::optional<uint32_t> CommNumber(const RankSummary& summary,
                                                   const Key& key) const {
    for (const auto& [number, comm] : summary.comms)
      if ((options_.between_ranks ? comm.hash : number + 1) == key.comm) return number;
    return std::nullopt;
  }

  DiffPlace Place(int side, const Found& found) {
    const Item& item = *found.items[side];
    DiffPlace place;
    place.seconds = Seconds(side, item);
    const format::TraceHeader& header = sides_[side].reader->header();
    place.wall_ns = header.start_wall_ns + (item.time_ns - header.start_mono_ns);
    place.step = streams_[side].StepAt(item.time_ns);
    place.thread = sides_[side].summary->ThreadName(item.thread);
    place.stack = item.stack;
    place.arguments = item.arguments;
    if (found.key.kind != ItemKind::kSnapshot) {
      place.comm = CommNumber(*sides_[side].summary, found.key);
      place.comm_seq = found.key.number;
    }
    if (found.kind >= DiffKind::kInput) place.tensor = item.tensors[found.tensor];
    if (found.kind == DiffKind::kOperation)
      place.arguments = sides_[side].summary->ApiName(item.api) + place.arguments;
    return place;
  }

  std::optional<std::vector<std::byte>> Bytes(int side, const Hash128& hash) const {
    const format::RankReader& reader = *sides_[side].reader;
    const auto size = reader.PayloadSize(hash);
    if (!size || *size > kMaxComparedBytes) return std::nullopt;
    std::vector<std::byte> bytes(*size);
    if (!reader.ReadPayload(hash, bytes)) return std::nullopt;
    return bytes;
  }

  void Finish() {
    if (entropy_) {
      const auto& [key, item] = *entropy_;
      result_.entropy = {sides_[0].summary->ApiName(item.api), key.number, key.name,
                         Seconds(0, item)};
    }
    if (!first_) return;
    Difference difference;
    difference.kind = first_->kind;
    difference.what = Describe(*first_);
    if (first_->key.kind == ItemKind::kSnapshot) difference.snapshot = first_->key.name;
    if (first_->items[0]) difference.a = Place(0, *first_);
    if (first_->items[1]) difference.b = Place(1, *first_);
    if (first_->kind == DiffKind::kInput || first_->kind == DiffKind::kResult) {
      difference.tensor = first_->kind == DiffKind::kInput ? "input" : "result";
      if (first_->items[0]->tensors.size() > 1)
        difference.tensor += fmt::format(" {}", first_->tensor + 1);
    }
    if (first_->kind >= DiffKind::kInput) {
      const format::Tensor& a = *difference.a->tensor;
      const format::Tensor& b = *difference.b->tensor;
      const auto bytes = Bytes(0, a.hash);
      const auto other = Bytes(1, b.hash);
      if (bytes && other && bytes->size() == other->size() && a.dtype == b.dtype)
        difference.element = digest::CompareElements(*bytes, *other, a.dtype);
    }
    result_.first = std::move(difference);
  }

  DiffSide sides_[2];
  DiffOptions options_;
  ItemStream streams_[2];
  std::map<Key, Item> waiting_[2];
  std::optional<Found> first_;
  std::optional<std::pair<Key, Item>> entropy_;
  RankDiff result_;
};

}  // namespace

const char* DiffKindName(DiffKind kind) {
  switch (kind) {
    case DiffKind::kMissing:
      return "missing";
    case DiffKind::kOperation:
      return "operation";
    case DiffKind::kArguments:
      return "arguments";
    case DiffKind::kInput:
      return "input";
    case DiffKind::kResult:
      return "result";
    case DiffKind::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

RankDiff CompareRecordings(const DiffSide& a, const DiffSide& b, const DiffOptions& options) {
  return Comparison(a, b, options).Run();
}

}  // namespace deja::cli
