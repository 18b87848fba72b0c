// What the tests of exported hooks share: calls of each with arguments that show truncation, a
// missing sign and mixed-up order, against a stub library (tests/fakes/stub_calls.h). The program
// is linked to the hooks first and to the stub second, as if the hooks were preloaded.
#ifndef DEJA_TESTS_CONFORMANCE_HOOKS_CHECK_H_
#define DEJA_TESTS_CONFORMANCE_HOOKS_CHECK_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "api/table.h"
#include "tests/fakes/stub_calls.h"

namespace hooks_check {

inline constexpr int kErrno = 77;
inline constexpr uint64_t kResult = 5;
inline constexpr char kText[] = "text of the stub";

// The hooks never look behind a pointer.
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
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(-1000 - index) + static_cast<T>(0.1);
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
    EXPECT_EQ(stub_last.args[index], deja::api::ToWord(expected)) << "argument " << index;
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
    EXPECT_EQ(deja::api::ToWord(function(MakeArgument<Args>(static_cast<int>(kIndex))...)),
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

inline std::string Self() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? static_cast<size_t>(n) : 0);
}

// Runs one test of this program in a process of its own. The exit code, or -1.
inline int RunAgain(const char* filter, const char* variable, const char* value,
                    const char* without) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(variable, value, 1);
    if (without != nullptr) unsetenv(without);
    const std::string argument = std::string("--gtest_filter=") + filter;
    execl(Self().c_str(), "hooks_test", argument.c_str(), nullptr);
    _exit(99);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

// The lines that the engine wrote (tests/fakes/passthrough_engine.cc) while one test ran.
inline std::string CallsSeenBy(const char* filter) {
  const std::string calls = testing::TempDir() + "deja-calls-" + std::to_string(getpid());
  EXPECT_EQ(RunAgain(filter, "DEJA_TEST_CALLS", calls.c_str(), nullptr), 0);
  std::string seen(1 << 16, '\0');
  FILE* file = fopen(calls.c_str(), "r");
  EXPECT_NE(file, nullptr);
  if (file == nullptr) return {};
  seen.resize(fread(seen.data(), 1, seen.size(), file));
  fclose(file);
  unlink(calls.c_str());
  return seen;
}

inline int RunSwitchedOff(const char* filter) {
  return RunAgain(filter, "DEJA_TEST_OFF", "1", "DEJA_OUT");
}

// The hooks look at the environment once, before main.
inline int Main(int argc, char** argv) {
  if (getenv("DEJA_OUT") == nullptr && getenv("DEJA_TEST_OFF") == nullptr) {
    setenv("DEJA_OUT", "/nonexistent", 1);
    execv(Self().c_str(), argv);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace hooks_check

#endif  // DEJA_TESTS_CONFORMANCE_HOOKS_CHECK_H_
