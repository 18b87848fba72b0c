// Where Python's runtime state is in this process (`_PyRuntime`, 3.9 and newer). The interpreter's
// lock lies in it.
//
// Any thread; no allocation; IsInPythonRuntime costs two loads.
#ifndef DEJA_PRELOAD_MEET_PYTHON_RUNTIME_H_
#define DEJA_PRELOAD_MEET_PYTHON_RUNTIME_H_

#include <cstddef>
#include <cstdint>

namespace deja::preload {

struct PythonRuntime {
  uintptr_t begin = 0;
  size_t size = 0;  // 0: there is no Python
};
extern constinit PythonRuntime g_python_runtime;

// Only while the process has one thread, with the guard held.
void FindPythonRuntime();

inline bool IsInPythonRuntime(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - g_python_runtime.begin < g_python_runtime.size;
}

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_MEET_PYTHON_RUNTIME_H_
