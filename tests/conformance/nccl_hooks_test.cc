// Every hook hands every argument to the real function as it is, and gives its result back as it
// is. The program is linked to the hooks first and to the stub NCCL second, as if the hooks were
// preloaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "preload/api/table.h"
#include "tests/fakes/stub_nccl.h"

namespace {

constexpr int kErrno = 77;
constexpr uint64_t kResult = 5;
const char kText[] = "text of the stub";

// Values that show truncation, a missing sign and mixed-up order. The hooks never look behind a
// pointer.
template <typename T>
T MakeArgument(int index) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(0x7f0102030405'0000ull + static_cast<unsigned>(index));
  } else if constexpr (std::is_class_v<T>) {
    T value;
    for (size_t i = 0; i < sizeof value; ++i)
      reinterpret_cast<char*>(&value)[i] = static_cast<char>(i * 7 + 3);
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(index % 4);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(-1000 - index);
  } else {
    return static_cast<T>(~0ull - static_cast<unsigned>(index));
  }
}

template <typename T>
void ExpectSame(int index) {
  T expected = MakeArgument<T>(index);
  if constexpr (std::is_class_v<T>) {
    EXPECT_EQ(std::memcmp(stub_last.bytes, &expected, sizeof expected), 0) << "argument " << index;
  } else {
    EXPECT_EQ(stub_last.args[index], deja::preload::ToWord(expected)) << "argument " << index;
  }
}

template <typename Result, typename... Args, size_t... kIndex>
void Check(const char* name, Result (*function)(Args...), std::index_sequence<kIndex...>) {
  SCOPED_TRACE(name);
  stub_errno = kErrno;
  stub_result = std::is_same_v<Result, const char*> ? reinterpret_cast<uint64_t>(kText) : kResult;
  uint64_t calls = stub_calls;
  errno = 0;
  if constexpr (std::is_void_v<Result>) {
    function(MakeArgument<Args>(static_cast<int>(kIndex))...);
  } else {
    EXPECT_EQ(deja::preload::ToWord(function(MakeArgument<Args>(static_cast<int>(kIndex))...)),
              stub_result);
  }
  EXPECT_EQ(errno, kErrno);
  EXPECT_EQ(stub_calls, calls + 1) << "the real function must be called once";
  EXPECT_STREQ(stub_last.name, name);
  EXPECT_EQ(stub_last.arg_count, sizeof...(Args));
  (ExpectSame<Args>(static_cast<int>(kIndex)), ...);
}

template <typename Result, typename... Args>
void CheckFunction(const char* name, Result (*function)(Args...)) {
  // Twice: the first call looks the real function up.
  Check(name, function, std::index_sequence_for<Args...>{});
  Check(name, function, std::index_sequence_for<Args...>{});
}

void CheckAll() {
#define DEJA_FN(id, result, name, since, klass, ...) CheckFunction(#name, &::name);
#include "preload/api/nccl.def"
#undef DEJA_FN
}

std::string Self() {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? static_cast<size_t>(n) : 0);
}

TEST(NcclHooksTest, ForwardEveryArgumentAndResult) {
  CheckAll();
}

TEST(NcclHooksTest, TellTheEngineAboutEachCallOnce) {
  std::string calls = testing::TempDir() + "deja-calls-" + std::to_string(getpid());
  pid_t child = fork();
  if (child == 0) {
    setenv("DEJA_TEST_CALLS", calls.c_str(), 1);
    execl(Self().c_str(), "nccl_hooks_test", "--gtest_filter=*ForwardEveryArgumentAndResult",
          nullptr);
    _exit(99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  std::string expected;
#define DEJA_FN(id, result, name, since, klass, ...) expected += #name "\n" #name "\n";
#include "preload/api/nccl.def"
#undef DEJA_FN
  FILE* file = fopen(calls.c_str(), "r");
  ASSERT_NE(file, nullptr);
  std::string seen(1 << 16, '\0');
  seen.resize(fread(seen.data(), 1, seen.size(), file));
  fclose(file);
  unlink(calls.c_str());
  EXPECT_EQ(seen, expected);
}

TEST(NcclHooksTest, ForwardEverythingWhenSwitchedOff) {
  pid_t child = fork();
  if (child == 0) {
    setenv("DEJA_TEST_OFF", "1", 1);
    unsetenv("DEJA_OUT");
    execl(Self().c_str(), "nccl_hooks_test", "--gtest_filter=*ForwardEveryArgumentAndResult",
          nullptr);
    _exit(99);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace

// The hooks look at the environment once, before main.
int main(int argc, char** argv) {
  if (getenv("DEJA_OUT") == nullptr && getenv("DEJA_TEST_OFF") == nullptr) {
    setenv("DEJA_OUT", "/nonexistent", 1);
    execv(Self().c_str(), argv);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
