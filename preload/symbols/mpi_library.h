// The MPI library of the program: where its functions are, and what its binary interface looks
// like.
//
// Deja links no MPI. The library is the one that the program is linked to, or has opened by itself;
// while a program has none there is nothing to hook. Any thread; no allocation; errno and dlerror
// are kept.
#ifndef DEJA_PRELOAD_SYMBOLS_MPI_LIBRARY_H_
#define DEJA_PRELOAD_SYMBOLS_MPI_LIBRARY_H_

#include <cstdint>
#include <cstring>

namespace deja::preload {

// The real "MPI_Send" or "PMPI_Send" (or a tool's between us and it), or null.
void* RealMpi(const char* name);
template <typename Fn>
Fn* RealMpiAs(const char* name) {
  return reinterpret_cast<Fn*>(RealMpi(name));
}
// The program has looked up a function of MPI's through `handle` by itself.
void RememberMpiHandle(void* handle, const char* name);

// What differs between the implementations. Both are for programs in C: Fortran's wrappers call the
// functions in C with C's values.
struct MpiAbi {
  uint64_t in_place;       // MPI_IN_PLACE
  uint64_t status_ignore;  // MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
  uint32_t handle_bytes;
  uint32_t status_bytes;
  uint32_t status_error_at;  // offset of MPI_ERROR
  int error_other;           // MPI_ERR_OTHER
  int error_in_status;       // MPI_ERR_IN_STATUS
  bool is_open_mpi;

  // A handle as it is passed, or stands in memory.
  [[nodiscard]] uint64_t Handle(uint64_t word) const {
    return handle_bytes == 4 ? word & 0xffffffff : word;
  }
  [[nodiscard]] uint64_t HandleAt(uint64_t address) const {
    uint64_t handle = 0;
    if (address != 0) std::memcpy(&handle, reinterpret_cast<const void*>(address), handle_bytes);
    return handle;
  }
  void PutHandle(uint64_t address, uint64_t handle) const {
    if (address != 0) std::memcpy(reinterpret_cast<void*>(address), &handle, handle_bytes);
  }
  // Bytes that were received, as the status says.
  [[nodiscard]] uint64_t ReceivedBytes(const void* status) const;
  // The attribute that `keyval` stands for is the library's own, an int.
  [[nodiscard]] bool IsOwnKeyval(int keyval) const {
    constexpr int kOpenMpiFirstOther = 7;  // those of windows
    constexpr int kMpichMask = 0x7fffff00;
    return is_open_mpi ? keyval >= 0 && keyval < kOpenMpiFirstOther
                       : (keyval & kMpichMask) == 0x64400000;
  }
};

inline constexpr int kMpiUndefined = -32766;      // everywhere
inline constexpr size_t kMaxMpiStatusBytes = 24;  // of all implementations

// The ABI of the library in use; Open MPI's while there is none.
const MpiAbi& TheMpiAbi();

// Predefined handles. The number (mpi_table.h) of a handle; 0 if it is none of them.
uint64_t NumberOfPredefined(uint64_t handle);
// The handle with this number; 0 if the library has none.
uint64_t PredefinedHandle(uint64_t number);
// MPI_COMM_NULL, MPI_DATATYPE_NULL, MPI_COMM_SELF, MPI_COMM_WORLD of the library in use.
uint64_t NullMpiComm();
uint64_t NullMpiType();
uint64_t MpiCommSelf();
uint64_t MpiCommWorld();

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_MPI_LIBRARY_H_
