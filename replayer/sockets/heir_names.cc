#include "replayer/sockets/heir_names.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "common/runtime/errno_keeper.h"
#include "preload/meet/connection_names.h"
#include "preload/symbols/real_sockets.h"

namespace deja::replayer {

namespace real = preload::real;

namespace {

constexpr size_t kNameStart = offsetof(sockaddr_un, sun_path);
// The process and a number follow, since two sockets cannot have one name.
constexpr char kFormat[] = "deja-heir-%016" PRIx64 "-";
constexpr size_t kMostPrefix = 40;

int WritePrefix(char (&prefix)[kMostPrefix], uint64_t key) {
  return snprintf(prefix, sizeof prefix, kFormat, key);
}

}  // namespace

uint64_t HeirKey(std::string_view scratch, std::string_view local, std::string_view remote) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::string_view part :
       {scratch, preload::WithoutEndingZeros(local), preload::WithoutEndingZeros(remote)}) {
    const uint64_t size = part.size();
    XXH3_64bits_update(&state, &size, sizeof size);
    XXH3_64bits_update(&state, part.data(), part.size());
  }
  return XXH3_64bits_digest(&state);
}

void NameForHeirs(int fd, uint64_t key) {
  static std::atomic<uint32_t> made{0};
  const ErrnoKeeper keep;
  char prefix[kMostPrefix];
  WritePrefix(prefix, key);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s%d-%u", prefix,
                            static_cast<int>(syscall(SYS_getpid)), made.fetch_add(1));
  real::Bind(fd, reinterpret_cast<const sockaddr*>(&name),
             static_cast<socklen_t>(kNameStart + 1 + static_cast<size_t>(size)));
}

bool IsNamedForHeirs(int fd, uint64_t key) {
  const ErrnoKeeper keep;
  sockaddr_un name{};
  socklen_t size = sizeof name;
  char prefix[kMostPrefix];
  const auto prefix_size = static_cast<size_t>(WritePrefix(prefix, key));
  return real::GetName(fd, false, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
         name.sun_family == AF_UNIX && size > kNameStart + 1 + prefix_size &&
         name.sun_path[0] == '\0' && std::memcmp(name.sun_path + 1, prefix, prefix_size) == 0;
}

}  // namespace deja::replayer
