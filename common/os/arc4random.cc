// arc4random for programs and libraries that are carried to other machines with libstdc++ inside:
// the std::random_device of one that was built with glibc 2.36 calls it, and older ones do not have
// it, so nothing of that would load there (Ubuntu 22.04 has 2.35). As an object, linked before the
// C library; hidden, so that nobody else's is replaced.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() noexcept {
  uint32_t word = 0;
  // So few bytes are never cut short.
  if (getrandom(&word, sizeof word, 0) != sizeof word) std::abort();
  return word;
}
