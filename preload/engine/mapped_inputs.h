// How many mappings of input files the engine wants to hear the end of.
//
// Counted by the engine; the hook of munmap asks it only when there are any. Any thread.
#ifndef DEJA_PRELOAD_ENGINE_MAPPED_INPUTS_H_
#define DEJA_PRELOAD_ENGINE_MAPPED_INPUTS_H_

#include <atomic>
#include <cstdint>

namespace deja::preload {

extern constinit std::atomic<uint64_t> g_mapped_inputs;

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_ENGINE_MAPPED_INPUTS_H_
