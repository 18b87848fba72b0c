// A system call itself. `syscall` has a hook, and so has much of what would make the call: this is
// for what hooks rely on before they are ready.
//
// Any thread; async-signal-safe. The kernel's answer, where an error is its negative number; errno
// stays.
#ifndef DEJA_COMMON_RUNTIME_RAW_SYSCALL_H_
#define DEJA_COMMON_RUNTIME_RAW_SYSCALL_H_

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "how a system call is made on this machine"
#endif

namespace deja {

inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                       long f = 0) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#endif
}

}  // namespace deja

#endif  // DEJA_COMMON_RUNTIME_RAW_SYSCALL_H_
