#include "cli/replay/verdict/divergence_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace deja::cli {
namespace {

using Stack = std::vector<FramePart>;
using Lines = std::vector<std::string>;

class DivergenceLinesTest : public testing::Test {
 protected:
  std::string Script(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }
  static FramePart Frame(const std::string& module, uint64_t offset) {
    FramePart frame;
    frame.module = module;
    frame.offset = offset;
    return frame;
  }
  Lines Of(const Stack& recorded, const Stack& live, StackDetail detail = StackDetail::kPython) {
    DivergenceLine line;
    line.text = "step 3: it differs";
    line.recorded_stack = recorded;
    line.live_stack = live;
    return DivergenceLines(line, symbolizer_, detail);
  }

  TempDir folder_;
  Symbolizer symbolizer_;
};

TEST_F(DivergenceLinesTest, StacksOfPythonHaveItsFramesAndTheirSource) {
  const std::string script =
      Script("train.py", "import torch\n\ndef step():\n    loss.backward()\n");
  const Stack stack = {Frame("/usr/lib/libc.so.6", 0x1234), Frame("python:step:" + script, 4),
                       Frame("/usr/bin/python3.11", 0x77),
                       Frame("python:<module>:/gone/run.py", 9)};
  EXPECT_EQ(Of(stack, stack),
            (Lines{"step 3: it differs", "stack, recorded and live:",
                   "  train.py:4 in step: loss.backward()", "  run.py:9 in <module>"}));
  const Lines native = Of(stack, stack, StackDetail::kNative);
  ASSERT_EQ(native.size(), 6u);
  EXPECT_EQ(native[2].rfind("  libc.so.6+0x", 0), 0u) << native[2];
}

TEST_F(DivergenceLinesTest, ACrashHasAllFramesAndPythonsFirst) {
  const std::string script = Script("train.py", "loss.backward()\n");
  CrashLine crash;
  crash.thread = "0.1";
  crash.frames = {Frame("/gone/libdeja_replay.so", 0x10), Frame("/gone/a.so", 0x20),
                  Frame("python:<module>:" + script, 1)};
  EXPECT_EQ(CrashLines(crash, symbolizer_),
            (Lines{"stack of the crash, thread 0.1:", "  train.py:1 in <module>: loss.backward()",
                   "  libdeja_replay.so+0x10", "  a.so+0x20"}));
}

TEST_F(DivergenceLinesTest, NativeStacksAreWhole) {
  const Stack recorded = {Frame("/gone/a.so", 0x10)};
  const Stack live = {Frame("/gone/a.so", 0x20), Frame("/gone/libdeja_replay.so", 1)};
  EXPECT_EQ(Of(recorded, live), (Lines{"step 3: it differs", "recorded stack:", "  a.so+0x10",
                                       "live stack:", "  a.so+0x20"}));
}

TEST_F(DivergenceLinesTest, WithoutStacksThereIsOneLine) {
  EXPECT_EQ(Of({}, {}), (Lines{"step 3: it differs"}));
}

TEST_F(DivergenceLinesTest, SourceIsOnlyOfPythonAndWithoutControlCharacters) {
  const std::string script = Script("a.py", "x = 1\n\tprint('\x1b[31m')\r\n   \n");
  EXPECT_EQ(SourceLine(script, 1), "x = 1");
  EXPECT_EQ(SourceLine(script, 2), "print('\\x1b[31m')");
  EXPECT_EQ(SourceLine(script, 3), "");
  EXPECT_EQ(SourceLine(script, 4), "");
  EXPECT_EQ(SourceLine(script, 0), "");
  EXPECT_EQ(SourceLine(Script("secret", "password\n"), 1), "");
  EXPECT_EQ(SourceLine(Script("long.py", std::string(1000, 'x')), 1),
            std::string(120, 'x') + "...");
}

TEST_F(DivergenceLinesTest, APipeIsNotRead) {
  const std::string path = folder_ / "pipe.py";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(SourceLine(path, 1), "");
}

}  // namespace
}  // namespace deja::cli
