#include "preload/python_frames.h"

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
  int line;
};

struct FakeThread {
  uint64_t unused;
  const FakeFrame* frame;
};

int LineOf(const void* frame) {
  return static_cast<const FakeFrame*>(frame)->line;
}

// How the fakes lie; `type`: that of code.
PythonLayout FakeLayout(const int* type) {
  PythonLayout layout;
  layout.current_frame = offsetof(FakeThread, frame);
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
  layout.line = LineOf;
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
  static FakeThread thread;
  thread.frame = &innermost;
  SetInterpreter(FakeLayout(&type), [] { return static_cast<void*>(&thread); });
  PythonFrames frames;
  PythonFramesInSignal(frames);
  SetInterpreter(PythonLayout{}, nullptr);
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
  static FakeThread thread;
  thread.frame = &frame;
  SetInterpreter(FakeLayout(&type), [] { return static_cast<void*>(&thread); });
  PythonFrames frames;
  PythonFramesInSignal(frames);
  SetInterpreter(PythonLayout{}, nullptr);
  EXPECT_EQ(frames.size(), kMaxPythonFrames);
}

}  // namespace
}  // namespace deja::preload
