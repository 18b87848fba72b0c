#include "preload/api/find_api.h"

#include "preload/api/c10d_table.h"
#include "preload/api/curand_table.h"
#include "preload/api/libc_table.h"
#include "preload/api/mpi_table.h"
#include "preload/api/nccl_table.h"

namespace deja::preload {

const ApiInfo* FindApi(uint32_t id) {
  if (const ApiInfo* info = FindNccl(id)) return info;
  if (const ApiInfo* info = FindMpi(id)) return info;
  if (const ApiInfo* info = FindC10d(id)) return info;
  if (const ApiInfo* info = FindCurand(id)) return info;
  return FindLibc(id);
}

}  // namespace deja::preload
