// The exported hooks of NCCL's functions, expanded from the table.
#ifndef DEJA_PRELOAD_HOOKS_NCCL_NCCL_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_NCCL_NCCL_HOOKS_H_

#include "api/roles.h"

namespace deja::preload {

// This library's hook for a function of the table. (The address of ::ncclX may be another
// library's.)
void* NcclHookAddress(const api::ApiInfo& info);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_NCCL_NCCL_HOOKS_H_
