# External libraries. tools/packages.txt names the Debian packages that provide them.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
find_path(DEJA_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)

# Static and position independent: these go into libraries that are loaded into the user's process.
find_library(DEJA_ZSTD_STATIC NAMES libzstd.a REQUIRED)
find_path(DEJA_ZSTD_INCLUDE zstd.h REQUIRED)
find_path(DEJA_XXHASH_INCLUDE xxhash.h REQUIRED)

# LLVM's libunwind, not nongnu's: the only static one that is position independent.
find_library(DEJA_UNWIND_STATIC NAMES libunwind.a REQUIRED NO_DEFAULT_PATH
  PATHS /usr/lib/llvm-14/lib /usr/lib/llvm-15/lib /usr/lib/llvm-16/lib /usr/lib/llvm-17/lib /usr/lib/llvm-18/lib)
find_path(DEJA_UNWIND_INCLUDE libunwind.h REQUIRED NO_DEFAULT_PATH
  PATHS /usr/include/libunwind /usr/lib/llvm-18/include /usr/lib/llvm-16/include /usr/lib/llvm-14/include)

if(DEJA_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(Protobuf REQUIRED)
  # The distribution's, which has the modules of tools/packages.txt, however many others there are.
  if(NOT DEFINED Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_package(MPI COMPONENTS C CXX)
endif()
if(DEJA_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
  find_package(MPI COMPONENTS C)
endif()

# nccl.h is optional: the API table carries its own declarations of the stable C ABI. Where the header is, the
# conformance tests compare the two.
find_path(DEJA_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
# So is cuda.h, which only a test reads: include/compat/cuda.h must say the same.
find_path(DEJA_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include)
