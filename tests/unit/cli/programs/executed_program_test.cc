#include "cli/programs/executed_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/events/event_json.h"
#include "cli/events/event_text.h"

namespace deja::cli {
namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ExecutedProgram, HasItsArgumentsOneByOne) {
  EXPECT_THAT(ArgumentsOf(""), IsEmpty());
  EXPECT_THAT(ArgumentsOf("cat\0a file\0\0"s), ElementsAre("cat", "a file", ""));
  EXPECT_THAT(ArgumentsOf("cat\0a fi"s), ElementsAre("cat", "a fi…"));
}

TEST(ExecutedProgram, IsNamedByAnExecAndByTheProcessThatMadeIt) {
  const std::string arguments = "cat\0a file\0"s;
  format::Event event;
  format::ProcessExit exit;
  exit.how = 2;
  event.body = exit;
  EXPECT_EQ(DescribeEvent(event, {}), "exec 0") << "as before format 1.2";
  exit.program = "/bin/cat";
  exit.arguments = arguments;
  event.body = exit;
  EXPECT_EQ(DescribeEvent(event, {}), "exec /bin/cat (cat 'a file')");
  EXPECT_EQ(EventToJson(event, {})["program"], "/bin/cat");
  EXPECT_EQ(EventToJson(event, {})["arguments"], nlohmann::json({"cat", "a file"}));
  format::Child child;
  child.number = 3;
  child.pid = 17;
  event.body = child;
  EXPECT_EQ(DescribeEvent(event, {}), "process 17 made, the thread's number 3");
  EXPECT_FALSE(EventToJson(event, {}).contains("program"));
  child.program = "/bin/cat";
  child.arguments = arguments;
  event.body = child;
  EXPECT_EQ(DescribeEvent(event, {}),
            "process 17 made, the thread's number 3, runs /bin/cat (cat 'a file')");
  EXPECT_EQ(EventToJson(event, {})["arguments"], nlohmann::json({"cat", "a file"}));
}

}  // namespace
}  // namespace deja::cli
