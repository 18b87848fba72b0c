// Wrong arguments: what is returned, that a message says why, and that the communicator goes on.
#include "app.h"

namespace {

void Expect(ncclResult_t result, ncclResult_t expected, const char* message, int line) {
  if (result == expected && std::strstr(ncclGetLastError(nullptr), message) != nullptr) return;
  std::fprintf(stderr, "rank %d: line %d: got %d (%s), wanted %d and '%s'\n", app::Rank(), line,
               result, ncclGetLastError(nullptr), expected, message);
  std::_Exit(1);
}
#define EXPECT(expected, message, call) Expect(call, expected, message, __LINE__)

void Calls(ncclComm_t comm) {
  float x[4] = {1, 2, 3, 4};
  float y[64] = {};
  auto bad_type = static_cast<ncclDataType_t>(ncclNumTypes);
  auto bad_op = static_cast<ncclRedOp_t>(1000);
  auto worse_op = static_cast<ncclRedOp_t>(-1);
  int n = app::World();
  EXPECT(ncclInvalidArgument, "comm", ncclAllReduce(x, y, 4, ncclFloat, ncclSum, nullptr, nullptr));
  EXPECT(ncclInvalidArgument, "no communicator",
         ncclAllReduce(x, y, 4, ncclFloat, ncclSum, reinterpret_cast<ncclComm_t>(x), nullptr));
  EXPECT(ncclInvalidArgument, "sendbuff",
         ncclAllReduce(nullptr, y, 4, ncclFloat, ncclSum, comm, nullptr));
  EXPECT(ncclInvalidArgument, "recvbuff",
         ncclAllReduce(x, nullptr, 4, ncclFloat, ncclSum, comm, nullptr));
  EXPECT(ncclInvalidArgument, "type", ncclAllReduce(x, y, 4, bad_type, ncclSum, comm, nullptr));
  EXPECT(ncclInvalidArgument, "type",
         ncclAllReduce(x, y, 4, static_cast<ncclDataType_t>(-1), ncclSum, comm, nullptr));
  EXPECT(ncclInvalidArgument, "reduction operation",
         ncclAllReduce(x, y, 4, ncclFloat, bad_op, comm, nullptr));
  EXPECT(ncclInvalidArgument, "reduction operation",
         ncclReduceScatter(x, y, 1, ncclFloat, worse_op, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclBroadcast(x, y, 4, ncclFloat, n, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclReduce(x, y, 4, ncclFloat, ncclSum, -1, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclBcast(x, 4, ncclFloat, n, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclGather(x, y, 1, ncclFloat, n, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclScatter(x, y, 1, ncclFloat, -2, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclSend(x, 4, ncclFloat, n, comm, nullptr));
  EXPECT(ncclInvalidArgument, "root", ncclRecv(y, 4, ncclFloat, -1, comm, nullptr));
  EXPECT(ncclInvalidArgument, "buff", ncclSend(nullptr, 4, ncclFloat, 0, comm, nullptr));
  EXPECT(ncclInvalidArgument, "type", ncclRecv(y, 4, bad_type, 0, comm, nullptr));
  EXPECT(ncclInvalidArgument, "sendbuff", ncclAlltoAll(nullptr, y, 1, ncclFloat, comm, nullptr));
  EXPECT(ncclInvalidArgument, "recvbuff", ncclAllGather(x, nullptr, 1, ncclFloat, comm, nullptr));
  const ncclCollConfig_t made_by_hand{};
  EXPECT(ncclInvalidArgument, "NCCL_COLLCONFIG_INITIALIZER",
         ncclAllReduceConfig(x, y, 4, ncclFloat, ncclSum, comm, nullptr, &made_by_hand));
  ncclCollConfig_t fewest_above_most = NCCL_COLLCONFIG_INITIALIZER;
  fewest_above_most.minCTAs = 4;
  fewest_above_most.maxCTAs = 2;
  EXPECT(ncclInvalidArgument, "minCTAs",
         ncclAllReduceConfig(x, y, 4, ncclFloat, ncclSum, comm, nullptr, &fewest_above_most));
  EXPECT(ncclInvalidArgument, "too large",
         ncclAllReduce(x, y, SIZE_MAX / 2, ncclFloat, ncclSum, comm, nullptr));
}

void Queries(ncclComm_t comm) {
  int value = 0;
  ncclResult_t state;
  EXPECT(ncclInvalidArgument, "comm", ncclCommCount(nullptr, &value));
  EXPECT(ncclInvalidArgument, "count", ncclCommCount(comm, nullptr));
  EXPECT(ncclInvalidArgument, "rank", ncclCommUserRank(comm, nullptr));
  EXPECT(ncclInvalidArgument, "devid", ncclCommCuDevice(comm, nullptr));
  EXPECT(ncclInvalidArgument, "asyncError", ncclCommGetAsyncError(comm, nullptr));
  EXPECT(ncclInvalidArgument, "comm", ncclCommGetAsyncError(nullptr, &state));
  EXPECT(ncclInvalidArgument, "argument is NULL", ncclGetUniqueId(nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclGetVersion(nullptr));
  APP_OK(ncclGetVersion(&value));
  APP_CHECK(value >= 21700);
  for (int code = 0; code < ncclNumResults; ++code)
    APP_CHECK(std::strlen(ncclGetErrorString(static_cast<ncclResult_t>(code))) > 0);
  APP_CHECK(std::strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0);
  APP_CHECK(ncclGetErrorString(static_cast<ncclResult_t>(77)) != nullptr);
}

void Configurations() {
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  EXPECT(ncclInvalidArgument, "rank", ncclCommInitRank(&comm, 2, id, 2));
  EXPECT(ncclInvalidArgument, "rank", ncclCommInitRank(&comm, 2, id, -1));
  EXPECT(ncclInvalidArgument, "rank", ncclCommInitRank(&comm, 0, id, 0));
  EXPECT(ncclInvalidArgument, "comm", ncclCommInitRank(nullptr, 1, id, 0));
  ncclConfig_t config = {};
  EXPECT(ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER",
         ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 2;
  EXPECT(ncclInvalidArgument, "blocking", ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  config = NCCL_CONFIG_INITIALIZER;
  config.minCTAs = 8;
  config.maxCTAs = 4;
  EXPECT(ncclInvalidArgument, "8/4", ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  APP_CHECK(comm == nullptr);
  // An older program's configuration is shorter; what lies behind it is not looked at.
  struct {
    ncclConfig_t config;
  } old;
  std::memset(&old, 0xee, sizeof old);
  ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  std::memcpy(&old, &fresh, 48);
  old.config.size = 48;
  old.config.version = NCCL_VERSION(2, 18, 1);
  id.internal[100] = static_cast<char>(1 + app::Rank());
  APP_OK(ncclCommInitRankConfig(&comm, 1, id, 0, &old.config));
  APP_OK(ncclCommDestroy(comm));
}

// A call that fails makes its whole group fail, and nothing of it happens.
void Groups(ncclComm_t comm) {
  float x = 1;
  APP_OK(ncclGroupStart());
  APP_OK(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclBroadcast(&x, &x, 1, ncclFloat, 99, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclGroupEnd());
  APP_CHECK(x == 1);
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclGroupEnd());
}

void Ended() {
  ncclComm_t comm = app::InitWorld();
  APP_OK(ncclCommFinalize(comm));
  float x = 1;
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommFinalize(comm));
  APP_OK(ncclCommDestroy(comm));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommDestroy(comm));
  APP_OK(ncclCommDestroy(nullptr));
  APP_OK(ncclCommFinalize(nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  Calls(comm);
  Queries(comm);
  Configurations();
  Groups(comm);
  // After all that the communicator works.
  uint64_t value = app::Numbers(arguments.seed, static_cast<uint64_t>(app::Rank()), 1).Next();
  APP_OK(ncclAllReduce(&value, &value, 1, ncclUint64, ncclSum, comm, nullptr));
  app::Print("sum", value);
  ncclResult_t state = ncclInternalError;
  APP_OK(ncclCommGetAsyncError(comm, &state));
  APP_CHECK(state == ncclSuccess);
  APP_OK(ncclCommDestroy(comm));
  Ended();
  return app::Finish();
}
