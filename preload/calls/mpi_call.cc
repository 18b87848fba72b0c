#include "preload/calls/mpi_call.h"

#include <algorithm>

#include "preload/calls/buffers.h"

namespace deja::preload {
namespace {

constexpr size_t kMaxText = 1024;
constexpr uint64_t kMaxArray = 1 << 20;

// Index of the first parameter from `from` on with one of the roles, or -1.
int FindFrom(const api::ApiInfo& info, int from, api::Role a, api::Role b) {
  for (uint32_t i = static_cast<uint32_t>(from); i < info.param_count; ++i)
    if (info.params[i].role == a || info.params[i].role == b) return static_cast<int>(i);
  return -1;
}

bool IsRoot(const Call& call, const MpiPlace& place) {
  const int i = call.info->Find(api::Role::kRoot);
  return i >= 0 && place.known && static_cast<int>(call.args[i]) == place.rank;
}

MpiPlace PlaceOfCall(const Call& call, MpiWorld& world) {
  const int comm = call.info->Find(api::Role::kComm);
  return comm < 0 ? MpiPlace{} : world.PlaceOf(TheMpiAbi().Handle(call.args[comm]));
}

bool IsApi(const Call& call, api::MpiApi a, api::MpiApi b) {
  const auto id = call.info->id;
  return id == static_cast<uint32_t>(a) || id == static_cast<uint32_t>(b);
}

bool ScattersSums(const Call& call) {
  return IsApi(call, api::MpiApi::kMPI_Reduce_scatter, api::MpiApi::kMPI_Ireduce_scatter);
}

// The buffer in parameter `arg`, on this rank.
MpiBuffer Buffer(const Call& call, MpiWorld& world, const MpiPlace& place, int arg) {
  MpiBuffer buffer;
  const api::ApiInfo& info = *call.info;
  const api::Role role = info.params[arg].role;
  if (api::OnlyOnRoot(role) && !IsRoot(call, place)) return buffer;
  const int counts = FindFrom(info, arg + 1, api::Role::kCount, api::Role::kCounts);
  const int type = FindFrom(info, arg + 1, api::Role::kDType, api::Role::kDTypes);
  if (counts < 0 || type < 0) return buffer;
  const bool needs_place = api::TimesRanks(role) || info.params[counts].role == api::Role::kCounts;
  if (needs_place && !place.known) return buffer;
  buffer.arg = arg;
  buffer.address = call.args[arg];
  buffer.world = &world;
  if (info.params[type].role == api::Role::kDTypes)
    buffer.types = call.args[type];
  else
    buffer.type = world.TypeOf(TheMpiAbi().Handle(call.args[type]));
  if (info.params[counts].role == api::Role::kCounts) {
    buffer.counts = reinterpret_cast<const int*>(call.args[counts]);
    buffer.parts = buffer.counts == nullptr ? 0 : place.size;
    const int displs = FindFrom(info, counts + 1, api::Role::kDispls, api::Role::kDispls);
    if (displs == counts + 1) buffer.displs = reinterpret_cast<const int*>(call.args[displs]);
    // Every rank gets its part of a scattered sum at the beginning of its buffer.
    if (ScattersSums(call) && role == api::Role::kOut && buffer.counts != nullptr) {
      buffer.count = static_cast<uint64_t>(std::max(0, buffer.counts[place.rank]));
      buffer.counts = nullptr;
    }
    return buffer;
  }
  const auto count = static_cast<int32_t>(call.args[counts]);
  buffer.count = static_cast<uint64_t>(std::max(count, 0));
  if (api::TimesRanks(role)) {
    buffer.count *= static_cast<uint64_t>(place.size);
    buffer.parts = place.size;
  }
  return buffer;
}

int FindBuffer(const api::ApiInfo& info, bool (*is_role)(api::Role)) {
  for (uint32_t i = 0; i < info.param_count; ++i)
    if (is_role(info.params[i].role)) return static_cast<int>(i);
  return -1;
}

bool IsInput(api::Role role) {
  return IsInputRole(role) || role == api::Role::kInOut;
}

bool IsOutput(api::Role role) {
  return IsOutputRole(role) || role == api::Role::kInOut;
}

bool IsInPlace(const Call& call, int arg) {
  return call.args[arg] == TheMpiAbi().in_place;
}

// What an operation that works in place reads: where its result will be.
MpiBuffer InPlaceInput(const Call& call, MpiWorld& world, const MpiPlace& place, int in, int out) {
  const bool from_all = api::TimesRanks(call.info->params[in].role);
  if (api::TimesRanks(call.info->params[out].role)) {
    MpiBuffer buffer = Buffer(call, world, place, out);
    if (!from_all) buffer.only = place.rank;  // its own part
    return buffer;
  }
  MpiBuffer buffer = Buffer(call, world, place, in);
  buffer.address = call.args[out];
  return buffer;
}

}  // namespace

bool MpiBuffer::known() const {
  if (types == 0) return type.known;
  for (int i = 0; i < parts; ++i) {
    const uint64_t at = types + static_cast<uint64_t>(i) * TheMpiAbi().handle_bytes;
    if (counts[i] > 0 && !world->TypeOf(TheMpiAbi().HandleAt(at)).known) return false;
  }
  return true;
}

// f(address, bytes), in the order in which elements are sent.
template <typename F>
void MpiBuffer::ForEachPiece(F f) const {
  auto elements = [&f](const MpiType& t, uint64_t at, uint64_t n) {
    if (n == 0 || !t.known) return;
    if (t.dense()) {
      if (at == 0) return;  // the call will say what is wrong with that
      f(at, n * t.size);
      return;
    }
    for (uint64_t e = 0; e < n; ++e)
      for (const MpiSegment& s : t.segments)
        f(at + e * static_cast<uint64_t>(t.extent) + static_cast<uint64_t>(s.offset), s.bytes);
  };
  if (counts == nullptr) {
    if (only < 0 || parts == 0) return elements(type, address, count);
    const uint64_t n = count / static_cast<uint64_t>(parts);
    const uint64_t before = n * static_cast<uint64_t>(only);
    return elements(type, address + before * static_cast<uint64_t>(type.extent), n);
  }
  uint64_t behind = 0;  // elements so far
  for (int i = 0; i < parts; ++i) {
    const auto n = static_cast<uint64_t>(std::max(counts[i], 0));
    const MpiType t = types == 0
                          ? type
                          : world->TypeOf(TheMpiAbi().HandleAt(
                                types + static_cast<uint64_t>(i) * TheMpiAbi().handle_bytes));
    int64_t offset = displs == nullptr ? static_cast<int64_t>(behind) : displs[i];
    if (types == 0) offset *= t.extent;
    behind += n;
    if (only < 0 || only == i) elements(t, address + static_cast<uint64_t>(offset), n);
  }
}

uint64_t MpiBuffer::bytes() const {
  if (!present()) return 0;
  uint64_t sum = 0;
  ForEachPiece([&](uint64_t, uint64_t n) { sum += n; });
  return sum;
}

std::span<std::byte> MpiBuffer::contiguous() const {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool one = true;
  ForEachPiece([&](uint64_t at, uint64_t n) {
    if (n == 0) return;
    if (end == 0)
      begin = at;
    else if (end != at)
      one = false;
    end = at + n;
  });
  if (!one || begin == 0) return {};
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

void MpiBuffer::Gather(std::span<std::byte> out) const {
  size_t done = 0;
  ForEachPiece([&](uint64_t at, uint64_t n) {
    n = std::min<uint64_t>(n, out.size() - done);
    if (n != 0) std::memcpy(out.data() + done, reinterpret_cast<const void*>(at), n);
    done += n;
  });
}

void MpiBuffer::Scatter(std::span<const std::byte> in) const {
  size_t done = 0;
  ForEachPiece([&](uint64_t at, uint64_t n) {
    n = std::min<uint64_t>(n, in.size() - done);
    if (n != 0) std::memcpy(reinterpret_cast<void*>(at), in.data() + done, n);
    done += n;
  });
}

MpiBuffer MpiInput(const Call& call, MpiWorld& world) {
  const int in = FindBuffer(*call.info, IsInput);
  if (in < 0) return {};
  const MpiPlace place = PlaceOfCall(call, world);
  // Every rank but the root of a broadcast only writes the buffer.
  if (call.info->params[in].role == api::Role::kInRootOut && !IsRoot(call, place)) return {};
  if (api::OnlyOnRoot(call.info->params[in].role) && !IsRoot(call, place)) return {};
  if (IsInPlace(call, in)) {
    const int out = FindBuffer(*call.info, IsOutput);
    return out < 0 || !place.known ? MpiBuffer{} : InPlaceInput(call, world, place, in, out);
  }
  return Buffer(call, world, place, in);
}

MpiBuffer MpiOutput(const Call& call, MpiWorld& world) {
  const int out = FindBuffer(*call.info, IsOutput);
  if (out < 0 || IsInPlace(call, out)) return {};
  const MpiPlace place = PlaceOfCall(call, world);
  const api::Role role = call.info->params[out].role;
  if (api::OnlyOnRoot(role) && !IsRoot(call, place)) return {};
  // The first rank gets nothing of a sum over those before it; the root of a broadcast has it all.
  if (IsApi(call, api::MpiApi::kMPI_Exscan, api::MpiApi::kMPI_Iexscan) && place.rank == 0)
    return {};
  if (role == api::Role::kInRootOut && IsRoot(call, place)) return {};
  return Buffer(call, world, place, out);
}

bool IsPersistent(const api::ApiInfo& info) {
  switch (static_cast<api::MpiApi>(info.id)) {
    case api::MpiApi::kMPI_Send_init:
    case api::MpiApi::kMPI_Bsend_init:
    case api::MpiApi::kMPI_Ssend_init:
    case api::MpiApi::kMPI_Rsend_init:
    case api::MpiApi::kMPI_Recv_init:
      return true;
    default:
      return false;
  }
}

size_t MpiArrayCount(const Call& call) {
  const int i = call.info->Find(api::Role::kIntCount);
  if (i < 0) return 0;
  const auto count = static_cast<int32_t>(call.args[i]);
  return count <= 0 || static_cast<uint64_t>(count) > kMaxArray ? 0 : static_cast<size_t>(count);
}

namespace {

void Add(MpiEnter& enter, uint64_t address, size_t bytes) {
  if (address == 0 || bytes > sizeof enter.bytes - enter.size) return;
  std::memcpy(enter.bytes + enter.size, reinterpret_cast<const void*>(address), bytes);
  enter.size += bytes;
}

void AddNumbers(MpiEnter& enter, MpiWorld& world, uint64_t address, size_t count) {
  if (address == 0 || count * sizeof(uint64_t) > sizeof enter.bytes - enter.size) return;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t at = address + i * TheMpiAbi().handle_bytes;
    const uint64_t number = world.NumberOf(TheMpiAbi().HandleAt(at));
    Add(enter, reinterpret_cast<uint64_t>(&number), sizeof number);
  }
}

// Arrays with an element a rank, where this rank's are looked at.
void AddPerRank(const Call& call, MpiWorld& world, MpiEnter& enter, uint32_t param) {
  const MpiPlace place = PlaceOfCall(call, world);
  if (!place.known) return;
  for (int before = static_cast<int>(param); before >= 0; --before) {
    const api::Role role = call.info->params[before].role;
    if (!IsInput(role) && !IsOutput(role)) continue;
    if (api::OnlyOnRoot(role) && !IsRoot(call, place)) return;
    if (IsInput(role) && IsInPlace(call, before) && !ScattersSums(call)) return;
    break;
  }
  const auto n = static_cast<size_t>(place.size);
  if (call.info->params[param].role == api::Role::kDTypes)
    AddNumbers(enter, world, call.args[param], n);
  else
    Add(enter, call.args[param], n * sizeof(int));
}

uint64_t Describe(const Call& call, MpiWorld& world, MpiEnter& enter, uint32_t i) {
  const uint64_t word = call.args[i];
  const size_t n = MpiArrayCount(call);
  switch (call.info->params[i].role) {
    case api::Role::kComm:
    case api::Role::kDType:
    case api::Role::kHandle:
      return world.NumberOf(TheMpiAbi().Handle(word));
    case api::Role::kHandleInOut:
      return world.NumberOf(TheMpiAbi().HandleAt(word));
    case api::Role::kHandles:
    case api::Role::kHandlesInOut:
      AddNumbers(enter, world, word, n);
      return word;
    case api::Role::kCounts:
    case api::Role::kDispls:
    case api::Role::kDTypes:
      AddPerRank(call, world, enter, i);
      return word;
    case api::Role::kIntArray:
    case api::Role::kInOutInts:
      Add(enter, word, n * sizeof(int));
      return word;
    case api::Role::kIntTriples:
      Add(enter, word, n * 3 * sizeof(int));
      return word;
    case api::Role::kSizeArray:
      Add(enter, word, n * sizeof(uint64_t));
      return word;
    case api::Role::kInOutInt: {
      int32_t value = 0;
      if (word != 0) std::memcpy(&value, reinterpret_cast<const void*>(word), sizeof value);
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    }
    case api::Role::kInOutSize: {
      uint64_t value = 0;
      if (word != 0) std::memcpy(&value, reinterpret_cast<const void*>(word), sizeof value);
      return value;
    }
    case api::Role::kString:
      if (word != 0) Add(enter, word, strnlen(reinterpret_cast<const char*>(word), kMaxText));
      return word;
    default:
      return word;
  }
}

}  // namespace

void DescribeMpiCall(const Call& call, MpiWorld& world, MpiEnter& enter) {
  enter.args = {};
  enter.size = 0;
  for (uint32_t i = 0; i < call.info->param_count; ++i) {
    enter.begin[i] = static_cast<uint32_t>(enter.size);
    enter.args.push_back(Describe(call, world, enter, i));
  }
  for (uint32_t i = call.info->param_count; i <= api::kMaxArgs; ++i)
    enter.begin[i] = static_cast<uint32_t>(enter.size);
}

}  // namespace deja::preload
