#include "cli/events/short_name.h"

#include <gtest/gtest.h>

namespace deja::cli {
namespace {

TEST(ShortName, ANameThatIsNoTemplateIsItself) {
  for (const char* name :
       {"main", "deja::Sampler::Next", "Sampler<int>::Next", "_PyEval_EvalFrameDefault",
        "c10d::ops::(anonymous namespace)::allreduce_CUDA", "Matrix::operator()",
        "Matrix::operator<", "Matrix::operator<<", "Matrix::operator->", "operator new",
        "Engine::run()::{lambda(int, char)#1}::operator()", "broken<name", ""})
    EXPECT_EQ(ShortName(name), name);
}

TEST(ShortName, LeavesOutLongArgumentsOfTemplates) {
  EXPECT_EQ(ShortName("Box<std::tuple<std::vector<int>, std::string>, Less<(A)1> >::call"),
            "Box<…>::call");
  EXPECT_EQ(ShortName("A<int>::B<std::unordered_map<int, int>, std::string>::c"),
            "A<int>::B<…>::c");
  EXPECT_EQ(ShortName("Apply<std::pair<int, int>, decltype (a->b())>::operator()"),
            "Apply<…>::operator()");
}

TEST(ShortName, LeavesOutWhatATemplateReturns) {
  EXPECT_EQ(ShortName("std::vector<int, std::allocator<int> > Group::all_reduce<float>"),
            "Group::all_reduce<float>");
  EXPECT_EQ(ShortName("void Group::run<void (*)(int), std::allocator<int> >"), "Group::run<…>");
}

}  // namespace
}  // namespace deja::cli
