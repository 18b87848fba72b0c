// Numbers for Deja's own descriptors, out of the program's way. Some programs count, close or
// expect low ones. A replay gives a program the numbers that it had.
//
// Any thread.
#ifndef DEJA_COMMON_OS_OWN_DESCRIPTOR_H_
#define DEJA_COMMON_OS_OWN_DESCRIPTOR_H_

namespace deja {

// `fd` under a high number, close-on-exec; `fd` itself where there is none left, or where it is
// negative.
int MoveUp(int fd);

}  // namespace deja

#endif  // DEJA_COMMON_OS_OWN_DESCRIPTOR_H_
