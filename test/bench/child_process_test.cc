#include "bench/load/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace partita::bench {
namespace {

// A child that says that it runs, then does nothing until it is ended.
struct IdleChild {
  int ends[2];
  pid_t pid = 0;

  IdleChild() {
    EXPECT_EQ(pipe(ends), 0);
    const Result<pid_t> child = StartChild([this] {
      close(ends[0]);
      if (write(ends[1], "r", 1) != 1) return 1;
      for (;;) pause();
    });
    EXPECT_TRUE(child.ok()) << child.status().ToString();
    pid = *child;
    close(ends[1]);
    EXPECT_EQ(Read(), 1);
  }
  ~IdleChild() { close(ends[0]); }

  // 1: it said so; 0: nobody lives who could.
  ssize_t Read() const {
    char byte;
    return read(ends[0], &byte, 1);
  }
};

TEST(ChildProcessTest, ExitsWithWhatItsWorkAnswers) {
  const Result<pid_t> child = StartChild([] { return 7; });
  ASSERT_TRUE(child.ok());
  const int status = WaitForChild(*child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(ChildProcessTest, ASignalKillsTheChildAndNoOtherIsStarted) {
  {
    const StopScope scope;
    EXPECT_EQ(StopScope::Signal(), 0);
    const IdleChild child;
    std::raise(SIGTERM);
    const int status = WaitForChild(child.pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(StopScope::Signal(), SIGTERM);
    EXPECT_EQ(StartChild([] { return 0; }).code(), Code::kCancelled);
  }
  const Result<pid_t> later = StartChild([] { return 0; });
  ASSERT_TRUE(later.ok());
  EXPECT_TRUE(WIFEXITED(WaitForChild(*later)));
}

TEST(ChildProcessTest, WhatWasIgnoredStaysIgnored) {
  auto* const before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopScope scope;
    std::raise(SIGHUP);
    EXPECT_EQ(StopScope::Signal(), 0);
  }
  std::signal(SIGHUP, before);
}

TEST(ChildProcessTest, DiesWithAParentThatWasKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Result<pid_t> parent = StartChild([&] {
    close(ends[0]);
    const IdleChild child;  // Holds `ends[1]` as well.
    kill(getpid(), SIGKILL);
    return 0;
  });
  ASSERT_TRUE(parent.ok());
  close(ends[1]);
  EXPECT_TRUE(WIFSIGNALED(WaitForChild(*parent)));
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // Waits for the child's end.
  close(ends[0]);
}

}  // namespace
}  // namespace partita::bench
