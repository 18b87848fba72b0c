// Descriptors that go to another process over a Unix socket, with a message.
//
// One thread each side; no allocation, async-signal-safe.
#ifndef DEJA_COMMON_OS_PASSED_DESCRIPTOR_H_
#define DEJA_COMMON_OS_PASSED_DESCRIPTOR_H_

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace deja {

// Sends `message`, and a copy of `descriptor` unless it is negative. False, with errno: not all of
// it was sent.
bool SendWithDescriptor(int socket, std::span<const std::byte> message, int descriptor) noexcept;

// Receives into `message`. Returns the bytes received, 0 when the other side is gone, -1 with
// errno. `descriptor` becomes the one that came along, close-on-exec, which the caller owns; else
// it stays. `flags`: recvmsg's.
ssize_t ReceiveWithDescriptor(int socket, std::span<std::byte> message, int flags,
                              int* descriptor) noexcept;

}  // namespace deja

#endif  // DEJA_COMMON_OS_PASSED_DESCRIPTOR_H_
