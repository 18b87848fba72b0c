#include "tests/fakes/cuda/cudart_sim.h"
#include "tests/unit/fakes/cudart_facts.inc"
