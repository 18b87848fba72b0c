// __libc_start_main of a program that also runs with a glibc before 2.34 (cmake/Portable.cmake). An
// older one leaves a program's constructors to a function that the program passes, and newer
// linkers link none; newer ones run what is passed, or the constructors if it is null. Runs once,
// before main, on the main thread.

extern "C" {

using DejaMain = int (*)(int, char**, char**);
using DejaConstructor = void (*)(int, char**, char**);

// Both from the linker and the compiler's start files.
extern DejaConstructor __init_array_start[] __attribute__((visibility("hidden")));
extern DejaConstructor __init_array_end[] __attribute__((visibility("hidden")));
void _init();

int deja_old_start_main(DejaMain program, int argc, char** argv, DejaConstructor constructors,
                        void (*destructors)(), void (*loader_end)(), void* stack_end);
__asm__(".symver deja_old_start_main, __libc_start_main@GLIBC_2.2.5");

static void DejaRunConstructors(int argc, char** argv, char** environment) {
  _init();
  for (DejaConstructor* each = __init_array_start; each < __init_array_end; ++each)
    (*each)(argc, argv, environment);
}

// Destructors are run by the loader, in each version.
__attribute__((visibility("hidden"))) int __libc_start_main(DejaMain program, int argc, char** argv,
                                                            DejaConstructor, void (*)(),
                                                            void (*loader_end)(), void* stack_end) {
  return deja_old_start_main(program, argc, argv, DejaRunConstructors, nullptr, loader_end,
                             stack_end);
}

}  // extern "C"
