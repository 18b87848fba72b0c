// The row of any table. Constants; any thread.
#ifndef DEJA_API_FIND_API_H_
#define DEJA_API_FIND_API_H_

#include <cstdint>

#include "api/roles.h"

namespace deja::api {

// The row with this id, of whatever table; null if there is none.
const ApiInfo* FindApi(uint32_t id);

}  // namespace deja::api

#endif  // DEJA_API_FIND_API_H_
