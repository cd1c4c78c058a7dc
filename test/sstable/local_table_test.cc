// Tables on the local object store: on the simulator, where every read and write suspends, fails or is
// cut off by a crash; and on the real disk.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "engine/io/local_object_store.h"
#include "engine/io/real_runtime.h"
#include "engine/io/sim_runtime.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

constexpr ObjectId kLocalTable{12};

std::vector<OwnedEntry> SomeEntries(uint64_t seed) {
  std::mt19937_64 random(seed);
  return RandomEntries(random, 400, 6000);
}

Task<Result<TableInfo>> Write(ObjectStore& store, const std::vector<OwnedEntry>& entries) {
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = kLocalTable;
  options.codec = Codec::kLz4;
  options.block_size = 4096;
  auto created = co_await TableWriter::Create(store, std::move(options));
  if (!created.ok()) co_return created.status();
  std::unique_ptr<TableWriter> writer = std::move(created).value();
  Status status;
  for (size_t i = 0; i < entries.size() && status.ok(); ++i) {
    status = writer->Add(entries[i].view());
    if (status.ok() && (writer->NeedsDrain() || i % 50 == 0)) status = co_await writer->Drain();
  }
  if (status.ok()) {
    Result<TableInfo> info = co_await writer->Finish();
    if (info.ok()) co_return info;
    status = info.status();
  }
  co_await writer->Abandon();
  co_return status;
}

// Looks every entry up and scans both ways; ok when all is as written.
Task<Status> ReadBack(ObjectStore& store, const std::vector<OwnedEntry>& entries) {
  BlockCache cache(128 << 10);
  auto opened = co_await TableReader::Open(store, cache, kTestStore, kLocalTable);
  if (!opened.ok()) co_return opened.status();
  std::shared_ptr<TableReader> table = std::move(opened).value();
  for (const OwnedEntry& entry : entries) {
    BlockPin pin;
    Result<Lookup> got = co_await table->Get(HashKey(entry.user_key), entry.user_key, entry.version, &pin);
    if (!got.ok()) co_return got.status();
    EXPECT_EQ(got->version, entry.version);
    if (entry.kind == EntryKind::kPut) EXPECT_EQ(got->value, entry.value);
  }
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    auto it = table->NewIterator(direction, {.caching = IterCaching::kLookOnly, .lower = "", .upper = ""});
    const std::vector<OwnedEntry> expected = Expected(entries, direction, "", "");
    size_t at = 0;
    IterState state = it->SeekToFirst();
    while (state != IterState::kEnd) {
      if (state == IterState::kNeedsIo) {
        Status fetched = co_await it->Fetch();
        if (!fetched.ok()) co_return fetched;
        state = it->state();
        continue;
      }
      if (at >= expected.size() || Copy(it->entry()) != expected[at])
        co_return Status::Unknown("a wrong entry");
      ++at;
      state = it->Next();
    }
    EXPECT_EQ(at, expected.size());
  }
  TableVerifyReport report;
  co_return co_await table->Verify(&report);
}

Task<void> WriteOn(FileSystem& files, const std::vector<OwnedEntry>& entries, bool* finished) {
  auto store = co_await LocalObjectStore::Open(files, IfMissing::kCreate);
  if (!store.ok()) co_return;
  Result<TableInfo> info = co_await Write(**store, entries);
  *finished = info.ok();
}

Task<Status> ReadOn(FileSystem& files, const std::vector<OwnedEntry>& entries) {
  auto store = co_await LocalObjectStore::Open(files, IfMissing::kCreate);
  if (!store.ok()) co_return store.status();
  co_return co_await ReadBack(**store, entries);
}

// covers: F25 F40
TEST(LocalTableTest, AFinishedTableSurvivesAPowerCutAtAnyOperationAndAnUnfinishedOneIsNeverTaken) {
  const uint64_t seed = TestSeed();
  const std::vector<OwnedEntry> entries = SomeEntries(seed);
  size_t finished_runs = 0, cut_runs = 0;
  for (uint64_t crash_at = 1; finished_runs < 2 && crash_at < 200; ++crash_at) {
    SimDisk disk(seed + crash_at);
    bool finished = false, crashed = false;
    {
      SimRuntime runtime({.seed = seed + crash_at}, disk);
      runtime.CrashAtOperation(crash_at, crash_at % 2 ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
      runtime.Run(WriteOn(runtime.files(), entries, &finished));
      crashed = runtime.crashed();
    }
    disk.CrashPower();
    SimRuntime again({.seed = seed}, disk);
    const Status read = again.RunToEnd(ReadOn(again.files(), entries));
    if (finished) {
      ++finished_runs;
      EXPECT_TRUE(read.ok()) << "crash at " << crash_at << ": " << read.ToString();
    } else {
      ++cut_runs;
      // Whole by luck, absent, or refused; never wrong.
      EXPECT_TRUE(read.ok() || read.code() == Code::kCorruption || read.code() == Code::kNotFound)
          << "crash at " << crash_at << ": " << read.ToString();
      EXPECT_TRUE(crashed);
    }
  }
  EXPECT_GE(finished_runs, 2u);
  EXPECT_GT(cut_runs, 5u);
}

// covers: F52
TEST(LocalTableTest, BitsThatFlipOnTheWayAreReadAgain) {
  const uint64_t seed = TestSeed();
  const std::vector<OwnedEntry> entries = SomeEntries(seed);
  SimDisk disk(seed);
  SimRuntime runtime({.seed = seed}, disk);
  bool finished = false;
  runtime.Run(WriteOn(runtime.files(), entries, &finished));
  ASSERT_TRUE(finished);
  SimFault flip;
  flip.effect = SimEffect::kRotOnce;
  flip.operations = SimOps(SimOp::kRead);
  flip.probability = 0.02;
  flip.count = 5;
  const size_t fault = runtime.AddFault(flip);
  const Status read = runtime.RunToEnd(ReadOn(runtime.files(), entries));
  EXPECT_TRUE(read.ok()) << read.ToString();
  EXPECT_GT(runtime.FaultHits(fault), 0u);
}

TEST(LocalTableTest, TablesWorkOnTheRealDiskWithBothBackends) {
  const std::vector<OwnedEntry> entries = SomeEntries(TestSeed());
  for (IoBackend backend : {IoBackend::kUring, IoBackend::kThreads}) {
    std::string directory = (std::filesystem::temp_directory_path() / "partita-sstable-XXXXXX").string();
    ASSERT_NE(mkdtemp(directory.data()), nullptr);
    RealRuntimeOptions options;
    options.directory = directory;
    options.backend = backend;
    auto runtime = RealRuntime::Open(options);
    ASSERT_TRUE(runtime.ok()) << runtime.status().ToString();
    bool finished = false;
    (*runtime)->Run(WriteOn((*runtime)->files(), entries, &finished));
    EXPECT_TRUE(finished);
    const Status read = (*runtime)->RunToEnd(ReadOn((*runtime)->files(), entries));
    EXPECT_TRUE(read.ok()) << read.ToString();
    EXPECT_TRUE((*runtime)->Close().ok());
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace partita
