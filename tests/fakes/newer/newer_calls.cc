// Calls of an NCCL that is newer than Deja.
//
//     newer_lazy [--looked-up | --by-pointer | --never]
//
// Each rank sums over the ranks by a known call, by the new one, and by the known one again.
//   --looked-up    dlsym finds the new one
//   --by-pointer   a pointer in constant data leads to it
//   --never        it is there and not called
#include <dlfcn.h>

#include "app.h"
#include "tests/fakes/newer/newer_nccl.h"

namespace {

using Reduce = decltype(&ncclScaledReduceLater);
const volatile Reduce kByPointer = &ncclScaledReduceLater;

void PrintSum(const char* what, double sum) {
  uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  app::Print(what, bits);
}

void Known(ncclComm_t comm, double value) {
  APP_OK(ncclAllReduce(&value, &value, 1, ncclDouble, ncclSum, comm, nullptr));
  PrintSum("known", value);
}

void New(ncclComm_t comm, double value, const app::Arguments& arguments) {
  Reduce reduce = nullptr;
  if (arguments.Has("--looked-up")) {
    void* library = dlopen("libnccl.so.2", RTLD_NOW);
    reduce = reinterpret_cast<Reduce>(dlsym(library, "ncclScaledReduceLater"));
    APP_CHECK(reduce != nullptr);
    APP_CHECK(dlsym(library, "ncclNeverThere") == nullptr);
  } else if (arguments.Has("--by-pointer")) {
    reduce = kByPointer;
  }
  if (reduce != nullptr)
    APP_OK(reduce(&value, &value, 1, comm, nullptr, 1.5, 1, 2, 3, 2.0));
  else
    APP_OK(ncclScaledReduceLater(&value, &value, 1, comm, nullptr, 1.5, 1, 2, 3, 2.0));
  PrintSum("new", value);
}

}  // namespace

int main(int argc, char** argv) {
  const app::Arguments arguments = app::Parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a replay may end in the middle
  ncclComm_t comm = app::InitWorld();
  Known(comm, 0.25 + app::Rank());
  int edition = 7;
  if (!arguments.Has("--never")) {
    New(comm, 1.25 + app::Rank(), arguments);
    APP_OK(ncclGetEditionLater(&edition));
  }
  APP_CHECK(edition == 7);
  Known(comm, 2.25 + app::Rank());
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}
