#include "preload/stack/python_frames.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace deja::preload {
namespace {

// A CPython's objects, in an order of this test's own.
struct FakeText {
  uint64_t length;
  uint32_t state;
  uint32_t unused;
  char bytes[48];
};

struct FakeCode {
  uint64_t count;
  const void* type;
  const FakeText* file;
  const FakeText* function;
};

struct FakeFrame {
  const FakeCode* code;
  const FakeFrame* previous;
  int64_t line;
};

struct FakeHolder {
  uint64_t unused;
  const FakeFrame* frame;
};

struct FakeThread {
  uint64_t unused;
  const FakeHolder* holder;
};

int LineOf(const void* frame) {
  return static_cast<int>(static_cast<const FakeFrame*>(frame)->line);
}

FakeHolder g_holder;
FakeThread g_thread{0, &g_holder};
int g_is_alive = 1;

// How the fakes lie; `type`: that of code.
PythonLayout FakeLayout(const int* type) {
  PythonLayout layout;
  layout.state = [] { return static_cast<void*>(&g_thread); };
  layout.is_alive = [] { return g_is_alive; };
  layout.through = offsetof(FakeThread, holder);
  layout.current_frame = offsetof(FakeHolder, frame);
  layout.previous = offsetof(FakeFrame, previous);
  layout.executable = offsetof(FakeFrame, code);
  layout.type = offsetof(FakeCode, type);
  layout.file = offsetof(FakeCode, file);
  layout.function = offsetof(FakeCode, function);
  layout.text_state = offsetof(FakeText, state);
  layout.text_length = offsetof(FakeText, length);
  layout.text_bytes = offsetof(FakeText, bytes);
  layout.more_of_text = 16;
  layout.code_type = type;
  layout.line_of_frame = LineOf;
  layout.place = offsetof(FakeFrame, line);
  return layout;
}

constexpr uint32_t kAscii = 1U << 6 | 1U << 5 | 1U << 2;
constexpr uint32_t kLatin = 1U << 5 | 1U << 2;
constexpr uint32_t kTwoBytes = 1U << 5 | 2U << 2;
constexpr uint32_t kFourBytes = 1U << 5 | 4U << 2;

TEST(PythonFrames, AreReadWhereTheInterpreterHasThem) {
  const int type = 0;
  const int other_type = 0;
  const FakeText file{11, kAscii, 0, "/x/train.py"};
  const FakeText step{10, kAscii, 0, "train_step and what lies behind it"};
  // Behind two words that are not theirs: characters of one, two and four bytes.
  const FakeText latin{3, kLatin, 0,
                       "................n\xE9"
                       "e"};
  const FakeText greek{2, kTwoBytes, 0,
                       "................\xBB\x03"
                       "a"};
  const FakeText wide{1, kFourBytes, 0, "................\x00\xF6\x01"};
  const FakeCode codes[] = {{1, &type, &file, &step},
                            {1, &type, &file, &latin},
                            {1, &type, &file, &greek},
                            {1, &type, &file, &wide}};
  const FakeCode not_code{1, &other_type, nullptr, nullptr};
  const FakeFrame outermost{&codes[3], nullptr, -1};
  const FakeFrame third{&codes[2], &outermost, 3};
  const FakeFrame second{&codes[1], &third, 2};
  const FakeFrame of_the_interpreter{&not_code, &second, 7};
  const FakeFrame without_code{nullptr, &of_the_interpreter, 7};
  const FakeFrame innermost{&codes[0], &without_code, 88};
  g_holder.frame = &innermost;
  SetInterpreter(FakeLayout(&type));
  PythonFrames frames;
  PythonFramesInSignal(frames);
  SetInterpreter(PythonLayout{});
  ASSERT_EQ(frames.size(), 4u);
  EXPECT_STREQ(PathOfPythonModule(frames[0].module), "python:train_step:/x/train.py");
  EXPECT_EQ(frames[0].offset, 88u);
  EXPECT_STREQ(PathOfPythonModule(frames[1].module), "python:née:/x/train.py");
  EXPECT_STREQ(PathOfPythonModule(frames[2].module), "python:λa:/x/train.py");
  EXPECT_STREQ(PathOfPythonModule(frames[3].module), "python:\U0001F600:/x/train.py");
  EXPECT_EQ(frames[3].offset, 0u) << "a line that is not known";
}

TEST(PythonFrames, ThatGoInACircleEnd) {
  const int type = 0;
  const FakeText text{1, kAscii, 0, "f"};
  const FakeCode code{1, &type, &text, &text};
  FakeFrame frame{&code, nullptr, 1};
  frame.previous = &frame;
  g_holder.frame = &frame;
  SetInterpreter(FakeLayout(&type));
  PythonFrames frames;
  PythonFramesInSignal(frames);
  SetInterpreter(PythonLayout{});
  EXPECT_EQ(frames.size(), kMaxPythonFrames);
}

TEST(PythonFrames, AreFoundOnTheCallingThread) {
  const int type = 0;
  const FakeText file{11, kAscii, 0, "/x/train.py"};
  const FakeText step{10, kAscii, 0, "train_step"};
  const FakeCode code{1, &type, &file, &step};
  FakeFrame outer{&code, nullptr, 12};
  FakeFrame inner{&code, &outer, 34};
  g_holder.frame = &inner;
  EXPECT_EQ(FindPythonStack(), 0u) << "nobody has told where the interpreter has what";
  SetInterpreter(FakeLayout(&type));
  const uint32_t found = FindPythonStack();
  const auto frames = PythonStack(found);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].offset, 34u);
  EXPECT_EQ(frames[1].offset, 12u);
  EXPECT_EQ(FindPythonStack(), found);
  outer.line = 13;  // the same function called from another place
  const uint32_t other = FindPythonStack();
  EXPECT_NE(other, found);
  EXPECT_EQ(PythonStack(other)[1].offset, 13u);
  EXPECT_EQ(EnterPythonStack(found), 0u);
  EXPECT_EQ(FindPythonStack(), found) << "what the program says comes first";
  EnterPythonStack(0);
  g_is_alive = 0;
  EXPECT_EQ(FindPythonStack(), 0u) << "the interpreter is being ended";
  g_is_alive = 1;
  g_holder.frame = nullptr;
  EXPECT_EQ(FindPythonStack(), 0u) << "a thread that runs no Python";
  SetInterpreter(PythonLayout{});
}

TEST(PythonFrames, OfDejaAreNotTheProgramsButForACrash) {
  const int type = 0;
  const FakeText train{11, kAscii, 0, "/x/train.py"};
  const FakeText ours{17, kAscii, 0, "/d/deja/engine.py"};
  const FakeText other{17, kAscii, 0, "/d/dejavu/code.py"};
  const FakeText name{1, kAscii, 0, "f"};
  const FakeCode codes[] = {
      {1, &type, &train, &name}, {1, &type, &ours, &name}, {1, &type, &other, &name}};
  const FakeFrame outermost{&codes[0], nullptr, 1};
  const FakeFrame second{&codes[1], &outermost, 2};
  const FakeFrame third{&codes[2], &second, 3};
  const FakeFrame innermost{&codes[1], &third, 4};
  g_holder.frame = &innermost;
  PythonLayout layout = FakeLayout(&type);
  layout.own_folder = "/d/deja/";
  SetInterpreter(layout);
  const auto frames = PythonStack(FindPythonStack());
  PythonFrames in_signal;
  PythonFramesInSignal(in_signal);
  SetInterpreter(PythonLayout{});
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].offset, 3u);
  EXPECT_EQ(frames[1].offset, 1u);
  EXPECT_EQ(in_signal.size(), 4u);
}

TEST(PythonFrames, HaveTheLinesOfTheirInstructions) {
  const int type = 0;
  const FakeText text{1, kAscii, 0, "f"};
  const FakeCode code{1, &type, &text, &text};
  FakeFrame frame{&code, nullptr, 0};
  frame.line = static_cast<int64_t>(reinterpret_cast<uint64_t>(&code) + sizeof code + 6);
  g_holder.frame = &frame;
  PythonLayout layout = FakeLayout(&type);
  layout.instructions = sizeof(FakeCode);
  layout.line_of_code = [](const void*, int instruction) { return 100 + instruction; };
  SetInterpreter(layout);
  const auto frames = PythonStack(FindPythonStack());
  SetInterpreter(PythonLayout{});
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].offset, 106u);
}

}  // namespace
}  // namespace deja::preload
