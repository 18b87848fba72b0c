// Rank 0 has a thread in an all-reduce that no other rank enters, when the process ends. It waits
// meanwhile for rank 1, which takes its time.
//
//     nccl_patience
//
// 2 ranks.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "app.h"

int main() {
  constexpr auto kTime = std::chrono::seconds(7);
  ncclComm_t world = app::InitWorld();
  ncclComm_t side = nullptr;
  APP_OK(ncclCommSplit(world, 0, app::Rank(), &side, nullptr));
  uint64_t value = static_cast<uint64_t>(app::Rank()) + 1;
  if (app::Rank() == 0) {
    std::thread([side] {
      uint64_t mine = 0;
      ncclAllReduce(&mine, &mine, 1, ncclUint64, ncclSum, side, nullptr);
    }).detach();
  } else {
    std::this_thread::sleep_for(kTime);
  }
  APP_OK(ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, world, nullptr));
  app::Print("sum", value);
  std::fflush(stdout);
  _exit(0);
}
