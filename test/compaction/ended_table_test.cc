#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/event.h"
#include "engine/io/task_pool.h"
#include "test/compaction/job_test_world.h"

// Outputs become durable and are read back beside their job.

namespace partita {
namespace {

class EndedTableTest : public testing::Test {
 protected:
  static constexpr uint32_t kRows = 2'000;

  void SetUp() override {
    ASSERT_TRUE(pool_.Start("beside", 2, ThreadPriority::kOrdinary).ok());
    world_.beside_executor = &pool_;
    world_.read_ahead = nullptr;  // Its helpers are for one thread.
  }
  void TearDown() override { pool_.Close(); }

  static std::vector<ModelEntry> Entries() {
    std::vector<ModelEntry> entries;
    for (uint32_t row = 0; row < kRows; ++row) {
      std::string content = std::to_string(row * 7919);
      while (content.size() < 200) content += std::to_string(content.size() * 31 + row);
      entries.push_back(MakeEntry(EncodeUserKey(TableId(1), "p", std::to_string(100'000 + row)), 5,
                                  EntryKind::kPut, content));
    }
    return entries;
  }
  Result<JobResult> Flush() { return world_.Flush(Entries(), {kVersionMax, {}}); }

  static FlushSpec Spec() {
    FlushSpec spec;
    spec.entries = std::make_unique<VectorSource>(Entries());
    spec.retention = {kVersionMax, {}};
    return spec;
  }
  static Task<void> Await(Event* event) { co_await event->Wait(); }

  std::jthread helper_;
  TaskPool pool_;
  JobWorld world_;
};

TEST_F(EndedTableTest, AllAreThereInOrderWhoeverReadsThemBack) {
  for (int i = 0; i < 20; ++i) {
    world_.levels = std::make_shared<const LevelSet>();
    const Result<JobResult> flushed = Flush();
    ASSERT_TRUE(flushed.ok()) << flushed.status().ToString();
    ASSERT_GT(flushed->edit.added.size(), 10u);
    EXPECT_EQ(flushed->statistics.bytes_verified, flushed->statistics.bytes_written);
    for (size_t at = 1; at < flushed->edit.added.size(); ++at) {
      EXPECT_LT(flushed->edit.added[at - 1].file.info.largest, flushed->edit.added[at].file.info.smallest);
    }
    EXPECT_EQ(world_.EntriesOf(), Entries());
  }
}

TEST_F(EndedTableTest, OneThatDoesNotReadBackLeavesNothing) {
  for (uint64_t bad = 1; bad <= 12; ++bad) {
    const ObjectId id(world_.last_id + bad);
    world_.store.faults().on_read = [id](ObjectId read, uint64_t offset, std::span<uint8_t> bytes,
                                         ReadCaching) {
      if (read == id && offset == 0) bytes[100] ^= 1;
      return Status();
    };
    EXPECT_EQ(Flush().code(), Code::kIoError) << bad;
    EXPECT_EQ(world_.ObjectCount(), 0u) << bad;
  }
}

TEST_F(EndedTableTest, HelpersReadThemBack) {
  const std::thread::id job = std::this_thread::get_id();
  std::atomic<int> by_helpers{0};
  world_.store.faults().on_read = [&](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    by_helpers += std::this_thread::get_id() != job ? 1 : 0;
    return Status();
  };
  for (int i = 0; i < 1'000 && by_helpers == 0; ++i) {
    world_.levels = std::make_shared<const LevelSet>();
    ASSERT_TRUE(Flush().ok());
  }
  EXPECT_GT(by_helpers, 0);
}

TEST_F(EndedTableTest, WhatIsDiscardedBeforeAnybodyBeganIsNotReadBack) {
  world_.beside_executor = nullptr;
  JobContext context = world_.Context();
  context.next_object_id = [&] {
    if (world_.last_id == 1) world_.store.faults().append_fails_after = 0;  // Of the second file.
    return ObjectId(++world_.last_id);
  };
  FlushJob flush(std::move(context), Spec());
  EXPECT_EQ(RunBlocking(flush.Run()).code(), Code::kNoSpace);
  EXPECT_EQ(world_.store.reads(), 0u);
  EXPECT_EQ(world_.ObjectCount(), 0u);
  world_.helpers.RunAll();
}

// The job fails for another reason while a helper reads the file before back.
TEST_F(EndedTableTest, AJobThatFailsWaitsForWhoReadsBack) {
  Event is_read, may_go_on;
  std::atomic<bool> discarded{false}, came_late{false};
  const ObjectId first(world_.last_id + 1);
  const std::thread::id job = std::this_thread::get_id();
  world_.store.faults().on_read = [&](ObjectId id, uint64_t, std::span<uint8_t>, ReadCaching) {
    if (discarded) came_late = true;
    if (id != first || std::this_thread::get_id() == job || is_read.is_set()) return Status();
    is_read.Set();
    RunBlocking(Await(&may_go_on));
    return Status();
  };
  JobContext context = world_.Context();
  context.next_object_id = [&] {
    // The second file is to begin: the first is being read back, and goes on while the job fails.
    if (world_.last_id == first.value) {
      RunBlocking(Await(&is_read));
      world_.store.faults().append_fails_after = 0;
      helper_ = std::jthread([&may_go_on] {
        std::this_thread::yield();
        may_go_on.Set();
      });
    }
    return ObjectId(++world_.last_id);
  };
  {
    FlushJob flush(std::move(context), Spec());
    EXPECT_EQ(RunBlocking(flush.Run()).code(), Code::kNoSpace);
  }
  discarded = true;
  EXPECT_EQ(world_.ObjectCount(), 0u);
  pool_.Close();
  EXPECT_FALSE(came_late);
}

}  // namespace
}  // namespace partita
