// Scans of several ranges whose later ranges other shards scan ahead: on the simulator, in any order of
// events.
#include "engine/scan_ahead.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/store.h"

namespace partita {
namespace {

constexpr int kAheadPartitions = 12;
constexpr int kRowsOfEach = 40;

// One row in five passes.
bool IsWanted(std::string_view content) { return content.substr(0, 1) == "y"; }

// What sieves were asked of, over all threads.
struct Sieved {
  int made = 0;
  int rows = 0;
  std::string first;  // The first key in order that passed.
  bool goes_on = true;
};

class CountingSieve : public RowSieve {
 public:
  explicit CountingSieve(Sieved* sieved) : sieved_(sieved) { ++sieved_->made; }
  uint64_t Wanted(std::span<const KeylessRow> rows) override {
    sieved_->rows += static_cast<int>(rows.size());
    uint64_t wanted = 0;
    for (size_t i = 0; i < rows.size(); ++i) wanted |= uint64_t{IsWanted(rows[i].content)} << i;
    return wanted;
  }
  bool Passes(std::string_view user_key, Version, std::string_view content) override {
    if (IsWanted(content) && (sieved_->first.empty() || user_key < sieved_->first)) sieved_->first = user_key;
    return IsWanted(content);
  }
  bool GoOn() override { return sieved_->goes_on; }

 private:
  Sieved* sieved_;
};

class SievedSink : public RowSink {
 public:
  explicit SievedSink(Sieved* sieved) : sieved_(sieved) {}
  Verdict Add(std::string_view user_key, Version, std::string_view content) override {
    if (!IsWanted(content)) return Verdict::kPassed;
    if (static_cast<int>(keys.size()) >= enough) return Verdict::kStop;
    keys.emplace_back(user_key);
    return Verdict::kTaken;
  }
  bool GoOn() override { return sieved_->goes_on; }
  std::unique_ptr<RowSieve> NewSieve(const std::function<uint64_t()>& rows_expected) override {
    ++asked;
    if (weighs && keys.size() + rows_expected() >= static_cast<size_t>(enough)) return nullptr;
    return sieves ? std::make_unique<CountingSieve>(sieved_) : nullptr;
  }

  std::vector<std::string> keys;
  int enough = INT32_MAX;
  bool weighs = false;  // Wants no sieve where the range in turn has enough.
  int asked = 0;
  bool sieves = true;

 private:
  Sieved* sieved_;
};

// A table of many ranges on three shards, opened anew, with nothing in the cache, so that a scan lasts.
class AheadWorld {
 public:
  explicit AheadWorld(uint64_t seed) : random_(seed), disk_(seed) {
    Begin(seed);
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "rows";
    spec.raw = true;
    for (int i = 1; i < kAheadPartitions; i += 2) spec.split_partitions.push_back(Partition(i));
    table_ = runtime_->RunToEnd(store_->CreateTable(spec))->id;
    for (int partition = 0; partition < kAheadPartitions; ++partition) {
      for (int row = 0; row < kRowsOfEach; ++row) {
        const bool passes = random_() % 5 == 0;
        const std::string key = Key(partition, row);
        runtime_->Run(Write(key, (passes ? "y" : "n") + std::string(200, 'x')));
        if (passes) matching_.insert(key);
      }
      if (partition % 4 == 1) EXPECT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
    }
    EXPECT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
    Reopen(seed + 1);
  }
  ~AheadWorld() { EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok()); }

  void Reopen(uint64_t seed) {
    EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
    store_.reset();
    runtime_.reset();
    Begin(seed);
  }

  static std::string Partition(int i) { return "p" + std::to_string(100 + i); }
  std::string Key(int partition, int row) const {
    return EncodeUserKey(table_, Partition(partition), std::to_string(100 + row));
  }
  Task<void> Write(std::string key, std::string content) {
    WriteOp op;
    op.user_key = key;
    op.kind = WriteKind::kPut;
    op.content = content;
    WriteRequest request;
    request.table = table_;
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = DurabilityLevel::kMemory;
    const WriteOutcome outcome = co_await store_->Write(request);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  }
  // Rows that do not match come and go beside a scan.
  static Task<void> Disturb(AheadWorld* world, int writes) {
    for (int i = 0; i < writes; ++i) {
      co_await world->Write(world->Key(i % kAheadPartitions, kRowsOfEach + i), "n");
      co_await SleepFor(100'000);
    }
  }
  static Task<Result<ScanAnswer>> ScanBesideWrites(AheadWorld* world, const ScanRequest& request,
                                                   SievedSink* taker) {
    TaskGroup group;
    group.Spawn(world->runtime_->client(1), Disturb(world, 10));
    Result<ScanAnswer> answer = co_await world->store_->Scan(request, taker);
    co_await group.Join();
    co_return answer;
  }

  static Task<void> ScanInto(AheadWorld* world, SievedSink* taker, bool* ended) {
    const ScanRequest request = world->Whole(Direction::kForward);
    const Result<ScanAnswer> answer = co_await world->store_->Scan(request, taker);
    EXPECT_TRUE(answer.ok()) << answer.status().ToString();
    *ended = true;
  }
  // Whether the first, which begins earlier, still went on when the second had lasted long enough to get
  // help.
  static Task<bool> ScanBesideScan(AheadWorld* world, SievedSink* first, SievedSink* second) {
    TaskGroup group;
    bool first_ended = false, second_ended = false;
    group.Spawn(world->runtime_->client(1), ScanInto(world, first, &first_ended));
    co_await SleepFor(2 * ScanAhead::kStartAfterNanos);
    group.Spawn(world->runtime_->client(0), ScanInto(world, second, &second_ended));
    co_await SleepFor(2 * ScanAhead::kStartAfterNanos);
    const bool was_beside = !first_ended;
    co_await group.Join();
    co_return was_beside;
  }

  ScanRequest Whole(Direction direction) const {
    ScanRequest request;
    request.lower = TableLowerBound(table_);
    request.upper = TableUpperBound(table_);
    request.direction = direction;
    request.limit = UINT32_MAX;
    request.bytes_limit = UINT64_MAX;
    request.entries_per_slice = 4;
    return request;
  }
  std::vector<std::string> Expected(Direction direction) const {
    std::vector<std::string> keys(matching_.begin(), matching_.end());
    if (direction == Direction::kBackward) std::reverse(keys.begin(), keys.end());
    return keys;
  }

  std::mt19937_64 random_;
  SimDisk disk_;
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<Store> store_;
  TableId table_;
  std::set<std::string> matching_;

 private:
  void Begin(uint64_t seed) {
    SimOptions options{.seed = seed, .shards = 3};
    options.read = {300'000, 900'000};
    runtime_ = std::make_unique<SimRuntime>(options, disk_);
    StoreOptions store_options;
    store_options.create_if_missing = true;
    store_options.memory_bytes = 64u << 20;
    store_options.shards = 3;
    store_options.log_segment_bytes = 256u << 10;
    store_options.log_tail_bytes = 64u << 10;
    store_ = std::move(runtime_->RunToEnd(Store::Open(*runtime_, store_options))).value();
  }
};

// covers: F14
TEST(ScanAheadTest, PagesJoinedAreTheRowsThatPassInKeyOrderWhoeverScannedThem) {
  Sieved sieved;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    AheadWorld world(seed);
    const Direction direction = seed % 2 == 0 ? Direction::kForward : Direction::kBackward;
    ScanRequest request = world.Whole(direction);
    const bool in_pages = seed % 3 != 0;
    SievedSink all(&sieved);
    int pages = 0;
    for (bool done = false; !done; ++pages) {
      ASSERT_LT(pages, 500);
      SievedSink taker(&sieved);
      if (in_pages && pages % 3 == 0) taker.enough = 1 + static_cast<int>(world.random_() % 30);
      if (in_pages && pages % 3 == 1) request.limit = 1 + world.random_() % 30;
      if (in_pages && pages % 3 == 2) request.bytes_limit = 1 + world.random_() % 6000;
      Result<ScanAnswer> answer =
          world.runtime_->RunToEnd(AheadWorld::ScanBesideWrites(&world, request, &taker));
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      ASSERT_EQ(answer->rows, taker.keys.size());
      all.keys.insert(all.keys.end(), taker.keys.begin(), taker.keys.end());
      done = answer->done;
      request.limit = UINT32_MAX;
      request.bytes_limit = UINT64_MAX;
      (direction == Direction::kForward ? request.lower : request.upper) = answer->next_key;
      if (pages == 3) world.Reopen(seed + 100);
    }
    ASSERT_EQ(all.keys, world.Expected(direction)) << "seed " << seed;
  }
  EXPECT_GT(sieved.made, 24);
  EXPECT_GT(sieved.rows, 1000);
}

TEST(ScanAheadTest, NothingIsScannedAheadWithoutASieveOrWithinOneRange) {
  Sieved sieved;
  AheadWorld world(3);
  SievedSink whole(&sieved);
  whole.sieves = false;
  ASSERT_TRUE(world.runtime_->RunToEnd(world.store_->Scan(world.Whole(Direction::kForward), &whole)).ok());
  EXPECT_EQ(whole.keys, world.Expected(Direction::kForward));
  ScanRequest one = world.Whole(Direction::kForward);
  one.lower = world.Key(3, 0);
  one.upper = world.Key(4, 0);
  world.Reopen(4);
  SievedSink part(&sieved);
  ASSERT_TRUE(world.runtime_->RunToEnd(world.store_->Scan(one, &part)).ok());
  EXPECT_FALSE(part.keys.empty());
  EXPECT_EQ(sieved.made, 0);
}

// A scan may be behind many small ranges before it lasts: they are not scanned once more.
TEST(ScanAheadTest, OthersBeginWhereTheScanIsByThen) {
  constexpr int kCached = 6;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Sieved sieved;
    AheadWorld world(seed);
    ScanRequest front = world.Whole(Direction::kForward);
    front.upper = world.Key(kCached, kRowsOfEach - 1);
    SievedSink first(&sieved);
    first.sieves = false;
    ASSERT_TRUE(world.runtime_->RunToEnd(world.store_->Scan(front, &first)).ok());
    SievedSink all(&sieved);
    ASSERT_TRUE(world.runtime_->RunToEnd(world.store_->Scan(world.Whole(Direction::kForward), &all)).ok());
    EXPECT_EQ(all.keys, world.Expected(Direction::kForward));
    EXPECT_GT(sieved.rows, 0);
    EXPECT_GT(sieved.first, world.Key(kCached, 0)) << seed;
  }
}

// It would be thrown away, and done again for the next page.
TEST(ScanAheadTest, NobodyScansAheadOfAPageThatTheRangeInTurnFills) {
  int asked = 0, helped = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Sieved sieved;
    AheadWorld world(seed);
    SievedSink page(&sieved);
    page.enough = 4;  // Of some 16 that the first range has.
    page.weighs = true;
    ScanRequest request = world.Whole(Direction::kForward);
    request.entries_per_slice = 16;
    const Result<ScanAnswer> answer = world.runtime_->RunToEnd(world.store_->Scan(request, &page));
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(page.keys.size(), 4u);
    asked += page.asked;
    helped += sieved.made > 0;
  }
  EXPECT_GT(asked, 4);
  EXPECT_LE(helped, 1);  // Where none of the first rows passes, the range is taken to have none.
}

// There are few slots, and a store of this size has one.
TEST(ScanAheadTest, AScanThatWantsNoHelpTakesNoSlot) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Sieved sieved;
    AheadWorld world(seed);
    SievedSink plain(&sieved), sieving(&sieved);
    plain.sieves = false;
    const bool was_beside = world.runtime_->RunToEnd(AheadWorld::ScanBesideScan(&world, &plain, &sieving));
    EXPECT_EQ(plain.keys, world.Expected(Direction::kForward));
    EXPECT_EQ(sieving.keys, world.Expected(Direction::kForward));
    EXPECT_TRUE(was_beside);
    EXPECT_GT(sieved.rows, 0) << seed;
  }
}

TEST(ScanAheadTest, AScanThatIsGivenUpStopsTheOthers) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Sieved sieved;
    uint64_t completed = 0;  // Counted until the world is gone.
    AheadWorld world(seed);
    SievedSink taker(&sieved);
    // Gives up a little after others began.
    world.runtime_->OnCompletion([&](const SimOperationRecord&) {
      if (sieved.made > 0 && ++completed == 2) sieved.goes_on = false;
    });
    Result<ScanAnswer> answer =
        world.runtime_->RunToEnd(world.store_->Scan(world.Whole(Direction::kForward), &taker));
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_FALSE(answer->done);
    EXPECT_GT(sieved.made, 0);
    EXPECT_LT(taker.keys.size(), world.matching_.size());
    EXPECT_EQ(
        std::vector<std::string>(taker.keys),
        std::vector<std::string>(world.matching_.begin(),
                                 std::next(world.matching_.begin(), static_cast<long>(taker.keys.size()))));
  }
}

// covers: F43 F44
TEST(ScanAheadTest, DamageAheadIsMetInItsTurnOnly) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Sieved sieved;
    AheadWorld world(seed);
    const SimFault broken{.effect = SimEffect::kError, .operations = SimOps(SimOp::kRead), .skip = seed * 2};
    const size_t fault = world.runtime_->AddFault(broken);
    SievedSink taker(&sieved);
    Result<ScanAnswer> answer =
        world.runtime_->RunToEnd(world.store_->Scan(world.Whole(Direction::kForward), &taker));
    EXPECT_GT(world.runtime_->FaultHits(fault), 0u);
    world.runtime_->ClearFaults();
    if (answer.ok()) {
      // A prefix, and where it goes on is behind the last row given and not behind the next one.
      EXPECT_FALSE(answer->done);
      EXPECT_EQ(answer->rows, taker.keys.size());
      ScanRequest rest = world.Whole(Direction::kForward);
      rest.lower = answer->next_key;
      answer = world.runtime_->RunToEnd(world.store_->Scan(rest, &taker));
      ASSERT_TRUE(answer.ok() && answer->done) << answer.status().ToString();
      EXPECT_EQ(taker.keys, world.Expected(Direction::kForward));
    } else {
      EXPECT_EQ(answer.code(), Code::kCorruption) << answer.status().ToString();
      EXPECT_TRUE(taker.keys.empty());
    }
  }
}

// covers: F26
TEST(ScanAheadTest, AReadThatHangsIsWaitedForOnce) {
  int worked_ahead = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Sieved sieved;
    AheadWorld world(seed);
    const SimFault slow{.effect = SimEffect::kSlow,
                        .operations = SimOps(SimOp::kRead),
                        .skip = seed * 2,
                        .delay_ns = 1'000'000'000'000};
    const size_t fault = world.runtime_->AddFault(slow);
    SievedSink taker(&sieved);
    const uint64_t begun = world.runtime_->now_ns();
    Result<ScanAnswer> answer =
        world.runtime_->RunToEnd(world.store_->Scan(world.Whole(Direction::kForward), &taker));
    EXPECT_LT(world.runtime_->now_ns() - begun, 32'000'000'000u) << seed;
    EXPECT_FALSE(answer.ok() && answer->done);
    if (!answer.ok()) EXPECT_EQ(answer.code(), Code::kDeadlineExceeded) << answer.status().ToString();
    worked_ahead += sieved.made > 0;
    EXPECT_GT(world.runtime_->FaultHits(fault), 0u);
    world.runtime_->ClearFaults();
  }
  EXPECT_GT(worked_ahead, 0);
}

}  // namespace
}  // namespace partita
