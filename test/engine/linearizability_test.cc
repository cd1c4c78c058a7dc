#include "test/support/linearizability.h"

#include <gtest/gtest.h>

#include "engine/io/uring.h"
#include "test/support/concurrent_histories.h"
#include "test/support/scratch_directory.h"

// covers: F10 F11 F13 F14 F15 F16 F17 F18 F21
//
// First the checker on histories made by hand: what it must accept, and what it must not. Then the engine on
// real threads. For many histories: test/long histories.

namespace partita {
namespace {

using CallKind = HistoryCall::Kind;

HistoryCall WriteCall(uint64_t begun, uint64_t ended, uint32_t row, const std::string& content,
                      uint64_t version) {
  HistoryCall call;
  call.kind = CallKind::kWrite;
  call.begun = begun;
  call.ended = ended;
  call.parts = {{row, WriteKind::kPut, Precondition::kNone, Version(), content}};
  call.version = Version(version);
  return call;
}

HistoryCall InDoubt(HistoryCall call) {
  call.code = Code::kUnknown;
  call.ended = UINT64_MAX;
  call.version = Version();
  return call;
}

HistoryCall Get(uint64_t begun, uint64_t ended, uint32_t row, const std::string& content, uint64_t version) {
  HistoryCall call;
  call.begun = begun;
  call.ended = ended;
  call.row = row;
  call.seen = {{!content.empty(), Version(version), content}};
  return call;
}

HistoryCall Page(uint64_t begun, uint64_t ended, std::vector<HistoryCall::Row> rows) {
  HistoryCall call;
  call.kind = CallKind::kPage;
  call.begun = begun;
  call.ended = ended;
  call.seen = std::move(rows);
  return call;
}

bool Linearizable(const std::vector<HistoryCall>& calls) {
  return !ExplainNotLinearizable(calls, 2).has_value();
}

TEST(LinearizabilityCheckerTest, AcceptsWhatSomeOrderExplains) {
  EXPECT_TRUE(Linearizable({}));
  EXPECT_TRUE(Linearizable({WriteCall(1, 2, 0, "a", 10), Get(3, 4, 0, "a", 10)}));
  // Overlapping: the read may come first.
  EXPECT_TRUE(Linearizable({WriteCall(1, 4, 0, "a", 10), Get(2, 3, 0, "", 0)}));
  EXPECT_TRUE(Linearizable({WriteCall(1, 6, 0, "a", 10), Get(2, 3, 0, "", 0), Get(4, 5, 0, "a", 10)}));
}

TEST(LinearizabilityCheckerTest, RefusesAStaleRead) {
  EXPECT_FALSE(Linearizable({WriteCall(1, 2, 0, "a", 10), Get(3, 4, 0, "", 0)}));
  EXPECT_FALSE(
      Linearizable({WriteCall(1, 2, 0, "a", 10), WriteCall(3, 4, 0, "b", 11), Get(5, 6, 0, "a", 10)}));
  // Two reads that disagree about the order of a write that both overlap.
  EXPECT_FALSE(Linearizable({WriteCall(1, 9, 0, "a", 10), Get(2, 3, 0, "a", 10), Get(4, 5, 0, "", 0)}));
}

TEST(LinearizabilityCheckerTest, RefusesAWrongVersionOrContent) {
  EXPECT_FALSE(Linearizable({WriteCall(1, 2, 0, "a", 10), Get(3, 4, 0, "a", 11)}));
  EXPECT_FALSE(Linearizable({WriteCall(1, 2, 0, "a", 10), Get(3, 4, 0, "b", 10)}));
  EXPECT_FALSE(Linearizable({WriteCall(1, 2, 0, "a", 10), WriteCall(3, 4, 0, "b", 9)}));  // F18.
}

TEST(LinearizabilityCheckerTest, RefusesAPageOrATransactionInParts) {
  HistoryCall both = WriteCall(1, 2, 0, "a", 10);
  both.parts.push_back({1, WriteKind::kPut, Precondition::kNone, Version(), "a"});
  const HistoryCall::Row a{true, Version(10), "a"};
  EXPECT_TRUE(Linearizable({both, Page(3, 4, {a, a})}));
  EXPECT_FALSE(Linearizable({both, Page(1, 4, {a, {}})}));
  // Rows of two moments.
  const HistoryCall::Row b{true, Version(11), "b"};
  EXPECT_FALSE(Linearizable({WriteCall(1, 2, 0, "a", 10), WriteCall(3, 4, 1, "b", 11), Page(1, 5, {{}, b})}));
}

TEST(LinearizabilityCheckerTest, LetsAWriteInDoubtHappenLateOrNeverButNotBoth) {
  const HistoryCall doubt = InDoubt(WriteCall(1, 2, 0, "a", 0));
  EXPECT_TRUE(Linearizable({doubt}));
  EXPECT_TRUE(Linearizable({doubt, Get(3, 4, 0, "", 0)}));
  EXPECT_TRUE(Linearizable({doubt, Get(3, 4, 0, "", 0), Get(5, 6, 0, "a", 10)}));
  EXPECT_FALSE(Linearizable({doubt, Get(3, 4, 0, "a", 10), Get(5, 6, 0, "", 0)}));
  EXPECT_FALSE(Linearizable({doubt, Get(3, 4, 0, "a", 10), Get(5, 6, 0, "a", 11)}));
  EXPECT_FALSE(
      Linearizable({Get(1, 2, 0, "a", 10), InDoubt(WriteCall(3, 4, 0, "a", 0))}));  // Not before it began.
}

TEST(LinearizabilityCheckerTest, RefusesTwoWritersThroughOneCondition) {
  auto insert = [](uint64_t begun, uint64_t ended, const std::string& content, uint64_t version) {
    HistoryCall call = WriteCall(begun, ended, 0, content, version);
    call.parts[0].precondition = Precondition::kAbsent;
    return call;
  };
  HistoryCall refused = insert(1, 4, "b", 0);
  refused.code = Code::kAlreadyExists;
  EXPECT_TRUE(Linearizable({insert(1, 4, "a", 10), refused}));
  EXPECT_FALSE(Linearizable({insert(1, 4, "a", 10), insert(2, 3, "b", 11)}));
  EXPECT_FALSE(Linearizable({refused}));  // Of what, then?
}

// ---- The engine.

class LinearizabilityTest : public testing::TestWithParam<IoBackend> {
 protected:
  void SetUp() override {
    Uring ring;
    if (GetParam() == IoBackend::kUring && !ring.Open({.submissions = 4, .completions = 8}).ok()) {
      GTEST_SKIP() << "io_uring is forbidden on this machine";
    }
    options_.directory = directory_.path();
    options_.backend = GetParam();
  }
  ScratchDirectory directory_;
  HistoryOptions options_;
};

TEST_P(LinearizabilityTest, CallsOfAPartitionHaveOneOrder) {
  options_.histories = 90;
  const HistoryReport report = RunHistories(options_);
  ASSERT_TRUE(report.violations.empty()) << report.violations[0];
  EXPECT_GE(report.histories, 90u);
  EXPECT_GT(report.transactions, 0u);
  EXPECT_GT(report.pages, 0u);
  EXPECT_GT(report.refused, 0u);
  EXPECT_EQ(report.in_doubt, 0u);
}

TEST_P(LinearizabilityTest, SoItIsWithWritesInDoubt) {
  options_.histories = 60;
  options_.faults = true;
  const HistoryReport report = RunHistories(options_);
  ASSERT_TRUE(report.violations.empty()) << report.violations[0];
  EXPECT_GT(report.faults, 0u);
}

TEST_P(LinearizabilityTest, AStaleReadIsFound) {
  options_.histories = 300;
  options_.stale_one_of = 4;
  EXPECT_FALSE(RunHistories(options_).violations.empty());
}

std::string BackendName(const testing::TestParamInfo<IoBackend>& info) {
  return info.param == IoBackend::kUring ? "Ring" : "Threads";
}
INSTANTIATE_TEST_SUITE_P(Backends, LinearizabilityTest,
                         testing::Values(IoBackend::kUring, IoBackend::kThreads), BackendName);

}  // namespace
}  // namespace partita
