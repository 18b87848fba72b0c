#include "tests/fakes/cuda/runtime/cudart_sim.h"
#include "tests/unit/fakes/cudart_facts.inc"
