// A client whose forked child goes on with its connection, and whose first call of all is one on
// it. Nothing but the fork itself has told a library that this is another process.
//
// usage: connection_forked_client send|read|copy|close PORT
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

unsigned ReadToEnd(int fd) {
  unsigned sum = 0;
  char bytes[1000];
  for (ssize_t n = 0; (n = read(fd, bytes, sizeof bytes)) > 0;)
    for (ssize_t i = 0; i < n; ++i) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}

int Connected(const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(strtoul(port, nullptr, 10)));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

// The child's part, by its first call. It says what it has received by its end.
[[noreturn]] void Child(const char* way, int fd) {
  if (std::strcmp(way, "copy") == 0) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    close(fd);
    fd = copy;
  } else if (std::strcmp(way, "close") == 0) {
    close(fd);
    _exit(1);
  }
  if (std::strcmp(way, "read") != 0) send(fd, "bye\n", 4, 0);
  _exit(static_cast<int>(ReadToEnd(fd) % 200));
}

}  // namespace

int main(int, char** argv) {
  const char* way = argv[1];
  const int fd = Connected(argv[2]);
  char first[3];
  if (fd < 0 || send(fd, "give\n", 5, 0) != 5 || recv(fd, first, sizeof first, MSG_WAITALL) != 3)
    return 1;
  printf("%d %d %d\n", first[0], first[1], first[2]);
  fflush(stdout);
  // A process that only reads needs another one to have asked for the end.
  if (std::strcmp(way, "read") == 0) send(fd, "bye\n", 4, 0);
  const pid_t child = fork();
  if (child == 0) Child(way, fd);
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", status);
  if (std::strcmp(way, "close") == 0) {
    send(fd, "bye\n", 4, 0);
    printf("parent %u\n", ReadToEnd(fd));
  }
  return 0;
}
