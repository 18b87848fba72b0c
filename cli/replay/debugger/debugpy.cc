#include "cli/replay/debugger/debugpy.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "cli/own_variables.h"
#include "cli/replay/debugger/python_debugging.h"
#include "common/os/own_descriptor.h"

namespace deja::cli {
namespace {

// The MISSING of python/deja/interpreter/editor.py.
constexpr int kMissing = 131;

}  // namespace

Result<uint16_t> UseDebugpy(uint16_t port, ReplayTarget& target) {
  DEJA_RETURN_IF_ERROR(MarkForPython("--debugpy", "/with-debugpy", target));
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;
  if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(made, name, size) != 0 || listen(made, 1) != 0 || getsockname(made, name, &size) != 0) {
    const int error = errno;
    if (made >= 0) close(made);
    return FailErrno(fmt::format("replaying: rank {}: --debugpy {}", target.rank, port), error);
  }
  target.listener = MoveUp(made);
  target.environment.push_back(Entry(env::kDebugpy, static_cast<uint64_t>(target.listener)));
  return ntohs(address.sin_port);
}

bool LacksDebugpy(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kMissing;
}

}  // namespace deja::cli
