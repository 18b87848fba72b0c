// Sockets, waits for descriptors and name resolution by every name that the C library has for them.
// Its argument is the port of a server on this machine that sends back what it gets.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "tests/e2e/apps/libc/every_call.h"

namespace {

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::exit(3);
  return fd;
}

std::string Text(const char* bytes, long long count) {
  return count < 0 ? "error" : std::string(bytes, static_cast<size_t>(count));
}

// Until the echo of `size` bytes is there, so that what follows reads all of it at once.
void AwaitEcho(int fd, size_t size) {
  char peeked[64];
  while (recv(fd, peeked, size, MSG_PEEK | MSG_WAITALL) < static_cast<ssize_t>(size)) {
  }
}

void Messages(int fd) {
  char b[16] = {};
  iovec out[2] = {{const_cast<char*>("one"), 3}, {const_cast<char*>("two"), 3}};
  mmsghdr messages[2] = {};
  messages[0].msg_hdr.msg_iov = &out[0];
  messages[0].msg_hdr.msg_iovlen = 1;
  messages[1].msg_hdr.msg_iov = &out[1];
  messages[1].msg_hdr.msg_iovlen = 1;
  Show("sendmmsg", sendmmsg(fd, messages, 2, 0));
  AwaitEcho(fd, 6);
  iovec in[1] = {{b, 6}};
  mmsghdr got[1] = {};
  got[0].msg_hdr.msg_iov = in;
  got[0].msg_hdr.msg_iovlen = 1;
  Show("recvmmsg", recvmmsg(fd, got, 1, 0, nullptr));
  Show("recvmmsg", Text(b, got[0].msg_len));
  Show("send", send(fd, "three", 5, 0));
  AwaitEcho(fd, 5);
  Show("__recv_chk",
       Text(b, Old<ssize_t(int, void*, size_t, size_t, int)>("__recv_chk")(fd, b, 5, sizeof b, 0)));
  Show("send", send(fd, "four", 4, 0));
  AwaitEcho(fd, 4);
  Show("__recvfrom_chk",
       Text(b, Old<ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)>(
                   "__recvfrom_chk")(fd, b, 4, sizeof b, 0, nullptr, nullptr)));
}

// recvmmsg looks at the time between messages only, so the second wait needs a datagram to come to
// an end.
void TimedReceive() {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  sendto(fd, "x", 1, 0, reinterpret_cast<sockaddr*>(&address), size);
  char b[2][4] = {};
  iovec in[2] = {{b[0], 4}, {b[1], 4}};
  mmsghdr got[2] = {};
  for (int i = 0; i < 2; ++i) {
    got[i].msg_hdr.msg_iov = &in[i];
    got[i].msg_hdr.msg_iovlen = 1;
  }
  timespec none = {0, 1};
  Show("recvmmsg with a timeout", recvmmsg(fd, got, 2, 0, &none));
  close(fd);
}

void Accepts() {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  // An abstract name of this process.
  sockaddr address{};
  address.sa_family = AF_UNIX;
  std::snprintf(address.sa_data + 1, sizeof address.sa_data - 1, "d%d", getpid() % 100000);
  bind(listener, &address, sizeof address);
  listen(listener, 1);
  const int client = socket(AF_UNIX, SOCK_STREAM, 0);
  Show("connect", connect(client, &address, sizeof address));
  const int server = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  char b[4];
  Show("accept4",
       write(client, "ping", 4) == 4 && read(server, b, 4) == 4 ? std::string(b, 4) : "error");
  close(server);
  close(client);
  close(listener);
}

void Waits() {
  int pipes[2];
  if (pipe(pipes) != 0 || write(pipes[1], "x", 1) != 1) std::exit(4);
  pollfd one{pipes[0], POLLIN, 0};
  Show("__poll_chk",
       Old<int(pollfd*, nfds_t, int, size_t)>("__poll_chk")(&one, 1, 1000, sizeof one));
  const timespec second{1, 0};
  Show("ppoll", ppoll(&one, 1, &second, nullptr));
  const int set = epoll_create(1);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = 7;
  Show("epoll_create", epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event));
  Show("epoll_pwait", epoll_pwait(set, &event, 1, 1000, nullptr));
  Show("epoll_pwait2", epoll_pwait2(set, &event, 1, &second, nullptr));
  close(set);
  close(pipes[0]);
  close(pipes[1]);
}

void Names() {
  hostent* host = gethostbyname2("localhost", AF_INET);
  Show("gethostbyname2", host == nullptr ? "error" : host->h_name);
  const in_addr loopback{htonl(INADDR_LOOPBACK)};
  host = gethostbyaddr(&loopback, sizeof loopback, AF_INET);
  Show("gethostbyaddr", host == nullptr ? "error" : host->h_name);
  hostent entry{};
  char buffer[2048];
  int error = 0;
  host = nullptr;
  Show("gethostbyname_r",
       gethostbyname_r("localhost", &entry, buffer, sizeof buffer, &host, &error));
  Show("gethostbyname2_r",
       gethostbyname2_r("localhost", AF_INET, &entry, buffer, sizeof buffer, &host, &error));
  Show("gethostbyaddr_r", gethostbyaddr_r(&loopback, sizeof loopback, AF_INET, &entry, buffer,
                                          sizeof buffer, &host, &error));
  Show("gethostbyaddr_r", host == nullptr ? "error" : host->h_name);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fd = Connect(std::atoi(argv[1]));
  Messages(fd);
  close(fd);
  TimedReceive();
  Accepts();
  Waits();
  Names();
  return 0;
}
