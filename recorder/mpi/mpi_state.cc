#include "recorder/mpi/mpi_state.h"

#include <iterator>

#include "recorder/mpi/mpi_layout.h"

namespace deja::recorder {

using api::MpiApi;
using preload::MpiPlace;
using preload::MpiSegment;
using preload::MpiType;

namespace {

constexpr size_t kMaxSegments = MpiLayout::kMaxSegments;

}  // namespace

uint64_t MpiState::NumberOf(uint64_t handle) {
  if (handle == 0) return 0;
  if (const uint64_t number = preload::NumberOfPredefined(handle)) return number;
  Hold hold(lock_);
  bool is_new = false;
  const uint32_t number = numbers_.FindOrAdd(handle, next_number_, is_new);
  return number == KeyMap::kMissing ? 0 : api::kFirstMpiHandle + number;
}

uint64_t MpiState::Created(uint64_t handle) {
  if (handle == 0) return 0;
  if (const uint64_t number = preload::NumberOfPredefined(handle)) return number;
  Hold hold(lock_);
  const uint32_t uses = uses_.Find(handle);
  if (uses == KeyMap::kMissing || uses == 0) {
    // A handle that comes again without having been given back is a new one all the same.
    numbers_.Erase(handle);
    uses_.Set(handle, 1);
  } else {
    uses_.Set(handle, uses + 1);
  }
  bool is_new = false;
  const uint32_t number = numbers_.FindOrAdd(handle, next_number_, is_new);
  return number == KeyMap::kMissing ? 0 : api::kFirstMpiHandle + number;
}

MpiState::Taken MpiState::Take(uint64_t handle) {
  Taken taken;
  taken.handle = handle;
  if (handle == 0 || preload::NumberOfPredefined(handle) != 0) return taken;
  {
    Hold hold(lock_);
    taken.number = numbers_.Find(handle);
    taken.uses = uses_.Find(handle);
    if (taken.uses == KeyMap::kMissing) taken.uses = 0;
    numbers_.Erase(handle);
    uses_.Erase(handle);
  }
  Hold hold(request_lock_);
  taken.request = request_at_.Find(handle);
  request_at_.Erase(handle);
  return taken;
}

void MpiState::PutBack(const Taken& taken) {
  if (taken.handle == 0 || preload::NumberOfPredefined(taken.handle) != 0) return;
  {
    Hold hold(lock_);
    if (taken.number != KeyMap::kMissing) numbers_.Set(taken.handle, taken.number);
    if (taken.uses != 0) uses_.Set(taken.handle, taken.uses);
  }
  Hold hold(request_lock_);
  if (taken.request != KeyMap::kMissing) request_at_.Set(taken.handle, taken.request);
}

void MpiState::End(const Taken& taken) {
  if (taken.uses > 1) {
    Taken rest = taken;
    --rest.uses;
    return PutBack(rest);
  }
  Hold hold(request_lock_);
  if (taken.request != KeyMap::kMissing && free_request_count_ < std::size(free_requests_))
    free_requests_[free_request_count_++] = taken.request;
}

bool MpiState::IsRunning() {
  if (running_.load(std::memory_order_acquire)) return true;
  auto* initialized = preload::RealMpiAs<int(int*)>("PMPI_Initialized");
  auto* finalized = preload::RealMpiAs<int(int*)>("PMPI_Finalized");
  int is = 0;
  int was = 0;
  if (initialized == nullptr || finalized == nullptr || initialized(&is) != 0 || is == 0 ||
      finalized(&was) != 0 || was != 0)
    return false;
  SetRunning(true);
  return true;
}

bool MpiState::Ask(uint64_t handle, Type& type) {
  if (handle == preload::NullMpiType() || !IsRunning()) return false;
  MpiLayout layout;
  if (!FindLayout(handle, layout)) return false;
  type.size = layout.size;
  type.extent = layout.extent;
  type.known = layout.known;
  if (!layout.known) return true;
  type.segment_count = static_cast<uint32_t>(layout.count);
  if (layout.count == 1)
    type.one = layout.segments[0];
  else if (layout.count > 1)
    type.segments = layout.Keep();
  if (layout.count > 1 && type.segments == nullptr) return false;
  return true;
}

void MpiState::Describe(uint64_t number, const Type& type) {
  format::Input input;
  input.api = static_cast<uint32_t>(MpiApi::kMPI_Type_size);
  input.key = number;
  input.result = static_cast<int64_t>(type.size);
  input.error = type.known ? 0 : 1;
  uint64_t words[1 + 2 * kMaxSegments];
  size_t n = 0;
  words[n++] = static_cast<uint64_t>(type.extent);
  const MpiSegment* segments = type.segment_count == 1 ? &type.one : type.segments;
  for (uint32_t i = 0; i < type.segment_count; ++i) {
    words[n++] = static_cast<uint64_t>(segments[i].offset);
    words[n++] = segments[i].bytes;
  }
  input.data = {reinterpret_cast<const char*>(words), n * sizeof words[0]};
  writer_.Write(input);
}

MpiType MpiState::TypeOf(uint64_t handle) {
  const uint64_t number = NumberOf(handle);
  if (number == 0) return {};
  uint32_t at = type_at_.Find(number);
  if (at == KeyMap::kMissing) {
    Type type;
    if (!Ask(handle, type)) return {};
    const auto table = api::MpiPredefinedHandles();
    type.dtype = number <= table.size() ? table[number - 1].dtype : format::kRawBytes;
    at = types_.Add();
    if (at == KeyMap::kMissing) return {};
    types_[at] = type;
    Describe(number, type);
    type_at_.Set(number, at);
  }
  const Type& type = types_[at];
  MpiType result;
  result.known = type.known;
  result.size = type.size;
  result.extent = type.extent;
  result.dtype = type.dtype;
  if (type.segment_count == 1)
    result.segments = {&type.one, 1};
  else
    result.segments = {type.segments, type.segment_count};
  return result;
}

MpiPlace MpiState::PlaceOf(uint64_t comm) {
  const uint64_t number = NumberOf(comm);
  if (number == 0 || comm == preload::NullMpiComm()) return {};
  uint32_t at = place_at_.Find(number);
  if (at == KeyMap::kMissing) {
    if (!IsRunning()) return {};
    auto* size = preload::RealMpiAs<int(uint64_t, int*)>("PMPI_Comm_size");
    auto* rank = preload::RealMpiAs<int(uint64_t, int*)>("PMPI_Comm_rank");
    auto* test_inter = preload::RealMpiAs<int(uint64_t, int*)>("PMPI_Comm_test_inter");
    MpiPlace place;
    int inter = 1;
    if (size == nullptr || rank == nullptr || test_inter == nullptr) return {};
    place.known = test_inter(comm, &inter) == 0 && inter == 0 && size(comm, &place.size) == 0 &&
                  rank(comm, &place.rank) == 0;
    at = places_.Add();
    if (at == KeyMap::kMissing) return {};
    places_[at] = place;
    format::Input input;
    input.api = static_cast<uint32_t>(MpiApi::kMPI_Comm_size);
    input.key = number;
    input.result = place.size;
    input.error = place.known ? 0 : 1;
    input.data = {reinterpret_cast<const char*>(&place.rank), sizeof place.rank};
    writer_.Write(input);
    place_at_.Set(number, at);
  }
  return places_[at];
}

void MpiState::AddRequest(uint64_t handle, const preload::Call& call, bool persistent) {
  if (handle == 0) return;
  Hold hold(request_lock_);
  uint32_t at = free_request_count_ > 0 ? free_requests_[--free_request_count_] : requests_.Add();
  if (at == KeyMap::kMissing) return;
  requests_[at] = {call, persistent, persistent};
  request_at_.Set(handle, at);
}

uint32_t MpiState::RequestOf(uint64_t handle) {
  Hold hold(request_lock_);
  return handle == 0 ? KeyMap::kMissing : request_at_.Find(handle);
}

const MpiRequest* MpiState::Deliver(uint32_t request, bool& is_new) {
  if (request == KeyMap::kMissing) return nullptr;
  is_new = !requests_[request].delivered;
  requests_[request].delivered = true;
  return &requests_[request];
}

bool MpiState::RestartRequest(uint64_t handle, preload::Call& call) {
  Hold hold(request_lock_);
  const uint32_t at = handle == 0 ? KeyMap::kMissing : request_at_.Find(handle);
  if (at == KeyMap::kMissing) return false;
  requests_[at].delivered = false;
  call = requests_[at].call;
  return true;
}

}  // namespace deja::recorder
