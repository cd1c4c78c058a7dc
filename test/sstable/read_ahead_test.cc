// Cursors that have the next pieces of a table read while they work: on the simulator, in blocking mode with
// helpers that are late or never come, and on the real disk.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/io/local_object_store.h"
#include "engine/io/real_runtime.h"
#include "engine/io/sim_runtime.h"
#include "sstable/read_ahead_pool.h"
#include "sstable/read_ahead_window.h"
#include "test/sstable/read_ahead_fixture.h"
#include "test/support/late_executor.h"
#include "test/support/reads_apart.h"
#include "test/support/scratch_directory.h"

namespace partita {
namespace {

// What the scans of one run met.
struct Course {
  uint64_t started = 0;      // Reads ahead.
  uint64_t left_behind = 0;  // Cursors that went while a read of theirs was in flight.
  uint64_t failed = 0;
  uint64_t faults = 0;
  uint64_t shared = 0;  // Reads into memory that another one in flight writes to.
  size_t held_max = 0;
};

// Scans with random bounds, seeks and ends, each right or refused.
Task<void> ScanAround(ObjectStore& store, ReadAheadPool& pool, SimRuntime* runtime, uint64_t seed,
                      const std::vector<OwnedEntry>& entries, size_t tables, Course* course) {
  std::mt19937_64 random(seed);
  BlockCache cache(256 << 10);
  auto opened = co_await OpenAll(store, cache, tables);
  if (!opened.ok()) {
    ++course->failed;
    co_return;
  }
  std::vector<FileRef> files = std::move(opened).value();
  constexpr IterCaching kCachings[] = {IterCaching::kFill, IterCaching::kLookOnly, IterCaching::kBypass};
  for (int round = 0; round < 12; ++round) {
    IterOptions options{.caching = kCachings[random() % 3], .read_ahead = &pool};
    if (random() % 3 == 0) options.lower = entries[random() % entries.size()].user_key;
    if (random() % 3 == 0) options.upper = entries[random() % entries.size()].user_key;
    if (random() % 4 == 0) options.entries_expected = 1 + random() % 3000;
    if (random() % 4 == 0) options.raw_bytes_expected = 1 + random() % (2u << 20);
    if (random() % 2 == 0) options.expected_share = static_cast<double>(random() % 100) / 100;
    if (random() % 2 == 0) options.read_in_stride = random() % (2u << 20);
    const Direction direction = random() % 2 == 0 ? Direction::kForward : Direction::kBackward;
    std::unique_ptr<EntryIterator> it = CursorOver(files, direction, options);
    for (int walk = 0; walk < 3; ++walk) {
      std::string lower = options.lower, upper = options.upper;
      IterState state = IterState::kEnd;
      if (walk == 0) {
        state = it->SeekToFirst();
      } else {
        const std::string key = entries[random() % entries.size()].user_key;
        if (direction == Direction::kForward) {
          lower = std::max(lower, key);
        } else {
          upper = upper.empty() ? key : std::min(upper, key);
        }
        state = it->Seek(key);
      }
      std::vector<OwnedEntry> expected = Expected(entries, direction, lower, upper);
      const size_t limit = random() % 3 == 0 ? expected.size() + 1 : random() % (expected.size() + 1);
      std::vector<OwnedEntry> got;
      Status status = co_await ReadAll(*it, state, limit, &got);
      course->held_max = std::max(course->held_max, pool.held_bytes());
      if (!status.ok()) ++course->failed;
      if (status.ok() && expected.size() > limit) expected.resize(limit);
      if (!status.ok()) expected.resize(std::min(got.size(), expected.size()));
      EXPECT_EQ(got, expected) << "round " << round << ", walk " << walk;
    }
    it.reset();
    if (runtime != nullptr && runtime->operations_in_flight() > 0) ++course->left_behind;
  }
  files.clear();
  course->started = pool.started();
}

Task<void> SimulatedRun(SimRuntime& runtime, uint64_t seed, size_t pool_bytes,
                        const std::vector<OwnedEntry>& entries, size_t tables, SimFault fault,
                        Course* course) {
  auto store = co_await LocalObjectStore::Open(runtime.files(), IfMissing::kCreate);
  Status written = co_await WriteOn(**store, entries, tables);
  EXPECT_TRUE(written.ok()) << written.ToString();
  const size_t added = runtime.AddFault(fault);
  ReadAheadPool pool(runtime.background(BackgroundClass::kInput), pool_bytes);
  ReadsApart apart(**store);
  co_await ScanAround(apart, pool, &runtime, seed, entries, tables, course);
  co_await pool.Join();
  course->shared = apart.shared();
  course->faults = runtime.FaultHits(added);
}

Course Simulate(uint64_t seed, size_t pool_bytes, SimFault fault, size_t tables = 1) {
  Course course;
  const std::vector<OwnedEntry> entries = ManyEntries(seed);
  SimDisk disk(seed);
  SimRuntime runtime({.seed = seed}, disk);
  runtime.Run(SimulatedRun(runtime, seed, pool_bytes, entries, tables, fault, &course));
  return course;
}

TEST(ReadAheadTest, EveryScanIsRightAndMayEndWhileReadsAreInFlight) {
  Course total;
  // Few of them pass over a read in flight and start another one in time to get its memory.
  for (uint64_t seed = TestSeed(); seed < TestSeed() + 24; ++seed) {
    SimFault slow{.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kRead)};
    slow.probability = seed % 4 < 2 ? 0.1 : 0.5;
    slow.delay_ns = 30'000'000;
    const Course course = Simulate(seed, kPoolBytes, slow, /*tables=*/seed % 2 == 0 ? 1 : 5);
    ASSERT_EQ(course.shared, 0u);
    EXPECT_EQ(course.failed, 0u);
    total.started += course.started;
    total.left_behind += course.left_behind;
  }
  EXPECT_GT(total.started, 20u);
  EXPECT_GT(total.left_behind, 4u);
}

// covers: F43 F44 F52 F62
TEST(ReadAheadTest, FailedAndDamagedReadsAheadAreReadAgainOrReported) {
  for (SimEffect effect : {SimEffect::kError, SimEffect::kRotOnce, SimEffect::kShort}) {
    SimFault fault{.effect = effect, .operations = SimOps(SimOp::kRead)};
    fault.probability = 0.05;
    for (size_t tables : {1, 5}) {
      const Course course = Simulate(TestSeed(), kPoolBytes, fault, tables);
      if (effect == SimEffect::kShort) EXPECT_EQ(course.failed, 0u);
      EXPECT_GT(course.faults, 1u);
      EXPECT_LT(course.failed, 12u);  // A read that fails now and then fails few scans.
    }
  }
  SimFault broken{.effect = SimEffect::kError, .operations = SimOps(SimOp::kRead)};
  const Course course = Simulate(TestSeed(), kPoolBytes, broken);
  EXPECT_EQ(course.failed, 1u);  // The table could not be opened.
}

TEST(ReadAheadTest, ThePoolBoundsWhatAllCursorsHold) {
  const Course none = Simulate(TestSeed(), 0, SimFault{.operations = 0});
  EXPECT_EQ(none.started, 0u);
  EXPECT_EQ(none.failed, 0u);
  constexpr size_t kLittle = 300 << 10;
  const Course little = Simulate(TestSeed(), kLittle, SimFault{.operations = 0});
  EXPECT_GT(little.started, 0u);
  EXPECT_LE(little.held_max, kLittle);
}

TEST(ReadAheadTest, ABlockedCallerReadsItselfWhatNoHelperHasBegun) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  ASSERT_TRUE(RunBlocking(WriteOn(store, entries, kTables)).ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  Course course;
  RunBlocking(ScanAround(store, pool, nullptr, TestSeed(), entries, kTables, &course));
  EXPECT_EQ(course.failed, 0u);
  EXPECT_GT(course.started, 4u);
  const uint64_t reads = store.reads();
  EXPECT_EQ(helpers.RunAll(), course.started);
  EXPECT_EQ(store.reads(), reads);  // None twice, and none that no cursor waits for.
  RunBlocking(pool.Join());
}

// Reads of a whole table from a store that counts them, with nothing in the cache.
uint64_t ReadsOfAll(Direction direction, uint64_t in_stride, ReadAheadPool* pool = nullptr) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(5);
  EXPECT_TRUE(RunBlocking(WriteOn(store, entries)).ok());
  BlockCache cache(64 << 10);
  auto table = OpenTable(store, cache, kTable);
  EXPECT_TRUE(table.ok());
  EXPECT_GT((*table)->properties().index_blocks, 2u);
  const uint64_t before = store.reads();
  std::unique_ptr<TableIterator> it = (*table)->NewIterator(
      direction, {.caching = IterCaching::kLookOnly, .read_ahead = pool, .read_in_stride = in_stride});
  std::vector<OwnedEntry> got;
  EXPECT_TRUE(RunBlocking(ReadAll(*it, it->SeekToFirst(), entries.size() + 1, &got)).ok());
  EXPECT_EQ(got, Expected(entries, direction, "", ""));
  return store.reads() - before;
}

// Of 256 KiB each but for the last one, and one for all index blocks.
TEST(ReadAheadTest, AScanInStrideReadsLargePiecesFromTheStartAndItsIndexBlocksTogether) {
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    const uint64_t in_stride = ReadsOfAll(direction, 1 << 20);
    EXPECT_LE(in_stride, (3u << 20) / (256 << 10) + 3);
    EXPECT_GE(ReadsOfAll(direction, 0), in_stride + 4);
  }
}

// A long scan has begun the next file before it comes to it: with reads ahead that are done in time it waits
// for none at a file's start, in either direction.
TEST(ReadAheadTest, ALongScanWaitsForNothingWhereOneFileEndsAndTheNextBegins) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed(), /*count=*/20'000);
  ASSERT_TRUE(RunBlocking(WriteOn(store, entries, kTables)).ok());
  BlockCache cache(64 << 10);
  auto files = RunBlocking(OpenAll(store, cache, kTables));
  ASSERT_TRUE(files.ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    auto it = CursorOver(*files, direction, {.caching = IterCaching::kLookOnly, .read_ahead = &pool});
    const std::vector<OwnedEntry> expected = Expected(entries, direction, "", "");
    uint64_t waited_for = 0;  // From the middle of the second file on.
    IterState state = it->SeekToFirst();
    for (size_t i = 0; i < expected.size(); ++i) {
      while (state == IterState::kNeedsIo) {
        const uint64_t before = store.reads();
        ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
        if (i > 3 * expected.size() / kTables / 2) waited_for += store.reads() - before;
        helpers.RunAll();
        state = it->state();
      }
      ASSERT_EQ(state, IterState::kEntry);
      ASSERT_EQ(Copy(it->entry()), expected[i]);
      state = it->Next();
    }
    EXPECT_EQ(state, IterState::kEnd);
    EXPECT_EQ(waited_for, 0u);
  }
  RunBlocking(pool.Join());
}

// covers: F43 F44
TEST(ReadAheadTest, ADamagedIndexOfAFileBegunAheadIsReportedWhereItIs) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  ASSERT_TRUE(RunBlocking(WriteOn(store, entries, /*tables=*/2)).ok());
  BlockCache cache(64 << 10);
  auto files = RunBlocking(OpenAll(store, cache, /*tables=*/2));
  ASSERT_TRUE(files.ok());
  const PartHandle index = IndexRecordHandle((*files)[1].table->top_index().value(0));
  store.bytes((*files)[1].info->id)[index.offset + index.stored_size / 2] ^= 1;
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  auto it = CursorOver(*files, Direction::kForward, {.read_ahead = &pool});
  std::vector<OwnedEntry> got;
  IterState state = it->SeekToFirst();
  Status status;
  while (status.ok() && state != IterState::kEnd) {
    if (state == IterState::kNeedsIo) {
      status = RunBlocking(it->Fetch());
      helpers.RunAll();
      state = it->state();
      continue;
    }
    got.push_back(Copy(it->entry()));
    state = it->Next();
  }
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_EQ(got.size(), (*files)[0].info->entry_count);
  EXPECT_EQ(RunBlocking(it->Fetch()).code(), Code::kCorruption);  // It stays in front of it.
  it.reset();
  RunBlocking(pool.Join());
}

// Many scans at once: those that find no memory left go on in small pieces, which nobody counts.
TEST(ReadAheadTest, AScanThatGetsNoMemoryReadsSmallPieces) {
  LateExecutor helpers;
  ReadAheadPool none(helpers, /*bytes_max=*/0);
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    EXPECT_GE(ReadsOfAll(direction, 1 << 20, &none), (3u << 20) / (20 << 10));
  }
  EXPECT_EQ(none.held_bytes(), 0u);
  ReadAheadPool enough(helpers, kPoolBytes);
  const uint64_t reads = ReadsOfAll(Direction::kForward, 1 << 20, &enough);
  EXPECT_LE(reads, (3u << 20) / (256 << 10) + 3);
  EXPECT_GT(enough.held_bytes(), 0u);  // Kept for the next scan.
  helpers.RunAll();
  RunBlocking(enough.Join());
}

// Parts of equal size, of which some are wanted.
class ListedRoute final : public ReadAheadRoute {
 public:
  explicit ListedRoute(std::vector<PartHandle> parts) : parts_(std::move(parts)) {}
  void Restart() override { at_ = 1; }
  bool IsAtEnd() const override { return at_ == parts_.size(); }
  bool CacheHas(const PartHandle&) const override { return false; }
  std::optional<PartHandle> NextPart() override {
    if (at_ == parts_.size()) return std::nullopt;
    return parts_[at_++];
  }
  const std::vector<PartHandle>& parts() const { return parts_; }

 private:
  std::vector<PartHandle> parts_;
  size_t at_ = 1;
};

TEST(ReadAheadTest, WhatTheRouteLeavesOutIsNotReadAndWhatLiesApartComesInOneBatch) {
  constexpr size_t kPartSize = 8192;
  constexpr size_t kParts = 512;
  MemoryObjectStore store;
  std::string bytes;
  for (size_t i = 0; i < kParts; ++i) bytes.append(kPartSize, static_cast<char>('a' + i % 26));
  store.Put(kTable, bytes);
  auto object = RunBlocking(store.Open(kTable));
  ASSERT_TRUE(object.ok());
  for (size_t step : {1, 2, 3, 7, 40}) {
    std::vector<PartHandle> parts;
    for (size_t i = 0; i < kParts; i += step) {
      parts.push_back({.offset = i * kPartSize, .stored_size = kPartSize, .content_size = kPartSize});
    }
    ListedRoute route(parts);
    const uint64_t before = store.read_bytes();
    ReadAheadWindow window({});
    size_t fetches = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!window.Holds(parts[i])) {
        ++fetches;
        ListedRoute rest(std::vector<PartHandle>(parts.begin() + static_cast<ptrdiff_t>(i), parts.end()));
        ASSERT_TRUE(RunBlocking(window.Fetch(*object, parts[i], rest)).ok());
      }
      ASSERT_EQ(window.Bytes(parts[i]), bytes.substr(parts[i].offset, kPartSize));
    }
    const uint64_t read = store.read_bytes() - before;
    const uint64_t wanted = parts.size() * kPartSize;
    // A gap of one or two parts is read along; a greater one never.
    EXPECT_LE(read, step <= 3 ? kParts * kPartSize : wanted) << step;
    EXPECT_LT(fetches, parts.size() / 2) << step;
  }
}

TEST(ReadAheadTest, ScansOnTheRealDiskAreRightWithBothBackendsOnWorkersAndOnCallers) {
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  for (IoBackend backend : {IoBackend::kUring, IoBackend::kThreads}) {
    ScratchDirectory directory;
    RealRuntimeOptions options;
    options.directory = directory.path();
    options.backend = backend;
    auto runtime = RealRuntime::Open(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    auto store = RunBlocking(LocalObjectStore::Open((*runtime)->files(), IfMissing::kCreate));
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(RunBlocking(WriteOn(**store, entries, kTables)).ok());
    for (bool on_worker : {false, true}) {
      ReadAheadPool pool((*runtime)->background(BackgroundClass::kInput), kPoolBytes);
      Course course;
      Task<void> scans = ScanAround(**store, pool, nullptr, TestSeed(), entries, kTables, &course);
      if (on_worker) {
        TaskGroup group;
        group.Spawn((*runtime)->shard_executor(ShardId(0)), std::move(scans));
        RunBlocking(group.Join());
      } else {
        RunBlocking(std::move(scans));
      }
      RunBlocking(pool.Join());
      EXPECT_EQ(course.failed, 0u);
      EXPECT_GT(course.started, 4u);
    }
    EXPECT_TRUE((*runtime)->Close().ok());
  }
}

}  // namespace
}  // namespace partita
