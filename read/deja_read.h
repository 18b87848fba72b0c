/* The C interface of libdeja_read.so: tensors of a trace, decoded by Deja's own reader, for other
 * languages.
 *
 * Used by python/deja/trace.py through ctypes. It reads trace directories; a bundle is unpacked
 * first. A trace belongs to its caller, who closes it. One trace may be read by several threads.
 * Functions return 0 or a handle, or -1 or NULL and a reason (deja_read_error). Not a stable
 * interface: version and library come together. */
#ifndef DEJA_READ_DEJA_READ_H_
#define DEJA_READ_DEJA_READ_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deja_read_trace deja_read_trace;

/* A tensor that operation `seq` of communicator `comm` of the rank read or produced. */
typedef struct {
  uint32_t comm;
  uint32_t dtype; /* common/data_types.def; 255: bytes */
  uint64_t seq;
  uint64_t count; /* elements */
  uint64_t bytes; /* that are kept; 0: none */
  uint8_t hash[16];
  uint8_t is_result; /* else an input */
  uint8_t reserved[7];
} deja_read_tensor;

/* Statistics of a tensor; all but the counts leave out NaNs and infinities. */
typedef struct {
  uint64_t nan_count;
  uint64_t inf_count;
  double min;
  double max;
  double sum;
  double sum_squares;
} deja_read_statistics;

/* Why the last call of this thread failed; valid until its next one. */
const char* deja_read_error(void);

deja_read_trace* deja_read_open(const char* directory);
void deja_read_close(deja_read_trace* trace);

/* The numbers of its ranks, ascending, at most `most` of them; returns how many there are. */
int64_t deja_read_ranks(const deja_read_trace* trace, uint32_t* ranks, int64_t most);

/* Which tensors of an operation. */
enum { DEJA_READ_INPUTS = 1, DEJA_READ_RESULTS = 2 }; /* NOLINT: names of C */

/* The tensors of the operations [first, last] of `comm` of the last attempt of `rank`, as they were
 * recorded. `comm` and `first` negative: of all. `which`: DEJA_READ_INPUTS, DEJA_READ_RESULTS, or
 * both by `|`. At most `most` are written to `tensors`, and their statistics to
 * `statistics`, unless it is NULL; returns how many there are. */
int64_t deja_read_tensors(deja_read_trace* trace, uint32_t rank, int64_t comm, int64_t first,
                          int64_t last, uint32_t which, deja_read_tensor* tensors,
                          deja_read_statistics* statistics, int64_t most);

/* Decodes the bytes of a tensor into `out`, which has `size` bytes: those that the tensor says.
 * Checks their hash. */
int deja_read_payload(deja_read_trace* trace, uint32_t rank, const uint8_t hash[16], void* out,
                      uint64_t size);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_READ_DEJA_READ_H_ */
