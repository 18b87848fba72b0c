#include "check/evidence/summary_codec.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace deja::check {
namespace {

// Numbers as varints, the low seven bits first. Both classes are called with fields one after
// another.
class Packer {
 public:
  static constexpr bool kReads = false;

  template <typename... T>
  void operator()(const T&... values) {
    (One(values), ...);
  }
  void Number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void Fixed(uint64_t value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }
  size_t Count(size_t count, size_t) {
    Number(count);
    return count;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void One(const std::string& text) {
    Number(text.size());
    bytes_ += text;
  }
  template <typename T>
  void One(const std::vector<T>& all) {
    Number(all.size());
    for (const T& one : all) One(one);
  }
  template <typename T>
  void One(const std::optional<T>& one) {
    Number(one ? 1 : 0);
    if (one) One(*one);
  }
  template <typename A, typename B>
  void One(const std::pair<A, B>& both) {
    One(both.first);
    One(both.second);
  }
  template <typename T>
  void One(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      Number(static_cast<uint64_t>(value));
    else
      Fields(*this, value);
  }

  std::string bytes_;
};

class Unpacker {
 public:
  static constexpr bool kReads = true;

  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool AtEnd() const { return ok_ && bytes_.empty(); }

  template <typename... T>
  void operator()(T&... values) {
    (One(values), ...);
  }
  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Fail();
    return 0;
  }
  uint64_t Fixed() {
    uint64_t value = 0;
    if (bytes_.size() < sizeof value) {
      Fail();
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  // The number of elements, which take `least` bytes each.
  size_t Count(size_t, size_t least) {
    const uint64_t count = Number();
    if (count <= bytes_.size() / least) return count;
    Fail();
    return 0;
  }

 private:
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }
  void One(std::string& text) {
    const size_t size = Count(0, 1);
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <typename T>
  void One(std::vector<T>& all) {
    all.clear();
    const size_t count = Count(0, 1);
    for (size_t i = 0; i < count && ok_; ++i) One(all.emplace_back());
  }
  template <typename T>
  void One(std::optional<T>& one) {
    if (Number() == 0)
      one.reset();
    else
      One(one.emplace());
  }
  template <typename A, typename B>
  void One(std::pair<A, B>& both) {
    One(both.first);
    One(both.second);
  }
  template <typename T>
  void One(T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
      value = static_cast<T>(Number());
    else
      Fields(*this, value);
  }

  std::string_view bytes_;
  bool ok_ = true;
};

// ---- The fields of each struct, once for both directions.

template <typename S, typename T>
concept Is = std::is_same_v<std::remove_const_t<S>, T>;

template <typename A, Is<Place> S>
void Fields(A& a, S& s) {
  a(s.file, s.line, s.function);
}
template <typename A, Is<Signature> S>
void Fields(A& a, S& s) {
  a(s.operation, s.api, s.dtype, s.count, s.redop, s.root);
}
template <typename A, Is<OpenCall> S>
void Fields(A& a, S& s) {
  a(s.name, s.comm, s.seq, s.site, s.time_ns, s.makes_communicator, s.nranks, s.place, s.members,
    s.identity);
}
template <typename A, Is<EndState> S>
void Fields(A& a, S& s) {
  a(s.kind, s.code, s.signal, s.exception, s.site, s.time_ns);
}
template <typename A, Is<StateDigest> S>
void Fields(A& a, S& s) {
  a(s.name, s.step, s.digest, s.time_ns);
}
template <typename A, Is<WeightSeen> S>
void Fields(A& a, S& s) {
  a(s.optimizer, s.step, s.name, s.weight, s.gradient, s.replicas, s.made, s.at, s.time_ns);
}
template <typename A, Is<OptimizerSeen> S>
void Fields(A& a, S& s) {
  a(s.optimizer, s.step, s.kind, s.learning_rate, s.weights, s.gradients, s.state, s.at, s.time_ns);
}
template <typename A, Is<GeneratorSeen> S>
void Fields(A& a, S& s) {
  a(s.name, s.digest, s.time_ns);
}
template <typename A, Is<BatchSeen> S>
void Fields(A& a, S& s) {
  a(s.loader, s.pass, s.batch, s.rows, s.size, s.sampler, s.shuffles, s.epoch, s.trains, s.digest,
    s.at, s.time_ns);
}
template <typename A, Is<PassSeen> S>
void Fields(A& a, S& s) {
  a(s.loader, s.pass, s.batches, s.at, s.time_ns);
}
template <typename A, Is<ChangeSeen> S>
void Fields(A& a, S& s) {
  a(s.what, s.file, s.thread, s.times, s.given, s.at, s.time_ns);
}
template <typename A, Is<Interval> S>
void Fields(A& a, S& s) {
  a(s.begin_ns, s.end_ns);
}
template <typename A, Is<SocketSeen> S>
void Fields(A& a, S& s) {
  a(s.local, s.remote, s.error, s.is_bind, s.time_ns);
}
template <typename A, Is<InputSeen> S>
void Fields(A& a, S& s) {
  a(s.kind, s.name, s.value, s.shown, s.thread, s.time_ns);
}
template <typename A, Is<Seen> S>
void Fields(A& a, S& s) {
  a(s.weights, s.optimizers, s.generators, s.batches, s.passes, s.changes, s.garbage, s.sockets,
    s.inputs);
}

// One field of all calls.
template <typename A, typename Calls, typename Field>
void Column(A& a, Calls& calls, Field field) {
  for (auto& call : calls) {
    auto& value = field(call);
    if constexpr (A::kReads)
      value = static_cast<std::remove_reference_t<decltype(value)>>(a.Number());
    else
      a.Number(static_cast<uint64_t>(value));
  }
}

// The same of numbers that grow: differences, which may be less than nothing.
template <typename A, typename Calls, typename Field>
void GrowingColumn(A& a, Calls& calls, Field field) {
  uint64_t before = 0;
  for (auto& call : calls) {
    auto& value = field(call);
    if constexpr (A::kReads) {
      const uint64_t zigzag = a.Number();
      value = before + ((zigzag >> 1) ^ (0 - (zigzag & 1)));
    } else {
      const uint64_t difference = value - before;
      a.Number((difference << 1) ^ (0 - (difference >> 63)));
    }
    before = value;
  }
}

template <typename A, typename Calls, typename Field>
void DigestColumn(A& a, Calls& calls, Field field) {
  for (auto& call : calls) {
    if constexpr (A::kReads)
      field(call) = a.Fixed();
    else
      a.Fixed(field(call));
  }
}

template <typename A, typename Calls>
void Columns(A& a, Calls& calls) {
  using Call = std::remove_reference_t<decltype(calls.front())>;
  constexpr size_t kLeastBytes = 2 * sizeof(uint64_t) + 9;
  const size_t count = a.Count(calls.size(), kLeastBytes);
  if constexpr (A::kReads) calls.resize(count);
  Column(
      a, calls, [](Call & call) -> auto& { return call.signature; });
  Column(
      a, calls, [](Call & call) -> auto& { return call.site; });
  GrowingColumn(
      a, calls, [](Call & call) -> auto& { return call.seq; });
  GrowingColumn(
      a, calls, [](Call & call) -> auto& { return call.step; });
  GrowingColumn(
      a, calls, [](Call & call) -> auto& { return call.time_ns; });
  Column(
      a, calls, [](Call & call) -> auto& { return call.thread; });
  Column(
      a, calls, [](Call & call) -> auto& { return call.names; });
  Column(
      a, calls, [](Call & call) -> auto& { return call.lasted_us; });
  Column(
      a, calls, [](Call & call) -> auto& { return call.flags; });
  DigestColumn(
      a, calls, [](Call & call) -> auto& { return call.input; });
  DigestColumn(
      a, calls, [](Call & call) -> auto& { return call.output; });
  if constexpr (std::is_base_of_v<Transfer, std::remove_const_t<Call>>) {
    Column(
        a, calls, [](Call & call) -> auto& { return call.peer; });
    Column(
        a, calls, [](Call & call) -> auto& { return call.tag; });
  }
}

template <typename A, Is<CommSummary> S>
void Fields(A& a, S& s) {
  a(s.number, s.hash, s.joined_as, s.rank, s.nranks, s.name);
  Columns(a, s.collectives.Own());
  Columns(a, s.transfers);
}

template <typename A, Is<RankSummary> S>
void Fields(A& a, S& s) {
  a(s.rank, s.world_size, s.has_digests, s.is_partial, s.unknown, s.signatures, s.sites, s.comms,
    s.open, s.last_call, s.last_site, s.last_step, s.last_time_ns, s.end, s.states, s.names, s.seen,
    s.surroundings);
}

// Numbers of signatures, sites and names are those of some, and enumerators are those that there
// are.
bool IsSound(RankSummary& summary) {
  const size_t sites = summary.sites.size();
  if (sites == 0 || summary.names.empty()) return false;
  const auto is_sound = [&](const Call& call) {
    return call.signature < summary.signatures.size() && call.site < sites &&
           call.names < summary.names.size();
  };
  bool sound = summary.last_site < sites && summary.end.site < sites &&
               summary.end.kind <= EndKind::kRunning;
  for (const Signature& signature : summary.signatures)
    sound = sound && signature.operation <= Operation::kRecvAnySource &&
            signature.redop >= Signature::kNone && signature.redop < Signature::kReductions;
  for (const CommSummary& comm : summary.comms) {
    for (const Call& call : comm.collectives) sound = sound && is_sound(call);
    for (const Call& call : comm.transfers) sound = sound && is_sound(call);
  }
  for (const OpenCall& call : summary.open) sound = sound && call.site < sites;
  for (const InputSeen& input : summary.seen.inputs)
    sound = sound && input.kind <= InputKind::kCaught;
  summary.seen.ForEachSite([&](uint32_t& site) { sound = sound && site < sites; });
  return sound;
}

}  // namespace

std::string EncodeSummary(const RankSummary& summary) {
  Packer packer;
  packer.Number(kSummaryRevision);
  Fields(packer, summary);
  return packer.Take();
}

bool DecodeSummary(std::string_view bytes, RankSummary& summary) {
  Unpacker unpacker(bytes);
  if (unpacker.Number() != kSummaryRevision || !unpacker.ok()) return false;
  Fields(unpacker, summary);
  return unpacker.AtEnd() && IsSound(summary);
}

}  // namespace deja::check
