// arc4random for programs and libraries that run on other machines with libstdc++ inside. The
// std::random_device of a libstdc++ built with glibc 2.36 calls it. An older C library does not
// have it and could not load them (Ubuntu 22.04 has 2.35). An object, linked before the C library,
// and hidden, so that it replaces no other library's function.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t word = 0;
  // So few bytes are never cut short.
  if (getrandom(&word, sizeof word, 0) != sizeof word) std::abort();
  return word;
}
