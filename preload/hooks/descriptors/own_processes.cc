#include "preload/hooks/descriptors/own_processes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "common/process/proc_stat.h"
#include "common/runtime/errno_keeper.h"
#include "preload/engine/fd_table.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

// All of them: the kernel knows the rest.
class OwnProcess final : public FdObject {
 public:
  constexpr OwnProcess() : FdObject(Kind::kProcess) {}
};

constinit OwnProcess g_process;

}  // namespace

void NoteProcessDescriptor(int fd, int pid) {
  const ErrnoKeeper keep;
  const Guard guard;
  if (IsBelow(pid, static_cast<int>(syscall(SYS_getpid)))) FdTable::Set(fd, &g_process);
}

}  // namespace deja::preload
