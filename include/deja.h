/* deja.h: tell Deja where the program's steps are, show it what matters, and hand it the state from
 * which a replay can start late.
 *
 * Optional. Nothing to link: the functions are found when the program runs under `deja record` or
 * `deja replay`, and each is a test of one pointer otherwise. C99 and C++. Any thread may call
 * them. No call fails, and none changes what the program computes, with one exception. In a replay
 * from a checkpoint, the first deja_step() restores what is registered. Names are copied.
 * Registered memory must stay valid until it is unregistered, or registered again under its name.
 */
#ifndef DEJA_H_
#define DEJA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the numbers are those of ncclDataType_t. */
typedef enum {
  DEJA_INT8 = 0,
  DEJA_UINT8 = 1,
  DEJA_INT32 = 2,
  DEJA_UINT32 = 3,
  DEJA_INT64 = 4,
  DEJA_UINT64 = 5,
  DEJA_FLOAT16 = 6,
  DEJA_FLOAT32 = 7,
  DEJA_FLOAT64 = 8,
  DEJA_BFLOAT16 = 9,
  DEJA_FLOAT8_E4M3 = 10,
  DEJA_FLOAT8_E5M2 = 11
} deja_dtype_t;

/* The entry points, defined by Deja's libraries and null without them. Call the functions below
 * instead. */
typedef void (*deja_write_t)(void* sink, const void* data, size_t bytes);
typedef void (*deja_save_t)(void* user, deja_write_t write, void* sink);
typedef int (*deja_load_t)(void* user, const void* data, size_t bytes);
__attribute__((weak)) uint64_t deja_impl_step(uint64_t step);
__attribute__((weak)) void deja_impl_checkpoint(void);
__attribute__((weak)) void deja_impl_register_tensor(const char* name, void* data,
                                                     const int64_t* shape, int dims,
                                                     deja_dtype_t dtype);
__attribute__((weak)) void deja_impl_register_state(const char* name, void* data, size_t bytes);
__attribute__((weak)) void deja_impl_register_callbacks(const char* name, deja_save_t save,
                                                        deja_load_t load, void* user);
__attribute__((weak)) void deja_impl_unregister(const char* name);
__attribute__((weak)) void deja_impl_note(const char* text);
__attribute__((weak)) void deja_impl_tensor(const char* name, const void* data,
                                            const int64_t* shape, int dims, deja_dtype_t dtype);
__attribute__((weak)) void deja_impl_state(const char* name, const void* data, size_t bytes);
struct deja_optimizer_update;
__attribute__((weak)) void deja_impl_update(const struct deja_optimizer_update* update);

/* Step `step` of the training loop begins. Returns the step to go on with, which is `step`. The
 * exception is the first call in a replay from a checkpoint: it restores what is registered and
 * returns the checkpoint's step. A program that can be replayed from a checkpoint takes it from
 * there:
 *     for (uint64_t step = 0; step < steps; ++step) { step = deja_step(step); …
 * Checkpoints are taken in this call. Everything that is registered must be as the step needs it,
 * and threads that change it must be at rest. */
static inline uint64_t deja_step(uint64_t step) {
  return deja_impl_step ? deja_impl_step(step) : step;
}

/* The next deja_step() takes a checkpoint, whatever --checkpoint-every says. */
static inline void deja_checkpoint(void) {
  if (deja_impl_checkpoint) deja_impl_checkpoint();
}

/* Registers a dense row-major tensor of at most 8 dimensions: it becomes part of each checkpoint. A
 * name that is registered again means the new memory from then on. Device memory is read and
 * written in the order of the device's legacy default stream, for which deja_step() waits. Work on
 * streams that do not wait for that one must be done. */
static inline void deja_register_tensor(const char* name, void* data, const int64_t* shape,
                                        int dims, deja_dtype_t dtype) {
  if (deja_impl_register_tensor) deja_impl_register_tensor(name, data, shape, dims, dtype);
}

/* The same for opaque state of a fixed size without pointers: a generator, a counter. */
static inline void deja_register_state(const char* name, void* data, size_t bytes) {
  if (deja_impl_register_state) deja_impl_register_state(name, data, bytes);
}

/* The same for state that the program's own code saves and loads. `save` hands its bytes to
 * `write(sink, …)`, in any number of calls. `load` gets them together, and returns 0 on success.
 * Both are called in deja_step(). If another thread works on the state (a data loader), `save` and
 * `load` wait until that thread is at rest. It stays so until deja_step() returns. */
static inline void deja_register_callbacks(const char* name, deja_save_t save, deja_load_t load,
                                           void* user) {
  if (deja_impl_register_callbacks) deja_impl_register_callbacks(name, save, load, user);
}

static inline void deja_unregister(const char* name) {
  if (deja_impl_unregister) deja_impl_unregister(name);
}

/* A line of text for listings. */
static inline void deja_note(const char* text) {
  if (deja_impl_note) deja_impl_note(text);
}

/* A snapshot, taken now, of a dense row-major tensor with at most 8 dimensions: its digest, and at
 * level full its bytes. Device memory is read as deja_register_tensor() says. In a replay it is
 * compared like the input of a collective, so that a divergence between two collectives is found
 * where it starts. */
static inline void deja_tensor(const char* name, const void* data, const int64_t* shape, int dims,
                               deja_dtype_t dtype) {
  if (deja_impl_tensor) deja_impl_tensor(name, data, shape, dims, dtype);
}

/* The same for opaque state, such as that of a random number generator. */
static inline void deja_state(const char* name, const void* data, size_t bytes) {
  if (deja_impl_state) deja_impl_state(name, data, bytes);
}

/* Optimizers whose state `deja pack --predict` can work out again. */
typedef enum {
  DEJA_SGD = 1,  /* with momentum or without */
  DEJA_ADAM = 2, /* weight decay, if any, is added to the gradient */
  DEJA_ADAMW = 3 /* weight decay shrinks the parameters first */
} deja_optimizer_t;

/* One update of registered parameters, or of a part of them, by an optimizer whose moments are
 * registered. Each moment has as many elements as its tensor. The recording finds by its address
 * what collectives summed into `gradient`; nothing is copied. The values given here need not be
 * right: the recording keeps the update's real result. */
typedef struct deja_optimizer_update {
  deja_optimizer_t optimizer;
  deja_dtype_t dtype; /* of all four; DEJA_FLOAT32 can be predicted */
  uint64_t count;     /* elements of each of the four */
  const void* parameters;
  const void* first_moment;  /* null: none */
  const void* second_moment; /* null: none */
  const void* gradient;
  uint64_t updates; /* by this optimizer so far, this one among them */
  double learning_rate;
  double beta1; /* of SGD: the momentum */
  double beta2; /* of SGD: the dampening */
  double epsilon;
  double weight_decay;
  double gradient_scale; /* what the gradient is multiplied by before anything else: mostly 1 */
  int nesterov;
} deja_update_t;

/* An update is about to be made, or has just been made: in any case before the gradient's memory is
 * used for something else. */
static inline void deja_update(const deja_update_t* update) {
  if (deja_impl_update) deja_impl_update(update);
}

#ifdef __cplusplus
}
#endif

#endif /* DEJA_H_ */
