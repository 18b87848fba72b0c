// Memory and its registration, windows, suspending, statistics, parameters.
#include "app.h"

namespace {

uint64_t Memory(ncclComm_t comm, uint64_t seed) {
  constexpr size_t kCount = 10000;
  void* block = nullptr;
  APP_OK(ncclMemAlloc(&block, kCount * 4));
  APP_CHECK(block != nullptr && reinterpret_cast<uintptr_t>(block) % 4096 == 0);
  void* handle = nullptr;
  APP_OK(ncclCommRegister(comm, block, kCount * 4, &handle));
  APP_CHECK(handle != nullptr);
  auto inputs = app::Inputs(seed, app::World(), 1, ncclFloat32, kCount);
  std::memcpy(block, inputs[static_cast<size_t>(app::Rank())].data(), kCount * 4);
  APP_OK(ncclAllReduce(block, block, kCount, ncclFloat32, ncclSum, comm, nullptr));
  auto expected = app::ReferenceAllReduce(ncclFloat32, app::BuiltIn(ncclSum), inputs, kCount);
  APP_CHECK(std::memcmp(block, expected.data(), expected.size()) == 0);
  APP_OK(ncclCommDeregister(comm, handle));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommDeregister(comm, handle));
  APP_OK(ncclMemFree(block));
  APP_OK(ncclMemFree(nullptr));
  int on_stack = 0;
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclMemFree(&on_stack));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclMemAlloc(nullptr, 1));
  return app::Hash(expected);
}

void Windows(ncclComm_t comm) {
  void* block = nullptr;
  APP_OK(ncclMemAlloc(&block, 8192));
  ncclWindow_t window = nullptr;
  APP_OK(ncclCommWindowRegister(comm, block, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
  APP_CHECK(window != nullptr);
  void* pointer = nullptr;
  APP_OK(ncclWinGetUserPtr(comm, window, &pointer));
  APP_CHECK(pointer == block);
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclWinGetUserPtr(comm, nullptr, &pointer));
  APP_OK(ncclCommWindowDeregister(comm, window));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommWindowDeregister(comm, window));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommWindowRegister(comm, block, 8192, &window, 0x100));
  APP_OK(ncclMemFree(block));
}

// Ranks of this library cannot reach into each other's memory: refused, with a reason.
void OneSided(ncclComm_t comm) {
  float x = 1;
  ncclWaitSignalDesc_t wait = {1, 0, 0, 0};
  APP_EXPECT_RESULT(ncclInvalidUsage,
                    ncclPutSignal(&x, 1, ncclFloat, 0, nullptr, 0, 0, 0, 0, comm, nullptr));
  APP_CHECK(std::strstr(ncclGetLastError(comm), "one-sided") != nullptr);
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclSignal(0, 0, 0, 0, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclWaitSignal(1, &wait, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclSignal(0, 0, 0, 0, nullptr, nullptr));
}

void Suspending(ncclComm_t comm) {
  uint64_t value = 7;
  APP_OK(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value));
  APP_CHECK(value == 0);
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclCommSuspend(comm, 0x80));
  APP_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
  APP_OK(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value));
  APP_CHECK(value == 1);
  float x = 1;
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr));
  APP_OK(ncclCommResume(comm));
  APP_EXPECT_RESULT(ncclInvalidUsage, ncclCommResume(comm));
  APP_OK(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr));
  APP_CHECK(x == static_cast<float>(app::World()));
  for (auto stat : {ncclStatGpuMemSuspend, ncclStatGpuMemPersist, ncclStatGpuMemTotal})
    APP_OK(ncclCommMemStats(comm, stat, &value));
  APP_EXPECT_RESULT(ncclInvalidArgument,
                    ncclCommMemStats(comm, static_cast<ncclCommMemStat_t>(9), &value));
}

void Parameters() {
  const char** keys = nullptr;
  int count = 0;
  APP_OK(ncclParamGetAllParameterKeys(&keys, &count));
  APP_CHECK(count > 0);
  for (int i = 0; i < count; ++i) {
    ncclParamHandle_t handle = nullptr;
    APP_OK(ncclParamBind(&handle, keys[i]));
    const char* text = nullptr;
    APP_OK(ncclParamGetStr(handle, &text));
    std::string by_handle = text;
    int length = 0;
    APP_OK(ncclParamGetParameter(keys[i], &text, &length));
    APP_CHECK(by_handle == text && by_handle.size() == static_cast<size_t>(length));
    char raw[4096];
    APP_OK(ncclParamGet(handle, raw, sizeof raw, &length));
    APP_CHECK(length > 0);
    APP_EXPECT_RESULT(ncclInvalidArgument, ncclParamGet(handle, raw, 0, &length));
  }
  setenv("NCCL_SOCKET_RETRY_CNT", "200", 1);
  ncclParamHandle_t handle = nullptr;
  APP_OK(ncclParamBind(&handle, "NCCL_SOCKET_RETRY_CNT"));
  int8_t i8 = 0;
  int16_t i16 = 0;
  int32_t i32 = 0;
  int64_t i64 = 0;
  uint8_t u8 = 0;
  uint16_t u16 = 0;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclParamGetI8(handle, &i8));  // 200 does not fit
  APP_OK(ncclParamGetI16(handle, &i16));
  APP_OK(ncclParamGetI32(handle, &i32));
  APP_OK(ncclParamGetI64(handle, &i64));
  APP_OK(ncclParamGetU8(handle, &u8));
  APP_OK(ncclParamGetU16(handle, &u16));
  APP_OK(ncclParamGetU32(handle, &u32));
  APP_OK(ncclParamGetU64(handle, &u64));
  APP_CHECK(i8 == 0 && i16 == 200 && i32 == 200 && i64 == 200 && u8 == 200 && u16 == 200 &&
            u32 == 200 && u64 == 200);
  unsetenv("NCCL_SOCKET_RETRY_CNT");
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclParamBind(&handle, "NCCL_NO_SUCH_THING"));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclParamBind(nullptr, "NCCL_DEBUG"));
  ncclParamDumpAll();
  ncclResetDebugInit();
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  app::Print("memory", Memory(comm, arguments.seed));
  Windows(comm);
  OneSided(comm);
  Suspending(comm);
  Parameters();
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}
