// What a real driver does with the C library while it serves a program, differently each time. It
// makes some threads, looks at a clock while it waits, and has a cache of translated kernels. None
// of it is the program's business.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_

namespace cusim {

// In cuInit: threads of its own, entropy, its devices' and the machine's files, a socket that is
// named after the process. False: an answer was wrong, and it does not work.
bool StartHabits();
// In a call that waits: it spins on a clock.
void WaitingHabits();
// In a call that translates kernels: it looks into CUDA_CACHE_PATH, and leaves something there.
void TranslatingHabits();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_
