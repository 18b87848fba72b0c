// Talks to several connections of one peer at once, with epoll (edge-triggered, and registered
// before they are connected) and sockets that do not block. Prints what came in, in the order in
// which it came. usage: connection_epoll_client PORT [WORD]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kConnections = 3;

uint64_t Mix(uint64_t hash, const unsigned char* data, ssize_t size) {
  for (ssize_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * 1099511628211u;
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(atoi(argv[1])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  int fds[kConnections];
  uint64_t hashes[kConnections] = {};
  for (int i = 0; i < kConnections; ++i) {
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u32 = static_cast<uint32_t>(i);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
    const int rc = connect(fds[i], reinterpret_cast<sockaddr*>(&address), sizeof address);
    printf("connect %d %s\n", rc, rc < 0 && errno == EINPROGRESS ? "goes on" : "is done");
    const int one = 1;
    setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  bool asked[kConnections] = {};
  for (int open_now = kConnections; open_now > 0;) {
    epoll_event events[8];
    const int n = epoll_wait(epoll, events, 8, -1);
    for (int e = 0; e < n; ++e) {
      const uint32_t i = events[e].data.u32;
      if (fds[i] < 0) continue;
      if ((events[e].events & EPOLLOUT) != 0 && !asked[i]) {
        sockaddr_in peer;
        socklen_t size = sizeof peer;
        if (getpeername(fds[i], reinterpret_cast<sockaddr*>(&peer), &size) != 0)
          continue;  // not yet
        asked[i] = true;
        char line[64];
        const int length =
            snprintf(line, sizeof line, "%s %u\nbye\n", argc > 2 ? argv[2] : "give", i);
        if (send(fds[i], line, static_cast<size_t>(length), MSG_NOSIGNAL) != length) return 3;
      }
      for (;;) {
        unsigned char buffer[3000];
        const ssize_t got = recv(fds[i], buffer, sizeof buffer, 0);
        if (got < 0 && errno == EAGAIN) break;
        printf("%u: %zd\n", i, got);
        if (got > 0) {
          hashes[i] = Mix(hashes[i], buffer, got);
          continue;
        }
        close(fds[i]);
        fds[i] = -1;
        --open_now;
        break;
      }
    }
  }
  for (uint64_t hash : hashes) printf("%016llx\n", static_cast<unsigned long long>(hash));
}
