#include "replayer/mpi/mpi_world.h"

#include <sys/mman.h>

#include <cstring>

#include "common/runtime/own_mapping.h"

namespace deja::replayer {

using api::kFirstMpiHandle;
using api::MpiApi;
using preload::MpiPlace;
using preload::MpiSegment;
using preload::MpiType;

namespace {

constexpr uint64_t kHandles = 1ull << 30;      // as many as there is room for
constexpr uint64_t kMpichServed = 0xf0000000;  // handles of no kind that MPICH has

const RecordedInput* Fact(const ReplayPlan& plan, MpiApi api, uint64_t number) {
  const auto& facts = plan.identities();
  auto it = facts.find({static_cast<uint32_t>(api), number});
  return it == facts.end() ? nullptr : &plan.inputs()[it->second];
}

}  // namespace

uint64_t ServedMpi::Base() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (base_ != 0) return base_;
  void* at = MapOwn(kHandles, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  // Without room any address does that is no object's: the lowest ones.
  base_ = at == MAP_FAILED ? 4096 : reinterpret_cast<uint64_t>(at);
  return base_;
}

uint64_t ServedMpi::NumberOf(uint64_t handle) {
  if (handle == 0) return 0;
  if (!preload::TheMpiAbi().is_open_mpi && handle >= kMpichServed)
    return kFirstMpiHandle + (handle - kMpichServed);
  const uint64_t base = Base();
  if (preload::TheMpiAbi().is_open_mpi && handle >= base && handle < base + kHandles)
    return kFirstMpiHandle + (handle - base);
  return preload::NumberOfPredefined(handle);
}

uint64_t ServedMpi::HandleOf(uint64_t number) {
  if (number == 0) return 0;
  if (number < kFirstMpiHandle || (number & api::kMpichHandle) != 0)
    return preload::PredefinedHandle(number);
  const uint64_t made = number - kFirstMpiHandle;
  return preload::TheMpiAbi().is_open_mpi ? Base() + made % kHandles
                                          : kMpichServed + (made & 0x0fffffff);
}

MpiType ServedMpi::TypeOf(uint64_t handle) {
  const uint64_t number = NumberOf(handle);
  const RecordedInput* fact = Fact(plan_, MpiApi::kMPI_Type_size, number);
  MpiType type;
  if (fact == nullptr) return type;
  const std::string_view data = plan_.Bytes(fact->data);
  if (data.size() < sizeof(int64_t)) return type;
  type.known = fact->error == 0;
  type.size = static_cast<uint64_t>(fact->result);
  std::memcpy(&type.extent, data.data(), sizeof type.extent);
  const auto table = api::MpiPredefinedHandles();
  if (number >= 1 && number <= table.size()) type.dtype = table[number - 1].dtype;
  std::lock_guard<std::mutex> lock(mutex_);
  auto [it, is_new] = segments_.try_emplace(number);
  if (is_new) {
    it->second.resize((data.size() - sizeof(int64_t)) / sizeof(MpiSegment));
    if (!it->second.empty())
      std::memcpy(it->second.data(), data.data() + sizeof(int64_t),
                  it->second.size() * sizeof(MpiSegment));
  }
  type.segments = it->second;
  return type;
}

MpiPlace ServedMpi::PlaceOf(uint64_t comm) {
  const RecordedInput* fact = Fact(plan_, MpiApi::kMPI_Comm_size, NumberOf(comm));
  MpiPlace place;
  if (fact == nullptr) return place;
  const std::string_view data = plan_.Bytes(fact->data);
  if (data.size() < sizeof place.rank || fact->result < 0 || fact->result > INT32_MAX) return place;
  place.known = fact->error == 0;
  place.size = static_cast<int>(fact->result);
  std::memcpy(&place.rank, data.data(), sizeof place.rank);
  if (place.rank < 0 || place.rank >= place.size) place.known = false;
  return place;
}

void ServedMpi::AddRequest(uint64_t number, const preload::Call& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_[number] = call;
}

std::optional<preload::Call> ServedMpi::FindRequest(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = requests_.find(number);
  if (it == requests_.end()) return std::nullopt;
  return it->second;
}

void ServedMpi::EndRequest(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  requests_.erase(number);
}

void ServedMpi::SetAttribute(AttributeKey key, uint64_t value) {
  std::lock_guard<std::mutex> lock(mutex_);
  attributes_[key] = value;
}

uint64_t ServedMpi::Attribute(AttributeKey key) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = attributes_.find(key);
  return it == attributes_.end() ? 0 : it->second;
}

uint64_t ServedMpi::KeepInt(int value) {
  return reinterpret_cast<uint64_t>(new int(value));  // programs keep the pointer
}

}  // namespace deja::replayer
