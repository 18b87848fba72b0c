/* What python/deja/ calls by ctypes: operations of PyTorch's process groups and stores.
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

/* One tensor's bytes, dense. */
typedef struct {
  void* data;
  uint64_t bytes;
} deja_piece;

/* How an operation of a recording ended. Failed: its Work.wait raises. Raised: the call itself
 * does. */
enum { kDejaGroupUnknown = 0, kDejaGroupDone = 1, kDejaGroupFailed = 2, kDejaGroupRaised = 3 };

typedef struct {
  uint32_t size;        /* of this structure */
  int32_t dtype;        /* ncclDataType_t, or 255: bytes */
  const char* function; /* a name in c10d.def */
  uint64_t group;       /* c10d_new_group sets it */
  const deja_piece* inputs;
  uint64_t input_count;
  const deja_piece* outputs;
  uint64_t output_count;
  int32_t op;   /* ncclRedOp_t, or -1 less c10d's own number */
  int32_t peer; /* root, source or destination; of c10d_new_group the rank in it */
  int32_t tag;
  int32_t nranks;     /* c10d_new_group */
  const char* name;   /* c10d_new_group: the group's name, ended by a zero */
  uint64_t identity;  /* c10d_new_group: the same number in all its ranks */
  uint64_t operation; /* out: its number in the group, from 1; 0: it has none */
  int32_t state;      /* out, served: kDejaGroup… */
  int32_t src;        /* out, served: who had sent what a recv_anysource received */
  const char*
      error; /* set by `real` when the call raised; out, served: what the operation raises */
  uint64_t error_size;
  uint32_t python_stack; /* deja_impl_python_stack's; 0: unknown */
  uint32_t unused;
} deja_group_call;

typedef struct {
  uint32_t size;
  int32_t dtype;
  uint64_t group;
  uint64_t operation;
  const deja_piece* outputs;
  uint64_t output_count;
  int32_t src; /* -1: the call says it */
  int32_t unused;
  const char* error; /* null: it succeeded */
  uint64_t error_size;
} deja_group_done;

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

/* Whether the calling thread is inside `real` of one of the two below. What it calls here then is
 * neither recorded nor served. */
int deja_impl_in_real_call(void);

/* Calls real(context), or answers from the recording. 1: answered; `real` was not called. */
int deja_impl_group_call(deja_group_call* call, void (*real)(void*), void* context);

/* An operation has ended, on whatever thread that is noticed. Once for each. In a replay: the
 * program waits for one whose state is unknown; does not return, because the recording ends there.
 */
void deja_impl_group_done(const deja_group_done* done);

/* As deja_impl_group_call. -1: a replay has no answer. */
int deja_impl_store(deja_store_call* call, void (*real)(void*), void* context);

/* The program does something of torch.distributed that is not recorded: the trace says `what`, and
 * so do listings, verdicts and the end of `deja record`. In a replay: says it and does not return.
 * may_be: there may be such a thing; a replay goes on. */
void deja_impl_not_recorded(const char* what, int may_be);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_C10D_API_H_ */
