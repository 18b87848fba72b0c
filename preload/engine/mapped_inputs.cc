#include "preload/engine/mapped_inputs.h"

namespace deja::preload {

constinit std::atomic<uint64_t> g_mapped_inputs{0};

}  // namespace deja::preload
