#include "api/find_api.h"

#include "api/c10d_table.h"
#include "api/curand_table.h"
#include "api/libc_table.h"
#include "api/mpi_table.h"
#include "api/nccl_table.h"

namespace deja::api {

const ApiInfo* FindApi(uint32_t id) {
  if (const ApiInfo* info = FindNccl(id)) return info;
  if (const ApiInfo* info = FindMpi(id)) return info;
  if (const ApiInfo* info = FindC10d(id)) return info;
  if (const ApiInfo* info = FindCurand(id)) return info;
  return FindLibc(id);
}

}  // namespace deja::api
