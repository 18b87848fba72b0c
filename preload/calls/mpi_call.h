// What a call of MPI's API says and which memory it reads and writes. It follows from the table,
// the arguments and an engine's knowledge of handles.
//
// The recorder asks the real library about types and communicators, the replayer asks the trace;
// both go through MpiWorld, so that they describe a call in the same way. Any thread; no
// allocation. Memory is read as the call itself would read it.
#ifndef DEJA_PRELOAD_CALLS_MPI_CALL_H_
#define DEJA_PRELOAD_CALLS_MPI_CALL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "api/mpi_table.h"
#include "common/inline_vec.h"
#include "format/wire/messages.h"
#include "preload/calls/call.h"
#include "preload/symbols/mpi_library.h"

namespace deja::preload {

// A run of bytes of one element of a type, from the element's address.
struct MpiSegment {
  int64_t offset = 0;
  uint64_t bytes = 0;
};

// How elements of a type lie in memory.
struct MpiType {
  bool known = false;
  uint64_t size = 0;   // bytes that are sent
  int64_t extent = 0;  // from one element to the next
  uint32_t dtype = format::kRawBytes;
  std::span<const MpiSegment> segments;  // of one element, in order
  // Elements lie one after the other without a gap.
  [[nodiscard]] bool dense() const {
    return segments.size() == 1 && segments[0].offset == 0 && segments[0].bytes == size &&
           extent == static_cast<int64_t>(size);
  }
};

// The caller's place in a communicator.
struct MpiPlace {
  bool known = false;  // an intra-communicator that the caller is in
  int size = 0;
  int rank = 0;
};

class MpiWorld {
 public:
  virtual ~MpiWorld() = default;
  // The number of a handle, as it stands in a trace (mpi_table.h).
  virtual uint64_t NumberOf(uint64_t handle) = 0;
  virtual MpiType TypeOf(uint64_t type) = 0;
  virtual MpiPlace PlaceOf(uint64_t comm) = 0;
};

// A buffer of one call: `count` elements, or a part for each rank.
struct MpiBuffer {
  int arg = -1;  // index of the parameter; -1: there is no such buffer
  uint64_t address = 0;
  uint64_t count = 0;
  MpiType type;
  // Parts: counts[i] elements at displs[i] (elements, or with `types` bytes), one after the other
  // without displs.
  const int* counts = nullptr;
  const int* displs = nullptr;
  uint64_t types = 0;  // address of an array of handles
  int parts = 0;
  int only = -1;  // this part alone
  MpiWorld* world = nullptr;

  [[nodiscard]] bool present() const { return arg >= 0; }
  // False if the type's layout is not known.
  [[nodiscard]] bool known() const;
  [[nodiscard]] uint64_t bytes() const;
  // The bytes in one piece, if they are.
  [[nodiscard]] std::span<std::byte> contiguous() const;
  // Copies the first out.size() bytes together, or from one piece to where they belong.
  void Gather(std::span<std::byte> out) const;
  void Scatter(std::span<const std::byte> in) const;

 private:
  template <typename F>
  void ForEachPiece(F f) const;
};

// What the call reads from and writes to, on this rank. MPI_IN_PLACE is resolved.
MpiBuffer MpiInput(const Call& call, MpiWorld& world);
MpiBuffer MpiOutput(const Call& call, MpiWorld& world);
// True if the output is there when a request is done, and not before.
inline bool EndsWithRequest(const Call& call) {
  const int last = static_cast<int>(call.info->param_count) - 1;
  return last >= 0 && call.info->params[last].role == api::Role::kNewHandle &&
         std::string_view(call.info->params[last].type) == "MPI_Request*";
}
// A send or receive that waits for MPI_Start.
bool IsPersistent(const api::ApiInfo& info);
// A call whose received bytes the status counts.
inline bool IsReceive(const api::ApiInfo& info) {
  return info.klass == api::ApiClass::kP2p && info.Find(api::Role::kOut) >= 0;
}

// Tensors of a call's results: of one parameter, or of the request with this index and more.
inline constexpr uint32_t kMpiRequestParam = api::kMaxArgs;
// In CallLeave.outs for an array or text: its bytes in the blob, or with this bit in a tensor.
inline constexpr uint64_t kMpiSpilled = 1ull << 63;
// Results up to this size are kept at any level: without them there is no replay.
inline constexpr uint64_t kMpiAlwaysKept = 64 << 10;

// What stands in the enter record besides what all calls have.
struct MpiEnter {
  // Values; handles as numbers, those behind pointers, too; other pointers as addresses.
  InlineVec<uint64_t, format::kMaxCallArgs> args;
  // The arrays and strings of the parameters, in order. What does not fit is left out.
  std::string_view blob() const { return {bytes, size}; }
  [[nodiscard]] std::string_view Of(uint32_t param) const {
    return {bytes + begin[param], begin[param + 1] - begin[param]};
  }
  size_t size = 0;
  uint32_t begin[api::kMaxArgs + 1] = {};
  char bytes[8 << 10];
};
void DescribeMpiCall(const Call& call, MpiWorld& world, MpiEnter& enter);

// Number of elements of the arrays with `role`s that kIntCount counts; 0 if it makes no sense.
size_t MpiArrayCount(const Call& call);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_CALLS_MPI_CALL_H_
