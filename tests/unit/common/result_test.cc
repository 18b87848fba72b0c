#include "common/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace deja {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0)
    return Fail(ErrorCode::kInvalidArgument, "halving " + std::to_string(x) + ": it is odd");
  return x / 2;
}

Result<int> Quarter(int x) {
  DEJA_ASSIGN_OR_RETURN(int half, Half(x));
  return Half(half);
}

Status Check(int x) {
  DEJA_RETURN_IF_ERROR(Quarter(x));
  return {};
}

TEST(Result, PassesValuesOn) {
  EXPECT_EQ(Quarter(12).value(), 3);
}

TEST(Result, ReturnsTheFirstError) {
  auto result = Quarter(6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "halving 3: it is odd");
  EXPECT_FALSE(Check(6));
  EXPECT_TRUE(Check(8));
}

TEST(Result, ErrnoErrorsNameTheCause) {
  Status status = FailErrno("opening x", ENOENT);
  EXPECT_EQ(status.error().message, "opening x: No such file or directory");
  EXPECT_EQ(status.error().sys_errno, ENOENT);
}

}  // namespace
}  // namespace deja
