// For the programs that call functions of the C library by names that programs rarely use. They
// print what each returns. Lines that begin with "~" differ from run to run; a replay prints them
// as recorded.
#ifndef DEJA_TESTS_E2E_APPS_LIBC_EVERY_CALL_H_
#define DEJA_TESTS_E2E_APPS_LIBC_EVERY_CALL_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

inline void Show(const char* name, long long value) {
  std::printf("%s %lld\n", name, value);
}

inline void Show(const char* name, const std::string& text) {
  std::printf("%s %s\n", name, text.c_str());
}

inline void ShowOfThisRun(const char* name, const std::string& text) {
  std::printf("~ %s %s\n", name, text.c_str());
}

// A function that headers no longer declare, or declare only for fortified programs.
template <typename Function>
Function* Old(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s is not in this C library\n", name);
    std::exit(77);
  }
  return reinterpret_cast<Function*>(found);
}

// Whether this C library lets programs look the function up at all; some are for old binaries only.
inline bool Has(const char* name) {
  return dlsym(RTLD_DEFAULT, name) != nullptr;
}

#endif  // DEJA_TESTS_E2E_APPS_LIBC_EVERY_CALL_H_
