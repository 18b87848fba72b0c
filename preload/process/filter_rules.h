// What a seccomp filter of the program's would do to Deja's system calls on the program's threads.
// The filter is run here, before the kernel has it.
//
// Pure functions. Any thread; no allocation.
#ifndef DEJA_PRELOAD_PROCESS_FILTER_RULES_H_
#define DEJA_PRELOAD_PROCESS_FILTER_RULES_H_

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

namespace deja::preload {

// What the filter says to one call: a SECCOMP_RET_… with its data. A filter that the kernel would
// not take says SECCOMP_RET_ALLOW.
uint32_t RunFilter(std::span<const sock_filter> filter, const seccomp_data& call);

// The name of the first call of Deja's that it does not simply allow; null: it allows all of them.
const char* RefusedBy(std::span<const sock_filter> filter);

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_PROCESS_FILTER_RULES_H_
