// The table of MPI's functions, and what Deja assumes about the binary interface, against the
// header of the MPI that is installed.
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#include <mpi.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "api/find_api.h"
#include "api/mpi_table.h"
#include "api/table.h"
#include "preload/symbols/mpi_library.h"

using DejaIntTriples = int (*)[3];
// Functions that MPI 3 has removed are in the table, too.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

// Each row has the type of the function that it is named after.
#define DEJA_FN(id, result, name, since, klass, ...)                                  \
  static_assert(std::is_same_v<decltype(&(name)), result(*) DEJA_TYPES(__VA_ARGS__)>, \
                "the row of " #name " differs from mpi.h");
#include "api/tables/mpi.def"
#undef DEJA_FN

using deja::api::MpiTable;
using deja::api::Role;

TEST(MpiHeaderTest, RowsAreFoundByIdAndName) {
  for (const deja::api::ApiInfo& info : MpiTable()) {
    EXPECT_EQ(deja::api::FindMpi(info.id), &info);
    EXPECT_EQ(deja::api::FindMpi(info.name), &info);
    EXPECT_EQ(deja::api::FindApi(info.id), &info);
  }
  EXPECT_EQ(deja::api::FindMpi("MPI_No_such_function"), nullptr);
  EXPECT_EQ(deja::api::FindMpi(deja::api::kLibcFamily), nullptr);
}

// A buffer is followed by a count and a type: that is how its length is found.
TEST(MpiHeaderTest, EveryBufferHasACountAndAType) {
  for (const deja::api::ApiInfo& info : MpiTable()) {
    for (uint32_t i = 0; i < info.param_count; ++i) {
      const Role role = info.params[i].role;
      const bool is_buffer = role == Role::kIn || role == Role::kInN || role == Role::kInNRoot ||
                             role == Role::kOut || role == Role::kOutN || role == Role::kOutRoot ||
                             role == Role::kOutNRoot || role == Role::kInRootOut ||
                             role == Role::kInOut;
      if (!is_buffer) continue;
      bool count = false;
      bool type = false;
      for (uint32_t j = i + 1; j < info.param_count; ++j) {
        count |= info.params[j].role == Role::kCount || info.params[j].role == Role::kCounts;
        type |= info.params[j].role == Role::kDType || info.params[j].role == Role::kDTypes;
      }
      EXPECT_TRUE(count && type) << info.name << " " << info.params[i].name;
      const bool has_place = info.Find(Role::kComm) >= 0;
      const bool needs_place = role != Role::kIn && role != Role::kOut && role != Role::kInOut;
      EXPECT_TRUE(has_place || !needs_place) << info.name;
    }
  }
}

TEST(MpiHeaderTest, ArraysHaveALength) {
  for (const deja::api::ApiInfo& info : MpiTable()) {
    for (uint32_t i = 0; i < info.param_count; ++i) {
      const Role role = info.params[i].role;
      const bool counted = role == Role::kHandles || role == Role::kHandlesInOut ||
                           role == Role::kStatuses || role == Role::kIntArray ||
                           role == Role::kOutInts || role == Role::kInOutInts ||
                           role == Role::kSizeArray || role == Role::kIntTriples;
      EXPECT_TRUE(!counted || info.Find(Role::kIntCount) >= 0) << info.name;
    }
  }
}

TEST(MpiHeaderTest, BinaryInterface) {
  const deja::preload::MpiAbi& abi = deja::preload::TheMpiAbi();
  EXPECT_EQ(abi.in_place, reinterpret_cast<uint64_t>(MPI_IN_PLACE));
  EXPECT_EQ(abi.status_ignore, reinterpret_cast<uint64_t>(MPI_STATUS_IGNORE));
  EXPECT_EQ(abi.status_ignore, reinterpret_cast<uint64_t>(MPI_STATUSES_IGNORE));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Comm));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Request));
  EXPECT_EQ(abi.handle_bytes, sizeof(MPI_Datatype));
  EXPECT_EQ(abi.status_bytes, sizeof(MPI_Status));
  EXPECT_LE(sizeof(MPI_Status), deja::preload::kMaxMpiStatusBytes);
  EXPECT_EQ(abi.status_error_at, offsetof(MPI_Status, MPI_ERROR));
  EXPECT_EQ(abi.error_other, MPI_ERR_OTHER);
  EXPECT_EQ(abi.error_in_status, MPI_ERR_IN_STATUS);
  EXPECT_EQ(deja::preload::kMpiUndefined, MPI_UNDEFINED);
  EXPECT_EQ(sizeof(MPI_Aint), 8u);
  EXPECT_EQ(sizeof(MPI_Count), 8u);
  for (int keyval : {MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_APPNUM,
                     MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE})
    EXPECT_TRUE(abi.IsOwnKeyval(keyval)) << keyval;
  EXPECT_FALSE(abi.IsOwnKeyval(MPI_KEYVAL_INVALID));
}

TEST(MpiHeaderTest, ConstantsThatAreHandles) {
  auto word = [](auto handle) { return (uint64_t)handle; };  // NOLINT: a pointer or an int
  EXPECT_EQ(deja::preload::NullMpiComm(), word(MPI_COMM_NULL));
  EXPECT_EQ(deja::preload::NullMpiType(), word(MPI_DATATYPE_NULL));
  EXPECT_EQ(deja::preload::MpiCommSelf(), word(MPI_COMM_SELF));
  EXPECT_EQ(deja::preload::MpiCommWorld(), word(MPI_COMM_WORLD));
  for (uint64_t handle : {word(MPI_COMM_WORLD), word(MPI_INT), word(MPI_DOUBLE_INT), word(MPI_SUM),
                          word(MPI_REQUEST_NULL), word(MPI_ERRORS_RETURN), word(MPI_INFO_NULL)}) {
    const uint64_t number = deja::preload::NumberOfPredefined(handle);
    EXPECT_NE(number, 0u) << handle;
    EXPECT_EQ(deja::preload::PredefinedHandle(number), handle);
  }
}

#ifdef OPEN_MPI
TEST(MpiHeaderTest, PredefinedHandlesOfOpenMpi) {
#ifndef MPI_INTEGER16  // where the Fortran compiler has none
#define MPI_INTEGER16 dlsym(RTLD_DEFAULT, "ompi_mpi_integer16")
#endif
#define DEJA_REQUEST_DONE dlsym(RTLD_DEFAULT, "ompi_request_empty")
#define DEJA_HANDLE(number, symbol, name, dtype) \
  EXPECT_EQ(dlsym(RTLD_DEFAULT, #symbol), static_cast<const void*>(name)) << #name;
#include "api/tables/mpi_handles.def"
#undef DEJA_HANDLE
#undef DEJA_REQUEST_DONE
}
#endif

}  // namespace
