#include "engine/scan_meter.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "engine/read_meter.h"
#include "test/support/small_throttle.h"

namespace partita {
namespace {

class ScanMeterTest : public SmallThrottle {
 protected:
  static constexpr uint32_t kSlice = 64;
  static constexpr int kManyCalls = 1'000;

  std::string Key(const std::string& partition, int row = 0) {
    return EncodeUserKey(orders_, partition, std::to_string(10'000 + row));
  }
  Status Admit(ScanMeter* meter, const std::string& partition) {
    const std::string lower(PartitionPrefix(Key(partition)));
    return meter->Admit(lower, PrefixSuccessor(lower), Direction::kForward);
  }
  // A page that looks at so many small rows of a partition, slice by slice; returns how many it came to.
  uint64_t Page(const std::string& partition, uint64_t rows) {
    ScanMeter meter(throttle_, kSlice);
    if (!Admit(&meter, partition).ok()) return 0;
    for (uint64_t looked = 0; looked < rows; ++looked) {
      if (looked % kSlice == 0 && looked > 0 && !meter.Settle()) return looked;
      EXPECT_TRUE(meter.AdmitFirst(Key(partition)).ok());
      meter.NoteSmall(Key(partition), 1);
    }
    meter.Close();
    return rows;
  }
  // So many tokens are left of those of a full bucket.
  void TakeAllBut(uint64_t left, uint64_t burst, const std::string& partition) {
    ASSERT_TRUE(Write(orders_, partition, burst - left).ok());
  }
  uint64_t Left(const std::string& partition) { return SmallThrottle::Left(orders_, partition); }
  // Lets that flow in, and one token more.
  void ExpectOwed(uint64_t tokens, const std::string& partition, uint64_t rate) {
    clock_.now_ns += tokens * kNanosPerSecond / rate;
    EXPECT_EQ(Write(orders_, partition).code(), Code::kThrottled) << "more than " << tokens;
    clock_.now_ns += kNanosPerSecond / rate;
    EXPECT_TRUE(Write(orders_, partition).ok()) << "less than " << tokens;
  }
};

TEST_F(ScanMeterTest, PagesThatComeAtOnceAreLetThroughForASliceEach) {
  Set({.partition_rate = 2'000});
  for (const uint64_t left : {1, 64, 65, 4'000}) {
    clock_.now_ns += 100 * kNanosPerSecond;
    if (left < 4'000) TakeAllBut(left, 4'000, "p");
    std::deque<ScanMeter> meters;
    uint64_t admitted = 0;
    for (int i = 0; i < kManyCalls; ++i) admitted += Admit(&meters.emplace_back(throttle_, kSlice), "p").ok();
    EXPECT_EQ(admitted, (left + kSlice - 1) / kSlice);
    for (size_t i = 0; i < admitted; ++i) meters[i].NoteSmall(Key("p"), kSlice);
    meters.clear();
    ExpectOwed(admitted * kSlice - left, "p", 2'000);
  }
}

TEST_F(ScanMeterTest, APagePaysWhatItLookedAtHoweverItEnds) {
  Set({.partition_rate = 1'000, .account_rate = 1'500, .rules = {{.table = "Orders", .total_rate = 1'200}}});
  // Closed; dropped with some noted; with none; refused at its first row, which is of another partition.
  const auto page = [&](uint64_t rows, bool closes) {
    ScanMeter meter(throttle_, kSlice);
    ASSERT_TRUE(Admit(&meter, "p").ok());
    if (rows > 0) meter.NoteSmall(Key("p"), rows);
    if (closes) meter.Close();
  };
  page(5, true);
  page(64, true);
  page(200, true);
  page(7, false);
  page(0, false);
  EXPECT_EQ(Left("p"), 2'000u - 5 - 64 - 200 - 7);
  ScanMeter meter(throttle_, kSlice);
  ASSERT_TRUE(Admit(&meter, "a").ok());
  EXPECT_EQ(meter.AdmitFirst(Key("p")).code(), Code::kThrottled);
  EXPECT_EQ(meter.refused_partition(), PartitionPrefix(Key("p")));
  // Of the total of 2,400 nothing else is gone.
  EXPECT_EQ(Left("a"), 400u);
  clock_.now_ns += 10 * kNanosPerSecond;
  EXPECT_EQ(Page("b", 1'000), 1'000u);
  EXPECT_EQ(Left("b"), 1'000u);
}

TEST_F(ScanMeterTest, APartitionThatAPageLeavesGetsTheRestBack) {
  Set({.partition_rate = 1'000});
  {
    ScanMeter meter(throttle_, kSlice);
    ASSERT_TRUE(Admit(&meter, "a").ok());
    ASSERT_TRUE(meter.AdmitFirst(Key("a")).ok());
    meter.NoteSmall(Key("a"), 3);
    meter.NoteSmall(Key("b"), 10);
    EXPECT_TRUE(meter.Settle());
  }
  EXPECT_EQ(Left("a"), 2'000u - 3);
  EXPECT_EQ(Left("b"), 2'000u - 10);
}

TEST_F(ScanMeterTest, APageOfFewRowsIsAdmittedByOneToken) {
  for (const uint64_t rate : {1, 10, 2'000}) {
    Set({.partition_rate = rate});
    clock_.now_ns += 100 * kNanosPerSecond;
    TakeAllBut(1, 2 * rate, "p");
    EXPECT_EQ(Page("p", 3), 3u);
    ExpectOwed(2, "p", rate);
  }
}

TEST_F(ScanMeterTest, AnAdvanceIsAtMostWhatABucketHolds) {
  Set({.partition_rate = 10});
  TakeAllBut(1, 20, "p");
  ScanMeter meter(throttle_, kSlice);
  ASSERT_TRUE(Admit(&meter, "p").ok());
  ExpectOwed(19, "p", 10);
}

// Nobody waits between pages: what they look at is the burst and what flows in.
TEST_F(ScanMeterTest, PagesBesideEachOtherKeepTheTarget) {
  Set({.partition_rate = 2'000});
  uint64_t looked = 0;
  for (int i = 0; i < 11'000; ++i, clock_.now_ns += 1'000'000) {
    if (i == 1'000) looked = 0;
    for (int beside = 0; beside < 5; ++beside) looked += Page("p", 150);
  }
  EXPECT_NEAR(static_cast<double>(looked), 20'000, 200);
}

// ---- Reads that have to wait for a device.

TEST_F(ScanMeterTest, ReadsThatComeAtOnceAreLetThroughForAnAdvanceEach) {
  Set({.partition_rate = 2'000});
  const std::string key = Key("p");
  for (const uint64_t left : {1, 40, 4'000}) {
    clock_.now_ns += 2'000 * kNanosPerSecond;
    if (left < 4'000) TakeAllBut(left, 4'000, "p");
    std::deque<ReadMeter> meters;
    uint64_t admitted = 0;
    for (int i = 0; i < kManyCalls; ++i) admitted += meters.emplace_back(throttle_, key).Admit().ok();
    EXPECT_EQ(admitted, (left + ReadMeter::kAdvance - 1) / ReadMeter::kAdvance);
  }
}

TEST_F(ScanMeterTest, AReadPaysWhatItFoundOrOne) {
  Set({.partition_rate = 1'000});
  const std::string key = Key("p");
  const auto read = [&](size_t bytes) {
    ReadMeter meter(throttle_, key);
    ASSERT_TRUE(meter.Admit().ok());
    if (bytes > 0) meter.Found(std::string(bytes, 'x'));
  };
  read(0);  // Nothing, or an error.
  read(100);
  read(5'000);
  read(40'000);
  EXPECT_EQ(Left("p"), 2'000u - 1 - 1 - 5 - 40);
  ReadMeter refused(throttle_, key);
  const Status status = refused.Admit();
  ASSERT_EQ(status.code(), Code::kThrottled);
  refused.Found(std::string(5'000, 'x'));
  ExpectOwed(0, "p", 1'000);
}

}  // namespace
}  // namespace partita
