// What glibc has since 2.32, for binaries that run with an older one (cmake/Portable.cmake): names
// of signals and errors, and a flag that libstdc++ reads. As an object, linked before the C
// library; hidden, so that a program's own library is not replaced. Any thread may call these; they
// neither allocate nor fail.
#include <iterator>

extern "C" {

// "This process has one thread": never said, so that libstdc++ counts references atomically.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

__attribute__((visibility("hidden"))) const char* sigabbrev_np(int signal) noexcept {
  static constexpr const char* kNames[] = {
      nullptr, "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
      "SEGV",  "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
      "TTOU",  "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  return signal > 0 && signal < static_cast<int>(std::size(kNames)) ? kNames[signal] : nullptr;
}

// The last version of the table that glibc exported for everybody; every later one keeps it for old
// programs, which name the version.
extern const char* const deja_old_errlist[];
__asm__(".symver deja_old_errlist, sys_errlist@GLIBC_2.12");

__attribute__((visibility("hidden"))) const char* strerrordesc_np(int error) noexcept {
  constexpr int kErrors = 135;  // in that version
  return error >= 0 && error < kErrors ? deja_old_errlist[error] : nullptr;
}

}  // extern "C"
