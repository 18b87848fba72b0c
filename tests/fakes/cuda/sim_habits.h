// What a real driver does with the C library while it serves a program, and does differently each
// time: how many threads it makes, how often it looks at a clock while it waits, what is in its
// cache of translated kernels. None of it is the program's business.
#ifndef DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_
#define DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_

namespace cusim {

// Of cuInit: threads of its own, entropy, its devices' and the machine's files, a socket that is
// named after the process. False: it was told something that is not so, and does not work.
bool StartHabits();
// Of a call that waits: it spins on a clock.
void WaitingHabits();
// Of a call that translates kernels: it looks into CUDA_CACHE_PATH, and leaves something there.
void TranslatingHabits();

}  // namespace cusim

#endif  // DEJA_TESTS_FAKES_CUDA_SIM_HABITS_H_
