#include "engine/load_sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/checksum.h"
#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/recent_load.h"
#include "test/support/hand_set_clock.h"

namespace partita {
namespace {

constexpr uint64_t kMilli = 1'000'000;

// Sums by partition.
class Sums : public LoadConsumer {
 public:
  void Take(std::span<const LoadSample> samples) override {
    for (const LoadSample& sample : samples) {
      ++count;
      Load& load = loads[std::string(sample.partition())];
      load.Add({sample.weight, sample.weight * sample.rows, sample.weight * static_cast<double>(sample.bytes),
                sample.weight * sample.cpu_ns});
      last = sample;
    }
  }
  std::map<std::string, Load> loads;
  LoadSample last;
  uint64_t count = 0;
};

std::string Key(const std::string& partition, const std::string& row = "r") {
  return EncodeUserKey(TableId(7), partition, row);
}
std::string Prefix(const std::string& partition) { return std::string(PartitionPrefix(Key(partition))); }

class LoadSamplerTest : public testing::Test {
 protected:
  LoadSamplerTest() { sampler_.AddConsumer(&sums_); }
  void Pass(uint64_t nanos) {
    clock_.now_ns += nanos;
    sampler_.Collect();
  }

  HandSetClock clock_;
  uint64_t wakes_ = 0;
  LoadSampler sampler_{clock_, [this] { ++wakes_; }};
  Sums sums_;
};

TEST_F(LoadSamplerTest, AFewCallsAreAllSampledExactly) {
  for (int i = 0; i < 20; ++i) sampler_.Note(LoadKind::kRead, Key("a"), 1, 100, 700);
  sampler_.Note(LoadKind::kWrite, Key("b"), 5, 500, 9'000);
  sampler_.Collect();
  const Load& a = sums_.loads[Prefix("a")];
  EXPECT_DOUBLE_EQ(a.calls, 20);
  EXPECT_DOUBLE_EQ(a.bytes, 2'000);
  EXPECT_DOUBLE_EQ(a.cpu_ns, 14'000);
  EXPECT_DOUBLE_EQ(sums_.loads[Prefix("b")].rows, 5);
  EXPECT_DOUBLE_EQ(sums_.loads[Prefix("b")].calls, 1);
}

// Whatever the sizes of the calls: reads, transactions, slices, large values. Of 40,000 samples an eighth are
// reads, so these are known to 1.3 per cent (one standard deviation), the rows of the others to 0.6.
TEST_F(LoadSamplerTest, WhatIsSampledStandsForAll) {
  const std::string read_key = Key("read"), write_key = Key("write"), scan_key = Key("scan"),
                    large_key = Key("large");
  for (int i = 0; i < 8'000'000; ++i) {
    sampler_.Note(LoadKind::kRead, read_key, 1, 90, 500);
    if (i % 10 == 0) sampler_.Note(LoadKind::kWrite, write_key, 37, 3'000, 20'000);
    if (i % 20 == 0) sampler_.Note(LoadKind::kScan, scan_key, 64, 0, 3'000);
    if (i % 5'000 == 0) sampler_.Note(LoadKind::kRead, large_key, 1, 60'000, 10'000);
    if (i % 20'000 == 0) Pass(25 * kMilli);
  }
  Pass(25 * kMilli);
  EXPECT_NEAR(sums_.loads[Prefix("read")].calls, 8e6, 8e6 * 0.04);
  EXPECT_NEAR(sums_.loads[Prefix("read")].cpu_ns, 4e9, 4e9 * 0.04);
  EXPECT_NEAR(sums_.loads[Prefix("write")].rows, 29.6e6, 29.6e6 * 0.02);
  EXPECT_NEAR(sums_.loads[Prefix("write")].calls, 8e5, 8e5 * 0.02);
  EXPECT_NEAR(sums_.loads[Prefix("scan")].rows, 25.6e6, 25.6e6 * 0.02);
  EXPECT_NEAR(sums_.loads[Prefix("large")].bytes, 1'600 * 6e4, 1'600 * 6e4 * 0.2);
  EXPECT_EQ(sampler_.statistics().lost, 0u);
  EXPECT_LT(sums_.count, 401u * 200);
}

// However slow its calls are: of few all leave a sample, of more a sixteenth, as long as that is enough.
TEST_F(LoadSamplerTest, ASlowThreadLeavesNoMoreSamplesThanAreOfUse) {
  for (const auto& [calls, least, most] :
       {std::array{20, 20, 20}, {400, 15, 45}, {1'600, 60, 140}, {16'000, 60, 150}}) {
    uint64_t before = 0;
    for (int round = 0; round < 11; ++round) {
      if (round == 1) before = sums_.count;  // From here on it knows how much comes.
      for (int i = 0; i < calls; ++i) sampler_.Note(LoadKind::kRead, Key("a"), 1, 90, 500);
      Pass(25 * kMilli);
    }
    const uint64_t a_round = (sums_.count - before) / 10;
    EXPECT_GE(a_round, static_cast<uint64_t>(least)) << calls;
    EXPECT_LE(a_round, static_cast<uint64_t>(most)) << calls;
  }
}

TEST_F(LoadSamplerTest, ABurstAfterSilenceFitsInTheRing) {
  for (int i = 0; i < 1'500'000; ++i) sampler_.Note(LoadKind::kRead, Key("a"), 1, 90, 500);
  sampler_.Collect();
  EXPECT_EQ(sampler_.statistics().lost, 0u);
  EXPECT_NEAR(sums_.loads[Prefix("a")].calls, 1.5e6, 4e5);
}

TEST_F(LoadSamplerTest, WhatFindsNoRoomIsLostAndCounted) {
  // Slices so large that each is sampled.
  for (int i = 0; i < 600; ++i) sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
  EXPECT_EQ(sampler_.statistics().lost, 600u - LoadSampler::kRingSamples);
  sampler_.Collect();
  EXPECT_EQ(sums_.count, LoadSampler::kRingSamples);
  EXPECT_EQ(sampler_.statistics().lost, 600u - LoadSampler::kRingSamples);
}

TEST_F(LoadSamplerTest, CollectsInPieces) {
  for (int thread = 0; thread < 4; ++thread) {
    std::thread([&] {
      for (int i = 0; i < 60; ++i) sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
    }).join();
  }
  EXPECT_EQ(wakes_, 1u);
  EXPECT_TRUE(sampler_.CollectNext());
  EXPECT_EQ(sums_.count, 64u);
  clock_.now_ns += LoadSampler::kCollectNanos;
  sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);  // A fifth thread, met at the end.
  EXPECT_EQ(wakes_, 1u);
  for (const size_t count : {128u, 192u}) {
    EXPECT_TRUE(sampler_.CollectNext());
    EXPECT_EQ(sums_.count, count);
  }
  EXPECT_FALSE(sampler_.CollectNext());
  EXPECT_EQ(sums_.count, 241u);
  sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
  EXPECT_EQ(wakes_, 2u);
  sampler_.Collect();
  EXPECT_EQ(sums_.count, 242u);
}

// It makes more between two pieces than one takes.
TEST_F(LoadSamplerTest, AThreadThatIsBusyAllTheTimeKeepsNoCollectionFromItsEnd) {
  std::thread([&] {
    for (int i = 0; i < 10; ++i) sampler_.Note(LoadKind::kRead, Key("quiet"), 1, 0, 0);
  }).join();
  int pieces = 0;
  for (uint64_t ended = 0; ended < 20;) {
    for (int i = 0; i < 300; ++i) sampler_.Note(LoadKind::kRead, Key("busy"), 1, 0, 0);
    clock_.now_ns += kMilli;
    ASSERT_LT(++pieces, 500);
    if (!sampler_.CollectNext()) ++ended;
  }
  EXPECT_DOUBLE_EQ(sums_.loads[Prefix("quiet")].calls, 10);
  EXPECT_NEAR(sums_.loads[Prefix("busy")].calls, 300 * pieces, 30 * pieces);
}

TEST_F(LoadSamplerTest, WhoCollectsAllGetsWhatCameBehindPieces) {
  for (int i = 0; i < 100; ++i) sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
  std::thread([&] {
    for (int i = 0; i < 100; ++i) sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
  }).join();
  EXPECT_TRUE(sampler_.CollectNext());
  EXPECT_TRUE(sampler_.CollectNext());  // Within the other thread's.
  sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, 0);
  sampler_.Collect();
  EXPECT_EQ(sums_.count, 201u);
}

// The calls that were measured came in the piece before.
TEST_F(LoadSamplerTest, WhatAPartitionCostsIsKnownInAllPiecesOfACollection) {
  for (int i = 0; i < 20; ++i) {
    sampler_.Note(LoadKind::kScan, Key("dear"), 1'000'000, 0, 90'000'000);
    sampler_.Note(LoadKind::kScan, Key("cheap"), 1'000'000, 0, 1'000'000);
  }
  for (int i = 0; i < 60; ++i) sampler_.Note(LoadKind::kScan, Key("cheap"), 1'000'000, 0, 0);
  EXPECT_TRUE(sampler_.CollectNext());
  EXPECT_FALSE(sampler_.CollectNext());
  EXPECT_NEAR(sums_.loads[Prefix("cheap")].cpu_ns, 80e6, 100);
}

TEST_F(LoadSamplerTest, WakesOnceForEachCollection) {
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  EXPECT_EQ(wakes_, 1u);
  sampler_.Collect();
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  EXPECT_EQ(wakes_, 1u);
  clock_.now_ns += LoadSampler::kCollectNanos;
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  EXPECT_EQ(wakes_, 2u);
}

TEST_F(LoadSamplerTest, WhatWasNotMeasuredCostsAsMuchAsItsKind) {
  for (int i = 0; i < 10; ++i) sampler_.Note(LoadKind::kWrite, Key("a"), 2, 0, 6'000);
  sampler_.Note(LoadKind::kWrite, Key("b"), 3, 0, 0);
  sampler_.Note(LoadKind::kWrite, Key("c"), 1, 0, 50 * kMilli);  // Interrupted.
  sampler_.Collect();
  EXPECT_NEAR(sums_.loads[Prefix("b")].cpu_ns, 9'000, 1);
  EXPECT_NEAR(sums_.loads[Prefix("c")].cpu_ns, 3'000, 1);
}

TEST_F(LoadSamplerTest, WhatWasNotMeasuredCostsAsMuchAsItsPartitionWhereThatIsKnown) {
  for (int i = 0; i < 5; ++i) {
    sampler_.Note(LoadKind::kWrite, Key("dear"), 1, 0, 60'000);
    sampler_.Note(LoadKind::kWrite, Key("cheap"), 1, 0, 3'000);
  }
  sampler_.Note(LoadKind::kRead, Key("dear"), 1, 0, 400);
  for (int i = 0; i < 4; ++i) {
    for (const char* partition : {"dear", "cheap", "new"})
      sampler_.Note(LoadKind::kWrite, Key(partition), 1, 0, 0);
    sampler_.Note(LoadKind::kRead, Key("dear"), 1, 0, 0);
  }
  sampler_.Collect();
  EXPECT_NEAR(sums_.loads[Prefix("dear")].cpu_ns, 9 * 60'000 + 5 * 400, 1);
  EXPECT_NEAR(sums_.loads[Prefix("cheap")].cpu_ns, 9 * 3'000, 1);
  EXPECT_NEAR(sums_.loads[Prefix("new")].cpu_ns, 4 * 31'500, 1);
}

TEST_F(LoadSamplerTest, OfABusyThreadOnlyTheFirstCallsAfterACollectionHaveTheirTimeTaken) {
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);  // Binds the thread.
  for (int round = 0; round < 3; ++round) {
    sampler_.Collect();
    uint32_t watched = 0;
    for (int i = 0; i < 100; ++i) {  // Slices so large that each is sampled.
      const LoadSampler::Watch watch = sampler_.StartWatch(1'000'000);
      clock_.now_ns += 700;
      watched += watch.Nanos() == 700;
      sampler_.Note(LoadKind::kScan, Key("a"), 1'000'000, 0, watch.Nanos());
    }
    EXPECT_EQ(watched, LoadSampler::kWatched);
  }
  sampler_.Collect();
  EXPECT_NEAR(sums_.last.cpu_ns, 700, 1);
}

TEST_F(LoadSamplerTest, ALongPartitionKeyIsCutBetweenCharacters) {
  std::string partition(LoadSample::kPartitionBytesMax - kTableIdSize - 1, 'x');
  partition += "\xC3\xA4\xC3\xA4";
  sampler_.Note(LoadKind::kRead, Key(partition), 1, 9, 5);
  sampler_.Collect();
  EXPECT_EQ(sums_.last.partition(), Key(partition).substr(0, LoadSample::kPartitionBytesMax - 1));
  const RecentLoad::Partition cut{std::string(sums_.last.partition()), {}};
  EXPECT_TRUE(cut.is_cut());
  EXPECT_TRUE(DecodeUserKey(cut.bound())->row_key.empty());
}

TEST_F(LoadSamplerTest, AThreadMayUseSeveralStoresInTurn) {
  Sums others;
  {
    LoadSampler other(clock_, [] {});
    other.AddConsumer(&others);
    for (int i = 0; i < 10; ++i) {
      sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
      other.Note(LoadKind::kRead, Key("b"), 1, 9, 5);
    }
    other.Collect();
  }
  sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  sampler_.Collect();
  EXPECT_DOUBLE_EQ(sums_.loads[Prefix("a")].calls, 11);
  EXPECT_DOUBLE_EQ(others.loads[Prefix("b")].calls, 10);
  EXPECT_EQ(others.loads.size(), 1u);
}

// Made before the rings of its thread, so it ends after them.
struct NotesAtItsEnd {
  LoadSampler* sampler = nullptr;
  ~NotesAtItsEnd() {
    if (sampler != nullptr) sampler->Note(LoadKind::kRead, Key("late"), 1, 9, 5);
  }
};

TEST_F(LoadSamplerTest, WhatAThreadDoesAtItsVeryEndLeavesNoSample) {
  std::thread([&] {
    thread_local NotesAtItsEnd last;
    last.sampler = &sampler_;
    sampler_.Note(LoadKind::kRead, Key("a"), 1, 9, 5);
  }).join();
  sampler_.Collect();
  EXPECT_DOUBLE_EQ(sums_.loads[Prefix("a")].calls, 1);
  EXPECT_EQ(sums_.loads.size(), 1u);
}

TEST(LoadSamplerThreads, NothingIsLostOrTakenTwice) {
  HandSetClock clock;
  LoadSampler sampler(clock, [] {});
  Sums sums;
  sampler.AddConsumer(&sums);
  std::atomic<int> running{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const std::string key = Key(std::to_string(t));
      for (int i = 0; i < 200'000; ++i) sampler.Note(LoadKind::kRead, key, 1, 90, 500);
      --running;
    });
  }
  while (running > 0) sampler.Collect();
  for (std::thread& thread : threads) thread.join();
  sampler.Collect();
  for (int t = 0; t < 3; ++t) {
    EXPECT_NEAR(sums.loads[Prefix(std::to_string(t))].calls, 2e5, 6e4);
    EXPECT_DOUBLE_EQ(sums.loads[Prefix(std::to_string(t))].bytes,
                     90 * sums.loads[Prefix(std::to_string(t))].calls);
  }
}

LoadSample Sample(const std::string& partition, uint64_t second, LoadKind kind = LoadKind::kRead) {
  LoadSample sample{
      .time_ns = second * kNanosPerSecond, .weight = 10, .bytes = 100, .rows = 2, .cpu_ns = 500};
  sample.kind = kind;
  const std::string prefix = Prefix(partition);
  sample.hash = Hash64(prefix);
  sample.partition_size = static_cast<uint8_t>(prefix.size());
  std::copy(prefix.begin(), prefix.end(), sample.partition_bytes.begin());
  return sample;
}

TEST(RecentLoadTest, TellsTheLastFullSecondsByRange) {
  RecentLoad recent;
  for (uint64_t second = 10; second <= 13; ++second) {
    for (const char* partition : {"a", "b", "c"}) {
      const LoadSample sample = Sample(partition, second);
      recent.Take({&sample, 1});
    }
  }
  const LoadSample refused = Sample("b", 12, LoadKind::kThrottled), late = Sample("b", 2);
  recent.Take({&refused, 1});
  recent.Take({&late, 1});
  const std::vector<RecentLoad::Partition> found = recent.PerSecond(13 * kNanosPerSecond + 5, 2);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].prefix, Prefix("b"));
  EXPECT_DOUBLE_EQ(found[1].load.calls, 10);
  EXPECT_DOUBLE_EQ(found[1].load.rows, 20);
  EXPECT_DOUBLE_EQ(found[1].load.bytes, 1'000);
  EXPECT_DOUBLE_EQ(found[1].load.cpu_ns, 5'000);
  EXPECT_EQ(RecentLoad::Within(found, Prefix("b"), "").size(), 2u);
  EXPECT_DOUBLE_EQ(RecentLoad::Sum(RecentLoad::Within(found, "", Prefix("c"))).calls, 20);
  EXPECT_TRUE(recent.PerSecond(18 * kNanosPerSecond, 2).empty());
}

TEST(RecentLoadTest, LongPartitionsThatBeginAlikeAreOne) {
  RecentLoad recent;
  for (const uint64_t hash : {1, 2}) {
    LoadSample sample = Sample(std::string(LoadSample::kPartitionBytesMax - kTableIdSize - 1, 'a'), 10);
    sample.hash = hash;
    sample.partition_size = LoadSample::kPartitionBytesMax - 1;  // Without the zero byte.
    recent.Take({&sample, 1});
  }
  const std::vector<RecentLoad::Partition> found = recent.PerSecond(11 * kNanosPerSecond, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].is_cut());
  EXPECT_DOUBLE_EQ(found[0].load.calls, 20);
}

}  // namespace
}  // namespace partita
