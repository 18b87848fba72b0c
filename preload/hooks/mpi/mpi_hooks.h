// The exported hooks of MPI's functions, expanded from the table.
#ifndef DEJA_PRELOAD_HOOKS_MPI_MPI_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_MPI_MPI_HOOKS_H_

#include "api/roles.h"

namespace deja::preload {

// This library's hook for a function of the table; `second`: for its PMPI name.
void* MpiHookAddress(const api::ApiInfo& info, bool second);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_MPI_MPI_HOOKS_H_
