#include <cuda_runtime_api.h>

#include "tests/unit/fakes/cudart_facts.inc"
