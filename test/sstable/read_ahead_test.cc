// Cursors that have the next pieces of a table read while they work: on the simulator, in blocking mode with
// helpers that are late or never come, and on the real disk.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/io/local_object_store.h"
#include "engine/io/real_runtime.h"
#include "engine/io/sim_runtime.h"
#include "sstable/level_iterator.h"
#include "sstable/read_ahead_pool.h"
#include "sstable/read_ahead_window.h"
#include "test/sstable/table_fixture.h"
#include "test/support/late_executor.h"
#include "test/support/reads_apart.h"
#include "test/support/scratch_directory.h"

namespace partita {
namespace {

constexpr ObjectId kTable{3};  // The first one; others have the next numbers.
constexpr size_t kPoolBytes = 8 << 20;
constexpr size_t kTables = 5;  // Where a level has several.

// About 3 MiB in blocks of 4 KiB, with more index blocks than one.
std::vector<OwnedEntry> ManyEntries(uint64_t seed, int count = 6000) {
  std::mt19937_64 random(seed);
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(100'000 + i);
    entries.push_back(Put(Key("p", number), 7, RandomBytes(random, 300 + random() % 400)));
  }
  return entries;
}

Task<Status> WriteOn(ObjectStore& store, std::span<const OwnedEntry> entries, ObjectId id = kTable) {
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = id;
  options.block_size = 4096;
  auto created = co_await TableWriter::Create(store, std::move(options));
  if (!created.ok()) co_return created.status();
  for (const OwnedEntry& entry : entries) {
    PARTITA_CO_TRY((*created)->Add(entry.view()));
    if ((*created)->NeedsDrain()) PARTITA_CO_TRY(co_await (*created)->Drain());
  }
  Result<TableInfo> info = co_await (*created)->Finish();
  co_return info.status();
}

// Into so many tables, one behind the other.
Task<Status> WriteOn(ObjectStore& store, const std::vector<OwnedEntry>& entries, size_t tables) {
  const size_t share = entries.size() / tables + 1;
  for (size_t i = 0; i < tables; ++i) {
    const size_t begin = i * share;
    const auto part = std::span(entries).subspan(begin, std::min(share, entries.size() - begin));
    PARTITA_CO_TRY(co_await WriteOn(store, part, ObjectId(kTable.value + i)));
  }
  co_return Status();
}

Task<Result<std::vector<FileRef>>> OpenAll(ObjectStore& store, BlockCache& cache, size_t tables) {
  std::vector<FileRef> files;
  for (size_t i = 0; i < tables; ++i) {
    auto opened = co_await TableReader::Open(store, cache, kTestStore, ObjectId(kTable.value + i));
    if (!opened.ok()) co_return opened.status();
    FileRef file;
    file.table = *opened;
    file.info = (*opened)->info();
    files.push_back(std::move(file));
  }
  co_return files;
}

// Over one table, or over several as a level has them.
std::unique_ptr<EntryIterator> CursorOver(const std::vector<FileRef>& files, Direction direction,
                                          const IterOptions& options) {
  if (files.size() == 1) return NewFileIterator(files[0], direction, options);
  std::vector<const FileRef*> within;
  for (const FileRef& file : files) {
    if (file.OverlapsBounds(options.lower, options.upper)) within.push_back(&file);
  }
  return std::make_unique<LevelIterator>(std::move(within), direction, options);
}

Task<Status> ReadAll(EntryIterator& it, IterState state, size_t limit, std::vector<OwnedEntry>* out) {
  while (state != IterState::kEnd && out->size() < limit) {
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await it.Fetch());
      state = it.state();
      continue;
    }
    out->push_back(Copy(it.entry()));
    state = it.Next();
  }
  co_return Status();
}

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

// A scan of `limit` entries, from `first` on.
struct ShortScan {
  uint64_t limit = 100;
  size_t first = 0;
  uint64_t expected = 0;  // IterOptions::entries_expected.
  double share = 1;
  bool bounded = false;  // Its far bound is behind the last one.
  // So many from `first` + cached_from on were read before.
  size_t cached_from = 0, cached = 0;
};
struct Reads {
  uint64_t bytes = 0;
  uint64_t count = 0;
};

// What it reads of one table, whose index blocks are in the cache.
Reads ReadsOf(const ShortScan& scan) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  EXPECT_TRUE(RunBlocking(WriteOn(store, entries)).ok());
  BlockCache cache(8 << 20);
  auto files = RunBlocking(OpenAll(store, cache, /*tables=*/1));
  EXPECT_TRUE(files.ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  const auto walk = [&](size_t first, size_t limit, IterCaching caching, IterOptions options) {
    options.caching = caching;
    options.read_ahead = &pool;
    options.lower = entries[first].user_key;
    auto it = CursorOver(*files, Direction::kForward, options);
    std::vector<OwnedEntry> got;
    EXPECT_TRUE(RunBlocking(ReadAll(*it, it->SeekToFirst(), limit, &got)).ok());
    EXPECT_EQ(got.size(), limit);
  };
  // Reading the last key of each index block leaves the index block in the cache, and the one data block.
  const TableReader& table = *(*files)[0].table;
  for (uint32_t i = 0; i < table.top_index().size(); ++i) {
    std::string key;
    table.top_index().KeyTo(i, &key);
    BlockPin pin;
    EXPECT_TRUE(RunBlocking(table.Get(HashKey(key), key, kVersionMax, &pin)).ok());
  }
  if (scan.cached > 0) {
    const size_t begin = scan.first + scan.cached_from;
    walk(begin, scan.cached, IterCaching::kFill, {.upper = entries[begin + scan.cached].user_key});
  }
  const uint64_t bytes = store.read_bytes(), count = store.reads();
  IterOptions options{.entries_expected = scan.expected, .expected_share = scan.share};
  if (scan.bounded) options.upper = entries[scan.first + scan.limit].user_key;
  walk(scan.first, scan.limit, IterCaching::kLookOnly, options);
  const Reads reads{store.read_bytes() - bytes, store.reads() - count};
  helpers.RunAll();
  RunBlocking(pool.Join());
  return reads;
}

constexpr uint64_t kShortEntryBytes = 530;  // About.
constexpr uint64_t kSlackBytes = 24 << 10;

TEST(ReadAheadTest, AScanWhoseEndIsKnownReadsAllOfItAtOnce) {
  for (const size_t first : {0, 777, 2500}) {
    const Reads bounded = ReadsOf({.limit = 100, .first = first, .bounded = true});
    EXPECT_EQ(bounded.count, 1u);
    EXPECT_LT(bounded.bytes, 100 * kShortEntryBytes + kSlackBytes);
    const Reads expected = ReadsOf({.limit = 100, .first = first, .expected = 100});
    EXPECT_LE(expected.count, 2u);  // Its entries may be larger than others.
    EXPECT_LT(expected.bytes, 100 * kShortEntryBytes + 2 * kSlackBytes);
    // The bound is nearer than what is expected, and the other way round.
    const Reads few = ReadsOf({.limit = 20, .first = first, .expected = 1000, .bounded = true});
    EXPECT_EQ(few.count, 1u);
    EXPECT_LT(few.bytes, 20 * kShortEntryBytes + kSlackBytes);
    EXPECT_GT(ReadsOf({.limit = 100, .first = first}).count, 2u);
  }
  // A range too large for one piece begins with little, as its reader may have enough soon.
  EXPECT_GT(ReadsOf({.limit = 1000, .bounded = true}).count, 4u);
}

TEST(ReadAheadTest, WhatTheCacheHasIsNotReadAlongWithTheFirstPiece) {
  const Reads none = ReadsOf({.limit = 100, .bounded = true});
  const Reads front = ReadsOf({.limit = 100, .bounded = true, .cached = 60});
  EXPECT_EQ(front.count, 1u);
  EXPECT_LT(front.bytes, none.bytes * 6 / 10);
  EXPECT_EQ(ReadsOf({.limit = 100, .bounded = true, .cached = 100}).bytes, 0u);
  // What it has does not make the scan look for more behind it.
  const Reads ahead = ReadsOf({.limit = 10, .expected = 20, .cached_from = 12, .cached = 3000});
  EXPECT_EQ(ahead.count, 1u);
  EXPECT_LT(ahead.bytes, kSlackBytes);
  // What the scan used of the cache is no more to come.
  EXPECT_LT(ReadsOf({.limit = 300, .expected = 300, .cached = 280}).bytes,
            20 * kShortEntryBytes + kSlackBytes);
  EXPECT_LT(ReadsOf({.limit = 1000, .expected = 1000, .cached_from = 40, .cached = 900}).bytes,
            100 * kShortEntryBytes + 5 * kSlackBytes);
}

// One of many cursors that go on together: of what is expected of all it reads its own share at first.
TEST(ReadAheadTest, ACursorWithAShareOfTheScanBeginsWithThatMuch) {
  EXPECT_LT(ReadsOf({.limit = 3, .expected = 200, .share = 0.01}).bytes, kSlackBytes);
  EXPECT_LT(ReadsOf({.limit = 3, .expected = 200, .share = 0.3}).bytes, 60 * kShortEntryBytes + kSlackBytes);
  EXPECT_GT(ReadsOf({.limit = 3, .expected = 200}).bytes, 200 * kShortEntryBytes);
}

TEST(ReadAheadTest, AScanThatUsesMoreThanItExpectedGoesOnAsOneThatExpectedNothing) {
  const Reads reads = ReadsOf({.limit = 5000, .expected = 10});
  EXPECT_LE(reads.count, ReadsOf({.limit = 5000}).count + 3);
}

// Bytes read by a scan of `limit` entries, from `first` on, that says how many it will use, or does not.
uint64_t BytesRead(uint64_t limit, uint64_t entries_expected, size_t tables = 1, size_t first = 0) {
  MemoryObjectStore store;
  const std::vector<OwnedEntry> entries = ManyEntries(TestSeed());
  EXPECT_TRUE(RunBlocking(WriteOn(store, entries, tables)).ok());
  BlockCache cache(1 << 20);
  auto files = RunBlocking(OpenAll(store, cache, tables));
  EXPECT_TRUE(files.ok());
  LateExecutor helpers;
  ReadAheadPool pool(helpers, kPoolBytes);
  const uint64_t before = store.read_bytes();
  {
    auto it = CursorOver(
        *files, Direction::kForward,
        {.lower = entries[first].user_key, .read_ahead = &pool, .entries_expected = entries_expected});
    std::vector<OwnedEntry> got;
    EXPECT_TRUE(RunBlocking(ReadAll(*it, it->SeekToFirst(), limit, &got)).ok());
    EXPECT_EQ(got.size(), limit);
  }
  helpers.RunAll();
  RunBlocking(pool.Join());
  return store.read_bytes() - before;
}

TEST(ReadAheadTest, AShortScanReadsLittleMoreThanItUses) {
  constexpr uint64_t kEntryBytes = 560;  // About, with its share of the index.
  EXPECT_LT(BytesRead(100, 100), 2 * 100 * kEntryBytes + (32 << 10));
  EXPECT_LT(BytesRead(100, 0), 2 * 100 * kEntryBytes + (32 << 10));
  EXPECT_LT(BytesRead(1000, 1000), 3 * 1000 * kEntryBytes / 2);
  EXPECT_LT(BytesRead(1000, 0), 3 * 1000 * kEntryBytes);
  // Where it ends, and where it goes on in the next file.
  EXPECT_LT(BytesRead(1000, 1000, /*tables=*/3, /*first=*/980), 7 * 1000 * kEntryBytes / 4);
  EXPECT_LT(BytesRead(1000, 1000, /*tables=*/3, /*first=*/1400), 7 * 1000 * kEntryBytes / 4);
  EXPECT_LT(BytesRead(590, 0, /*tables=*/3, /*first=*/1400), 3 * 590 * kEntryBytes);
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
  store.bytes((*files)[1].info.id)[index.offset + index.stored_size / 2] ^= 1;
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
  EXPECT_EQ(got.size(), (*files)[0].info.entry_count);
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
