#include "common/os/passed_descriptor.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace deja {

bool SendWithDescriptor(int socket, std::span<const std::byte> message, int descriptor) noexcept {
  iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr sent{};
  sent.msg_iov = &piece;
  sent.msg_iovlen = 1;
  if (descriptor >= 0) {
    sent.msg_control = control;
    sent.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &sent, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

ssize_t ReceiveWithDescriptor(int socket, std::span<std::byte> message, int flags,
                              int* descriptor) noexcept {
  iovec piece{message.data(), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr received{};
  received.msg_iov = &piece;
  received.msg_iovlen = 1;
  received.msg_control = control;
  received.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &received, flags | MSG_CMSG_CLOEXEC);
  if (got <= 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&received); header != nullptr;
       header = CMSG_NXTHDR(&received, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
  return got;
}

}  // namespace deja
