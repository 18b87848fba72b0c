#include "preload/process/filter_rules.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstddef>
#include <vector>

namespace deja::preload {
namespace {

using Filter = std::vector<sock_filter>;

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kFirst = offsetof(seccomp_data, args);

sock_filter Step(uint16_t code, uint32_t k) {
  return BPF_STMT(code, k);
}

sock_filter Jump(uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
  return BPF_JUMP(code, k, yes, no);
}

uint32_t Answer(const Filter& filter, int number, uint64_t first = 0) {
  seccomp_data call{};
  call.nr = number;
  call.arch = AUDIT_ARCH_X86_64;
  call.args[0] = first;
  return RunFilter(filter, call);
}

Filter AllBut(int number, uint32_t action) {
  return {Step(BPF_LD | BPF_W | BPF_ABS, kNumber),
          Jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
          Step(BPF_RET | BPF_K, action), Step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

TEST(FilterRules, ACallIsAnsweredByItsNumber) {
  const Filter filter = AllBut(SYS_ptrace, SECCOMP_RET_ERRNO | 1);
  EXPECT_EQ(Answer(filter, SYS_ptrace), SECCOMP_RET_ERRNO | 1u);
  EXPECT_EQ(Answer(filter, SYS_read), SECCOMP_RET_ALLOW);
}

TEST(FilterRules, ArgumentsArithmeticAndMemory) {
  // (first argument & 0xf0) >> 4, kept and loaded again, is the errno.
  const Filter filter = {Step(BPF_LD | BPF_W | BPF_ABS, kFirst),
                         Step(BPF_ALU | BPF_AND | BPF_K, 0xf0),
                         Step(BPF_ALU | BPF_RSH | BPF_K, 4),
                         Step(BPF_ST, 3),
                         Step(BPF_LD | BPF_IMM, 0),
                         Step(BPF_LDX | BPF_MEM, 3),
                         Step(BPF_MISC | BPF_TXA, 0),
                         Step(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
                         Step(BPF_RET | BPF_A, 0)};
  EXPECT_EQ(Answer(filter, SYS_read, 0x35), SECCOMP_RET_ERRNO | 3u);
}

TEST(FilterRules, JumpsOverSteps) {
  const Filter filter = {
      Step(BPF_LD | BPF_W | BPF_ABS, kNumber),         Step(BPF_JMP | BPF_JA, 1),
      Step(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), Jump(BPF_JMP | BPF_JGE | BPF_K, 100, 0, 1),
      Step(BPF_RET | BPF_K, SECCOMP_RET_TRAP),         Step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_EQ(Answer(filter, 100), SECCOMP_RET_TRAP);
  EXPECT_EQ(Answer(filter, 99), SECCOMP_RET_ALLOW);
}

TEST(FilterRules, AFilterThatTheKernelWouldNotTakeAllows) {
  EXPECT_EQ(Answer({}, SYS_read), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Answer({Step(BPF_LD | BPF_W | BPF_ABS, 1)}, SYS_read), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Answer({Step(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data))}, SYS_read),
            SECCOMP_RET_ALLOW);
  EXPECT_EQ(Answer({Step(BPF_ST, BPF_MEMWORDS)}, SYS_read), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Answer({Step(BPF_ALU | BPF_DIV | BPF_K, 0)}, SYS_read), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Answer({Step(BPF_JMP | BPF_JA, 0xffffffff)}, SYS_read), SECCOMP_RET_ALLOW);
}

TEST(FilterRules, AFilterThatRefusesACallOfDejas) {
  EXPECT_EQ(RefusedBy(AllBut(SYS_ptrace, SECCOMP_RET_KILL_PROCESS)), nullptr);
  EXPECT_STREQ(RefusedBy(AllBut(SYS_futex, SECCOMP_RET_ERRNO | 1)), "futex");
  EXPECT_STREQ(RefusedBy(AllBut(SYS_getpid, SECCOMP_RET_TRAP)), "getpid");
  EXPECT_EQ(RefusedBy(AllBut(SYS_getpid, SECCOMP_RET_LOG)), nullptr);
}

}  // namespace
}  // namespace deja::preload
