/* What python/deja/ calls by ctypes: exceptions of Python that the program has caught.
 *
 * An exception object that dies with a traceback was raised and did not end the program. So the
 * deallocators of Python's own exception types are replaced. So are the functions by which the
 * collector of garbage clears exceptions in cycles of references. They report deaths to a function
 * of Python's. Nothing else of the program costs more time than before. CPython calls both with the
 * lock of the thread's interpreter held. Exceptions of other interpreters in the process are not
 * reported.
 */
#ifndef DEJA_PRELOAD_HOOKS_PYTHON_EXCEPTION_API_H_
#define DEJA_PRELOAD_HOOKS_PYTHON_EXCEPTION_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where the objects of an interpreter have what, in bytes, and functions of its C API by their
 * names there. */
typedef struct {
  uint64_t type;      /* in any object */
  uint64_t base;      /* in a type: the type that it inherits from */
  uint64_t dealloc;   /* in a type */
  uint64_t clear;     /* in a type */
  uint64_t args;      /* in an exception */
  uint64_t traceback; /* in an exception */
  uint64_t next;      /* in a traceback */
  uint64_t frame;     /* in a traceback */
  void* RecursionError;
  void (*PyErr_Fetch)(void** type, void** value, void** traceback);
  void (*PyErr_Restore)(void* type, void* value, void* traceback);
  void* (*PyObject_CallFunctionObjArgs)(void* callable, ...);
  int (*PyObject_IsTrue)(void* object);
  void (*Py_IncRef)(void* object);
  void (*Py_DecRef)(void* object);
  void* (*PyFrame_GetCode)(void* frame);
  int (*Py_AddPendingCall)(int (*function)(void*), void* context);
  void* (*PyInterpreterState_Get)(void);
} deja_exception_layout;

/* From now on tell(traceback, type, args) is called as an exception of one of the types, or of one
 * that inherits from them, dies. The types are static ones: the deallocator of a type on the heap
 * calls that of the type that it inherits from. `tell` returns true to hear no more of the same two
 * functions. What it raises, but for RecursionError, is raised in the program's first thread, which
 * it soon gets to. Once in a process, with the global lock held; the layout and `tell` are kept.
 * Exceptions between the same two functions are reported 64 times at once, then 10 times a second.
 */
void deja_impl_watch_exceptions(const deja_exception_layout* layout, void* const* types,
                                uint64_t count, void* tell);

/* Nothing is reported from now on: the interpreter ends. */
void deja_impl_exceptions_end(void);

#ifdef __cplusplus
}
#endif

#endif /* DEJA_PRELOAD_HOOKS_PYTHON_EXCEPTION_API_H_ */
