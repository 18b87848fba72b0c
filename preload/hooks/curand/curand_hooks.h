// The exported hooks of cuRAND's functions, expanded from the table.
#ifndef DEJA_PRELOAD_HOOKS_CURAND_CURAND_HOOKS_H_
#define DEJA_PRELOAD_HOOKS_CURAND_CURAND_HOOKS_H_

#include "api/roles.h"

namespace deja::preload {

// This library's hook for a function of the table. (The address of ::curandX may be another
// library's.)
void* CurandHookAddress(const api::ApiInfo& info);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_HOOKS_CURAND_CURAND_HOOKS_H_
