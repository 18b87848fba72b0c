// Sizes, offsets and values of what an nccl.h declares, as rows that two translation units fill in:
// one from Deja's own header and one from NVIDIA's.
#ifndef DEJA_TESTS_CONFORMANCE_NCCL_NCCL_LAYOUT_H_
#define DEJA_TESTS_CONFORMANCE_NCCL_NCCL_LAYOUT_H_

#include <cstddef>
#include <span>

struct LayoutRow {
  const char* what;
  long long value;
};

struct NcclLayout {
  int version;  // NCCL_VERSION_CODE of the header
  std::span<const LayoutRow> rows;
};

NcclLayout CompatLayout();
#ifdef DEJA_HAVE_SYSTEM_NCCL_H
NcclLayout SystemLayout();
#endif

#endif  // DEJA_TESTS_CONFORMANCE_NCCL_NCCL_LAYOUT_H_
