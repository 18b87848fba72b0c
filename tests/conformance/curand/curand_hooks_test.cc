// Every hook hands every argument to the real function as it is, and gives its result back as it
// is.
#include "include/compat/curand.h"
#include "tests/conformance/hooks_check.h"

namespace {

constexpr char kForward[] = "*ForwardEveryArgumentAndResult";

TEST(CurandHooksTest, ForwardEveryArgumentAndResult) {
#define DEJA_FN(id, result, name, since, klass, ...) hooks_check::CheckFunction(#name, &::name);
#include "api/tables/curand.def"
#undef DEJA_FN
}

TEST(CurandHooksTest, TellTheEngineAboutEachCallOnce) {
  std::string expected;
#define DEJA_FN(id, result, name, since, klass, ...) expected += #name "\n" #name "\n";
#include "api/tables/curand.def"
#undef DEJA_FN
  EXPECT_EQ(hooks_check::CallsSeenBy(kForward), expected);
}

TEST(CurandHooksTest, ForwardEverythingWhenSwitchedOff) {
  EXPECT_EQ(hooks_check::RunSwitchedOff(kForward), 0);
}

}  // namespace

int main(int argc, char** argv) {
  return hooks_check::Main(argc, argv);
}
