#include "bench/load/progress.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <future>

namespace partita::bench {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ProgressTest, EachLineTellsTheRateAndTheLongestSinceTheLast) {
  std::vector<std::string> lines;
  std::promise<Progress*> made;
  std::promise<void> third;
  Progress progress(
      2,
      [&](const std::string& line) {
        if (lines.size() == 3) return;
        lines.push_back(line);
        if (lines.size() == 3) third.set_value();
        if (lines.size() != 1) return;
        Progress* told = made.get_future().get();  // All of this between the first line and the second.
        for (int i = 0; i < 1000; ++i) told->teller(0)->Note(2'000'000);
        told->teller(1)->Note(31'400'000);
      },
      milliseconds(50));
  made.set_value(&progress);
  third.get_future().wait();
  EXPECT_THAT(lines[1], AllOf(Not(HasSubstr(" 0.0 operations")), HasSubstr("the longest 31.4 ms")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr(" 0.0 operations a second"), HasSubstr("the longest 0.0 ms")));
}

TEST(ProgressTest, TheProcessorsTimeIsThatOfTheKernel) {
  const ProcessorTime before = ProcessorTime::Now();
  std::this_thread::sleep_for(milliseconds(100));
  const ProcessorTime after = ProcessorTime::Now();
  // 100 ticks a second of each processor, whatever they did.
  const double ticks = static_cast<double>(after.all - before.all);
  EXPECT_GE(ticks, 5.0 * std::thread::hardware_concurrency());
  EXPECT_LE(after.stolen - before.stolen, after.all - before.all);
  EXPECT_LT(after.stolen, after.all);
}

TEST(ProgressTest, EndsAtOnceAndSilentWhereTheLoadIsShort) {
  bool shown = false;
  const auto started = std::chrono::steady_clock::now();
  {
    Progress progress(
        1, [&](const std::string&) { shown = true; }, milliseconds(60'000));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - started, milliseconds(30'000));
  EXPECT_FALSE(shown);
}

}  // namespace
}  // namespace partita::bench
