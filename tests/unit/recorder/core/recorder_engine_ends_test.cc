#include "tests/unit/recorder/core/recorder_engine_fixture.h"

namespace deja::recorder {
namespace {

TEST_F(RecorderEngineTest, FailingLogTurnsRecordingOffOnce) {
  FakeLog::create_error = "no space left on the moon";
  testing::internal::CaptureStderr();
  InitRank(kComm);
  AllReduce(kComm);
  InitRank(0x2000);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("no space left on the moon"), std::string::npos);
  EXPECT_EQ(slot_, 0x2000u) << "calls must reach the real library";
}

TEST_F(RecorderEngineTest, FailingFolderTurnsRecordingOff) {
  FakeLog::rank_error = "read-only";
  InitRank(kComm);
  size_t before = log().Events().size();
  AllReduce(kComm);
  EXPECT_EQ(log().Events().size(), before);
}

TEST_F(RecorderEngineTest, ThreadEndsItsStream) {
  InitRank(kComm);
  std::thread([&] {
    engine_->OnStep(3);
    engine_->OnThreadEnd();
    engine_->OnStep(4);  // a destructor of thread-local data
  }).join();
  EXPECT_THAT(Kinds(kAfterInit),
              ElementsAre(EventKind::kThreadStart, EventKind::kStep, EventKind::kThreadEnd));
}

TEST_F(RecorderEngineTest, ExitIsRecordedOnceAndFinishes) {
  InitRank(kComm);
  engine_->OnExit(3, preload::ExitHow::kUnderscoreExit);
  engine_->OnExit(3, preload::ExitHow::kExit);
  engine_->Finish();
  auto exits = All<format::ProcessExit>();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].code, 3);
  EXPECT_EQ(exits[0].how, 1u);
  EXPECT_TRUE(log().finished);
}

TEST_F(RecorderEngineTest, ExecNamesTheProgramWithoutItsSecrets) {
  InitRank(kComm);
  std::string program = "mysql";
  std::string option = "--password";
  std::string secret = "hunter2hunter2";
  char* argv[] = {program.data(), option.data(), secret.data(), nullptr};
  engine_->OnExec({"/usr/bin/mysql", argv});
  const auto exits = All<format::ProcessExit>();
  ASSERT_EQ(exits.size(), 1u);
  EXPECT_EQ(exits[0].how, 2u);
  EXPECT_EQ(exits[0].program, "/usr/bin/mysql");
  const std::string arguments(exits[0].arguments);
  EXPECT_EQ(arguments.find("hunter2"), std::string::npos) << arguments;
  EXPECT_EQ(arguments.substr(0, 17), std::string("mysql\0--password\0", 17));
  EXPECT_EQ(arguments.size(), 17 + secret.size() + 1);
  // An exec that fails is no end: the process's own comes later.
  engine_->OnExit(3, preload::ExitHow::kExit);
  EXPECT_EQ(All<format::ProcessExit>().size(), 2u);
}

TEST_F(RecorderEngineTest, AChildIsNamedByWhatItBecame) {
  InitRank(kComm);
  std::string program = "cat";
  char* argv[] = {program.data(), nullptr};
  engine_->OnChildMade(1, 4711, {"/bin/cat", argv});
  engine_->OnChildMade(2, 4712, {});
  const auto children = All<format::Child>();
  ASSERT_EQ(children.size(), 2u);
  EXPECT_EQ(children[0].program, "/bin/cat");
  EXPECT_EQ(children[0].arguments, std::string("cat\0", 4));
  EXPECT_EQ(children[1].program, "");
}

TEST_F(RecorderEngineTest, CrashUsesTheEmergencySlotWhenTheSinkIsBusy) {
  InitRank(kComm);
  siginfo_t info{};
  info.si_code = SEGV_MAPERR;
  info.si_addr = reinterpret_cast<void*>(0x123);
  log().sinks_busy = true;
  engine_->OnCrash(SIGSEGV, &info, nullptr);
  EXPECT_EQ(log().emergencies, 1);
  auto crash = All<format::Crash>().back();
  EXPECT_EQ(crash.signal, static_cast<uint32_t>(SIGSEGV));
  EXPECT_EQ(crash.address, 0x123u);
}

TEST_F(RecorderEngineTest, ChildOfABareCloneIsNotRecorded) {
  InitRank(kComm);
  FakeLog* parents = FakeLog::last;
  size_t before = parents->Events().size();
  engine_->OnForkChild();  // as the hooks call it; the C library's fork handlers have not run
  AllReduce(kComm);
  engine_->OnExit(0, preload::ExitHow::kExit);
  EXPECT_TRUE(parents->abandoned);
  EXPECT_EQ(parents->Events().size(), before);
  EXPECT_EQ(FakeLog::made, 1);
}

}  // namespace
}  // namespace deja::recorder
