/* What a stub library exports for the tests, whatever library it stands in for. One thread at a
 * time. */
#ifndef DEJA_TESTS_FAKES_STUB_CALLS_H_
#define DEJA_TESTS_FAKES_STUB_CALLS_H_

#include <cstdint>

inline constexpr int kStubBytes = 128;

struct stub_call {
  const char* name;
  uint32_t arg_count;
  uint64_t args[16];
  char bytes[kStubBytes]; /* the argument that is passed by value */
};

extern "C" {
extern stub_call stub_last;  /* the latest call */
extern uint64_t stub_calls;  /* how many there were */
extern uint64_t stub_result; /* what every function returns */
extern int stub_errno;       /* what every function leaves in errno */
}

#endif /* DEJA_TESTS_FAKES_STUB_CALLS_H_ */
