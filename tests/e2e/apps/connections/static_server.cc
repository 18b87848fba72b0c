// A server that no library can be loaded into, such as the services that programs of Go start
// beside a training job. It listens at the Unix socket argv[1], says something else each time, and
// ends.
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, argc > 1 ? argv[1] : "", sizeof name.sun_path - 1);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      listen(listener, 1) != 0)
    return 1;
  const int client = accept(listener, nullptr, nullptr);
  char asked[64];
  unsigned drawn = 0;
  if (read(client, asked, sizeof asked) <= 0 || getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
    return 2;
  dprintf(client, "%08x\n", drawn);
  return 0;
}
