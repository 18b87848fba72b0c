// What the leak check of AddressSanitizer shall pass over: what lives as long as its process by
// design. Once in a program; nothing in builds without that check.
#ifndef DEJA_TESTS_SUPPORT_EXPECTED_LEAKS_H_
#define DEJA_TESTS_SUPPORT_EXPECTED_LEAKS_H_

#if defined(__SANITIZE_ADDRESS__)
#define DEJA_CHECKS_LEAKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DEJA_CHECKS_LEAKS 1
#endif
#endif

// `patterns`: "leak:TEXT\n" for each text that a frame of the allocation's stack has.
#if defined(DEJA_CHECKS_LEAKS)
#define DEJA_EXPECTED_LEAKS(patterns)                    \
  extern "C" const char* __lsan_default_suppressions() { \
    return patterns;                                     \
  }
#else
#define DEJA_EXPECTED_LEAKS(patterns)
#endif

#endif  // DEJA_TESTS_SUPPORT_EXPECTED_LEAKS_H_
