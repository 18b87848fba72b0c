#include "cli/status_line.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <stdio_ext.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cli/output.h"

namespace deja::cli {
namespace {

constexpr int kLines = 2000;

// On a terminal: a thread redraws the status line all the time.
[[noreturn]] void PrintBesideADrawer() {
  setenv("TERM", "xterm", 1);
  __fpurge(stdout);  // what the test's process has not written yet
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  std::atomic<bool> ended{false};
  std::atomic<bool> drawn{false};
  std::thread drawer([&] {
    for (; !ended.load(); drawn.store(true)) ShowStatusLine("working");
  });
  while (!drawn.load()) std::this_thread::yield();
  for (int i = 0; i < kLines; ++i) PrintLine("result");
  ended.store(true);
  drawer.join();
  HideStatusLine();
  std::fflush(nullptr);
  _exit(0);
}

std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

TEST(StatusLine, WhatIsPrintedBeginsAtTheBeginningOfALine) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) PrintBesideADrawer();
  const std::string seen = ReadAll(terminal);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(seen.find("\rworking\033[K"), std::string::npos);
  int printed = 0;
  for (size_t at = 0; (at = seen.find("result", at)) != std::string::npos; ++at, ++printed) {
    const std::string before = seen.substr(0, at);
    const bool begins = before.empty() || before.back() == '\n' || before.ends_with("\r\033[K");
    ASSERT_TRUE(begins) << before.substr(before.size() - std::min<size_t>(before.size(), 40));
  }
  EXPECT_EQ(printed, kLines);
}

}  // namespace
}  // namespace deja::cli
