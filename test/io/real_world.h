#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/task_group.h"
#include "engine/io/real_runtime.h"
#include "engine/io/uring.h"

namespace partita {

// A directory of its own for a test, removed with all it holds.
class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "partita-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TempDirectory() {
    std::error_code unused;
    std::filesystem::remove_all(path_, unused);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename T>
Task<void> StoreResult(Task<T> task, std::optional<T>* out) {
  out->emplace(co_await std::move(task));
}

// Runs `task` to its end: on `executor`, or in blocking mode on this thread when it is null.
template <typename T>
T RunOn(Executor* executor, Task<T> task) {
  if (executor == nullptr) return RunBlocking(std::move(task));
  std::optional<T> value;
  TaskGroup group;
  group.Spawn(*executor, StoreResult(std::move(task), &value));
  RunBlocking(group.Join());
  return std::move(*value);
}

inline bool UringAvailable() {
  Uring ring;
  return ring.Open({.submissions = 4, .completions = 8}).ok();
}

// Tests on a real runtime of either backend.
class RealRuntimeBackendTest : public testing::TestWithParam<IoBackend> {
 protected:
  void OpenRuntime(RealRuntimeOptions options) {
    if (GetParam() == IoBackend::kUring && !UringAvailable()) {
      GTEST_SKIP() << "io_uring is forbidden on this machine";
    }
    options.directory = directory_.path();
    options.backend = GetParam();
    auto opened = RealRuntime::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    runtime_ = std::move(opened).value();
  }

  TempDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
};

// Where calls are made from: the four ways of the real backends.
enum class Caller { kBlockingBesideRing, kBlockingBesideThreads, kRingWorker, kThreadWorker };

inline std::string CallerName(const testing::TestParamInfo<Caller>& info) {
  switch (info.param) {
    case Caller::kBlockingBesideRing:
      return "BlockingBesideRing";
    case Caller::kBlockingBesideThreads:
      return "BlockingBesideThreads";
    case Caller::kRingWorker:
      return "RingWorker";
    case Caller::kThreadWorker:
      return "ThreadWorker";
  }
  return "";
}

inline IoBackend BackendOf(Caller caller) {
  return caller == Caller::kBlockingBesideRing || caller == Caller::kRingWorker ? IoBackend::kUring
                                                                                : IoBackend::kThreads;
}

// A suite that runs once for each way of calling.
class RealWorldTest : public testing::TestWithParam<Caller> {
 protected:
  void SetUp() override {
    if (BackendOf(GetParam()) == IoBackend::kUring && !UringAvailable()) {
      GTEST_SKIP() << "io_uring is forbidden on this machine";
    }
    RealRuntimeOptions options;
    options.directory = directory_.path();
    options.backend = BackendOf(GetParam());
    auto opened = RealRuntime::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    runtime_ = std::move(opened).value();
  }

  FileSystem& files() { return runtime_->files(); }
  Executor* executor() {
    const bool on_worker = GetParam() == Caller::kRingWorker || GetParam() == Caller::kThreadWorker;
    return on_worker ? &runtime_->shard_executor(ShardId(0)) : nullptr;
  }
  template <typename T>
  T Run(Task<T> task) {
    return RunOn(executor(), std::move(task));
  }

  TempDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
};

#define PARTITA_INSTANTIATE_CALLERS(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Callers, suite,                                                              \
                           testing::Values(Caller::kBlockingBesideRing, Caller::kBlockingBesideThreads, \
                                           Caller::kRingWorker, Caller::kThreadWorker),                 \
                           CallerName)

}  // namespace partita
