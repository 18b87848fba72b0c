/* What python/deja/ calls by ctypes: where the program of Python is.
 *
 * Any thread. Nothing that is passed in is kept. preload/stack/python_stack.h says what becomes of
 * it.
 */
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_PYTHON_API_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_PYTHON_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of a function; 0: there are too many. Both texts end with a zero. */
uint32_t deja_impl_python_function(const char* name, const char* file);

/* The number of a stack, innermost frame first: `count` functions and lines. 0: there are too many.
 */
uint32_t deja_impl_python_stack(const uint32_t* functions, const uint32_t* lines, uint64_t count);

/* The calling thread is at that stack from now on; 0: not known where. Returns the one before.
 */
uint32_t deja_impl_python_at(uint32_t stack);

/* The interpreter's _Py_DumpTraceback and PyGILState_GetThisThreadState. */
void deja_impl_interpreter(void (*dump)(int, void*), void* (*state)(void));

/* Where the interpreter's frames are: a PythonLayout of preload/stack/python_stack.h. */
void deja_impl_interpreter_layout(const void* layout);

/* Before the first thread: this process is a server whose threads meet at locks. Their order is
 * recorded, as with `deja record --threads order`, and given back in a replay. */
void deja_impl_threads_meet(void);

/* 1: asyncio's loops of this process find the ends of commands in an order that is recorded, or
 * given back. Recordings of older versions have none. */
int deja_impl_orders_loops(void);

/* 1: what the calling thread writes into pipes from now on, and which locks it takes, needs no
 * order; none is recorded. 0: it does again. Returns what held until now. */
int deja_impl_in_any_order(int in_any_order);

/* The interpreter's collector of reference cycles begins on the calling thread, or has ended there.
 * has_threads: the process has threads of Python's beside its first. */
void deja_impl_collection(int generation, int ended, int has_threads);

/* The same, right before it looks for garbage: other threads may have run since. The arguments are
 * those of a callback of the collector. */
void deja_impl_collection_looks(const void* phase, const void* info);

/* In a replay: collect(generation) runs the collector on the calling thread, where it ran in the
 * recording; null: no more. 1: the interpreter's own should not run by itself. A forked child asks
 * again. */
int deja_impl_keep_collections(void (*collect)(int generation));

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_PYTHON_API_H_ */
