/* deja.h: tell Deja where the program's steps are and show it what matters.
 *
 * Optional. Nothing to link: the functions are found when the program runs under `deja record` or
 * `deja replay`, and each is a test of one pointer otherwise. C99 and C++. May be called from any
 * thread; no call ever fails, blocks, or changes what the program computes. Nothing passed in is
 * kept: names are copied and tensors are read before the call returns.
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
__attribute__((weak)) void deja_impl_step(uint64_t step);
__attribute__((weak)) void deja_impl_note(const char* text);
__attribute__((weak)) void deja_impl_tensor(const char* name, const void* data,
                                            const int64_t* shape, int dims, deja_dtype_t dtype);
__attribute__((weak)) void deja_impl_state(const char* name, const void* data, size_t bytes);

/* Step `step` of the training loop begins. */
static inline void deja_step(uint64_t step) {
  if (deja_impl_step) deja_impl_step(step);
}

/* A line of text for listings. */
static inline void deja_note(const char* text) {
  if (deja_impl_note) deja_impl_note(text);
}

/* A snapshot, taken now, of a dense row-major tensor in host memory with at most 8 dimensions: its
 * digest, and at level full its bytes. In a replay it is compared like the input of a collective,
 * so that a divergence between two collectives is found where it starts. */
static inline void deja_tensor(const char* name, const void* data, const int64_t* shape, int dims,
                               deja_dtype_t dtype) {
  if (deja_impl_tensor) deja_impl_tensor(name, data, shape, dims, dtype);
}

/* The same for opaque state, such as that of a random number generator. */
static inline void deja_state(const char* name, const void* data, size_t bytes) {
  if (deja_impl_state) deja_impl_state(name, data, bytes);
}

#ifdef __cplusplus
}
#endif

#endif /* DEJA_H_ */
