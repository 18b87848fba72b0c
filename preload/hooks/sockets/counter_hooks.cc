// eventfds. A read finds the sum of what other threads and processes have put there until then,
// which is an input of the program.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "preload/calls/meeting_calls.h"
#include "preload/hooks/descriptors/tracked.h"
#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(unsigned, int)> real_eventfd{"eventfd"};

// All of them: the kernel knows the rest.
class Counter final : public FdObject {
 public:
  constexpr Counter() : FdObject(Kind::kCounter) {}

  void OnRead(Transfer& transfer) override {
    Engine* engine = EngineForHook();
    const bool is_one = transfer.pieces.size() == 1 && transfer.pieces[0].iov_base != nullptr &&
                        transfer.pieces[0].iov_len >= sizeof(uint64_t);
    if (engine == nullptr || !is_one) return transfer.Real();
    CountCall call{.fd = transfer.fd};
    call.context = &transfer;
    call.real = [](CountCall& c, void* context) {
      auto& t = *static_cast<Transfer*>(context);
      t.Real();
      c.error = t.result < 0 ? errno : 0;
      if (t.result >= 0) std::memcpy(&c.value, t.pieces[0].iov_base, sizeof c.value);
    };
    const int saved_errno = errno;
    engine->meetings->OnCount(call);
    errno = call.error != 0 ? call.error : saved_errno;
    transfer.result = call.error != 0 ? -1 : static_cast<ssize_t>(sizeof call.value);
    if (call.error == 0) std::memcpy(transfer.pieces[0].iov_base, &call.value, sizeof call.value);
  }
};

constinit Counter g_counter;

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int eventfd(unsigned value, int flags) noexcept {
  const int fd = real_eventfd(value, flags);
  if (fd >= 0 && EngineForHook() != nullptr) FdTable::Set(fd, &g_counter);
  return fd;
}

DEJA_EXPORT int eventfd_read(int fd, eventfd_t* value) {
  return read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}
