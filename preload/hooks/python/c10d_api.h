/* What python/deja/ calls by ctypes for PyTorch's process groups: their stores, and what is not
 * recorded. builtins.h has their operations.
 *
 * C, and plain enough for ctypes: python/deja/engine.py has the same structures. Both sides come
 * from one installation; `size` says that they do. All functions may be called by any thread, by
 * those of the process group's library too, without Python's global lock. Texts need no terminator
 * where a size stands beside them. What the caller passes in is read or written before the call
 * returns and not kept; what a call hands out stays for good.
 */
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_C10D_API_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_C10D_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t size;
  int32_t failed; /* the call raised: value is what it raised */
  const char* function;
  const char* key;
  uint64_t key_size;
  const char* value; /* set by `real`; out, served */
  uint64_t value_size;
  uint32_t of_rank; /* the process is to be a rank: init_process_group makes this store */
  uint32_t unused;
} deja_store_call;

/* 0: nothing is recorded or replayed here; 1: recording; 2: replaying. */
int deja_impl_mode(void);

/* What the calling thread does between 1 and 0 is a library's work and not the program's. */
void deja_impl_library(int begin);

/* Whether the calling thread is inside the real call of an operation (group_operations.h). */
int deja_impl_in_real_call(void);

/* Calls real(context), or answers from the recording. 1: answered; `real` was not called; -1: a
 * replay has no answer. */
int deja_impl_store(deja_store_call* call, void (*real)(void*), void* context);

/* The program does something of torch.distributed that is not recorded: the trace says `what`, and
 * so do listings, verdicts and the end of `deja record`. In a replay: says it and does not return.
 * may_be: there may be such a thing; a replay goes on. */
void deja_impl_not_recorded(const char* what, int may_be);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_C10D_API_H_ */
