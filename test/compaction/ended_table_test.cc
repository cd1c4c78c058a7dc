#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "compaction/table_outputs.h"
#include "engine/base/event.h"
#include "engine/io/task_pool.h"
#include "test/compaction/job_test_world.h"

// Outputs become durable and are read back beside their job.

namespace partita {
namespace {

// Objects are written to one store and read from another, as where the disk hands out what a lost write left.
class OtherAtReadBack final : public ObjectStore {
 public:
  OtherAtReadBack(ObjectStore& written, ObjectStore& read) : written_(written), read_(read) {}
  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override { return written_.Create(id); }
  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override { return read_.Open(id); }
  Task<Status> Remove(ObjectId id) override { return written_.Remove(id); }
  Task<Result<std::vector<ObjectInfo>>> List() override { return written_.List(); }

 private:
  ObjectStore& written_;
  ObjectStore& read_;
};

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
      EXPECT_LT(flushed->edit.added[at - 1].file.info->largest, flushed->edit.added[at].file.info->smallest);
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

// covers: F47
TEST_F(EndedTableTest, AnotherSoundTableInItsPlaceIsNotTaken) {
  const auto flush = [](ObjectStore& store, std::vector<ModelEntry> entries) {
    BlockCache cache(1 << 20);
    JobContext context{.store = store, .cache = cache, .store_id = StoreId(77)};
    context.next_object_id = [] { return ObjectId(1); };
    FlushSpec spec;
    spec.entries = std::make_unique<VectorSource>(std::move(entries));
    spec.retention = {kVersionMax, {}};
    FlushJob job(std::move(context), std::move(spec));
    return RunBlocking(job.Run()).status();
  };
  const std::vector<ModelEntry> entries = Entries();
  std::vector<ModelEntry> one_less = entries, one_deleted = entries, one_other = entries;
  one_less.erase(one_less.begin() + 7);
  one_deleted[7] = MakeEntry(entries[7].key, 5, EntryKind::kTombstone, "");
  one_other.back() = MakeEntry(EncodeUserKey(TableId(1), "p", "999999"), 5, EntryKind::kPut, "other");
  for (const std::vector<ModelEntry>& other : {one_less, one_deleted, one_other, entries}) {
    MemoryObjectStore written, read;
    ASSERT_TRUE(flush(read, other).ok());
    OtherAtReadBack store(written, read);
    const Status flushed = flush(store, entries);
    if (other == entries) {
      EXPECT_TRUE(flushed.ok()) << flushed.ToString();
      continue;
    }
    EXPECT_EQ(flushed.code(), Code::kIoError);
    EXPECT_THAT(flushed.message(), testing::HasSubstr("read back other counts than were written (F47)"));
    EXPECT_TRUE(RunBlocking(written.List())->empty());
  }
}

// covers: F47
TEST_F(EndedTableTest, AJobEndsOnlyWithAsManyEntriesInItsTablesAsItCounted) {
  JobContext context = world_.Context();
  JobStatistics statistics;
  WarmEntries warm(context.cache, context.cache_executor);
  TableOutputs outputs(context, Codec::kStored, OutputCutter({}, {}, 16 << 10), &statistics, /*shrink_min=*/0,
                       warm, /*marks=*/{});
  for (const ModelEntry& entry : Entries()) {
    ++statistics.entries_in;
    if (outputs.MustTurn(entry.key)) ASSERT_TRUE(RunBlocking(outputs.Turn()).ok());
    ASSERT_TRUE(outputs.Add({entry.key, entry.version, entry.kind, entry.value}).ok());
  }
  ++statistics.entries_in;
  ++statistics.entries_out;  // Which adds up, but for what is in the tables.
  const Status finished = RunBlocking(outputs.Finish());
  EXPECT_EQ(finished.code(), Code::kCorruption);
  EXPECT_THAT(finished.message(), testing::HasSubstr("outputs hold 2000 entries, 2001 were written (F47)"));
  RunBlocking(outputs.Discard());
}

// covers: F47
TEST(JobAccountsTest, EachEntryIsWrittenOrDroppedForAReason) {
  JobStatistics statistics{.entries_in = 10,
                           .entries_out = 4,
                           .dropped_shadowed = 3,
                           .dropped_tombstones = 2,
                           .dropped_dead_table = 1};
  EXPECT_TRUE(CheckAccounts(statistics).ok());
  for (uint64_t JobStatistics::*counted :
       {&JobStatistics::entries_in, &JobStatistics::entries_out, &JobStatistics::dropped_shadowed,
        &JobStatistics::dropped_tombstones, &JobStatistics::dropped_dead_table}) {
    JobStatistics wrong = statistics;
    ++(wrong.*counted);
    EXPECT_EQ(CheckAccounts(wrong).code(), Code::kCorruption);
  }
}

}  // namespace
}  // namespace partita
