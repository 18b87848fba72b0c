#include "api/libc_table.h"

#include "api/table.h"
#include "api/table_lookup.h"

namespace deja::preload {
namespace {

constexpr ApiInfo kTable[] = {
#define DEJA_FN(id, result, name, since, klass, ...) \
  {kLibcFamily + (id), #name, since, ApiClass::k##klass, ReturnKindOf(#result), 0, nullptr},
#include "api/libc.def"
#undef DEJA_FN
};

static_assert(TableIsSound(kTable, kLibcFamily));

}  // namespace

std::span<const ApiInfo> LibcTable() {
  return kTable;
}

const ApiInfo* FindLibc(uint32_t id) {
  return RowOf(kTable, kLibcFamily, id);
}

const ApiInfo* FindLibc(std::string_view name) {
  return RowNamed(kTable, name);
}

InputKind InputKindOf(uint32_t id) {
  if (id >= kMpiFamily) return InputKind::kMpi;
  switch (static_cast<LibcApi>(id)) {
    case LibcApi::kclock_gettime:
    case LibcApi::kgettimeofday:
    case LibcApi::ktime:
    case LibcApi::ktimespec_get:
    case LibcApi::ktimes:
    case LibcApi::kgetrusage:
      return InputKind::kClock;
    case LibcApi::kgetpid:
    case LibcApi::kgetppid:
    case LibcApi::kgettid:
    case LibcApi::kgethostname:
    case LibcApi::kuname:
    case LibcApi::ksysconf:
    case LibcApi::kget_nprocs:
    case LibcApi::kget_nprocs_conf:
    case LibcApi::ksched_getaffinity:
    case LibcApi::kpthread_getaffinity_np:
    case LibcApi::kgetsockopt:
    case LibcApi::kgetaddrinfo:
    case LibcApi::kgetnameinfo:
    case LibcApi::kgethostbyname:
    case LibcApi::kgethostbyname2:
    case LibcApi::kgethostbyaddr:
    case LibcApi::kgethostbyname_r:
    case LibcApi::kgethostbyname2_r:
    case LibcApi::kgethostbyaddr_r:
    case LibcApi::ksched_setaffinity:
    case LibcApi::kpthread_setaffinity_np:
    case LibcApi::kpthread_attr_setaffinity_np:
    case LibcApi::kgetuid:
    case LibcApi::kgeteuid:
    case LibcApi::kgetgid:
    case LibcApi::kgetegid:
    case LibcApi::kgetgroups:
    case LibcApi::kgetlogin:
    case LibcApi::kgetlogin_r:
    case LibcApi::kgetpwuid:
    case LibcApi::kgetpwnam:
    case LibcApi::kgethostid:
    case LibcApi::kgetdomainname:
    case LibcApi::kget_phys_pages:
    case LibcApi::kgetauxval:
      return InputKind::kIdentity;
    case LibcApi::kcreat:
      return InputKind::kCreated;
    case LibcApi::kopen:
    case LibcApi::kopendir:
    case LibcApi::kaccess:
      return InputKind::kMachineFile;
    case LibcApi::ksysinfo:
    case LibcApi::kget_avphys_pages:
    case LibcApi::kgetloadavg:
    case LibcApi::kgetrlimit:
    case LibcApi::kgetrlimit64:
    case LibcApi::kisatty:
    case LibcApi::ksem_getvalue:
      return InputKind::kMeasure;
    case LibcApi::klseek:
      return InputKind::kPosition;
    case LibcApi::ksem_wait:
    case LibcApi::kpoll:
    case LibcApi::keventfd:
    case LibcApi::kpipe:
    case LibcApi::ksocketpair:
      return InputKind::kMeeting;
    default:
      return InputKind::kEntropy;
  }
}

}  // namespace deja::preload
