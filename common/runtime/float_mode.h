// While one lives, the floating-point unit is in its default mode. The program may have changed
// rounding, flushed denormals to zero or unmasked exceptions; what is computed must have the same
// bits all the same, raise nothing, and leave no flags behind.
//
// On the stack of one thread.
#ifndef DEJA_COMMON_RUNTIME_FLOAT_MODE_H_
#define DEJA_COMMON_RUNTIME_FLOAT_MODE_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace deja {

class DefaultFloatMode {
 public:
#if defined(__x86_64__)
  DefaultFloatMode() : saved_(_mm_getcsr()) {
    _mm_setcsr(0x1f80);
  }
  ~DefaultFloatMode() {
    _mm_setcsr(saved_);
  }

 private:
  unsigned saved_;
#else
  DefaultFloatMode() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatMode() {
    std::fesetenv(&saved_);
  }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_FLOAT_MODE_H_
