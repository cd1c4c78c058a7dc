#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "test/support/store_workload.h"

// Crash safety, proved on the simulator: random lives of a store, each ended by a crash at a random
// I/O operation, each crash drawn several times over, and everything compared with an independent
// model afterwards (test/support/store_model.h says what is checked).
//
// One seed again: PARTITA_SEED=<seed> bin/test_engine --gtest_filter=<the test>; more of them:
// PARTITA_SEEDS=<count>.

namespace partita {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kSlowdown = 10;
#else
constexpr uint64_t kSlowdown = 1;
#endif
#else
constexpr uint64_t kSlowdown = 1;
#endif

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string TestName() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(info->test_suite_name()) + "." + info->name();
}

// Runs histories until `points` crash points were reached; fails at the first violation.
void ExpectNoViolation(uint64_t first_seed, uint64_t points, CrashHistory history) {
  points /= kSlowdown;
  bool one = std::getenv("PARTITA_SEED") != nullptr;
  first_seed = FromEnvironment("PARTITA_SEED", first_seed);
  uint64_t seeds_max = FromEnvironment("PARTITA_SEEDS", one ? 1 : UINT64_MAX);
  CrashReport total;
  for (uint64_t i = 0; i < seeds_max && (one || total.crash_points < points); ++i) {
    history.seed = first_seed + i;
    CrashReport report = RunCrashHistory(history);
    total.crash_points += report.crash_points;
    total.crashes_in_recovery += report.crashes_in_recovery;
    total.requests += report.requests;
    total.acknowledged += report.acknowledged;
    total.refused += report.refused;
    total.in_doubt += report.in_doubt;
    total.rows_compared += report.rows_compared;
    for (const std::string& violation : report.violations) {
      ADD_FAILURE() << violation << "\nagain: PARTITA_SEED=" << history.seed
                    << " bin/test_engine --gtest_filter=" << TestName();
    }
    if (!report.violations.empty()) return;
  }
  std::printf(
      "%llu crash points (%llu in recovery), %llu requests: %llu acknowledged, %llu refused, %llu in doubt; "
      "%llu rows compared\n",
      (unsigned long long)total.crash_points, (unsigned long long)total.crashes_in_recovery,
      (unsigned long long)total.requests, (unsigned long long)total.acknowledged,
      (unsigned long long)total.refused, (unsigned long long)total.in_doubt,
      (unsigned long long)total.rows_compared);
  if (!one) {
    EXPECT_GE(total.crash_points, points);
    EXPECT_GT(total.acknowledged, 0u);
    EXPECT_GT(total.rows_compared, 0u);
  }
}

TEST(CrashSimulationTest, NoCrashBreaksAPromise1) { ExpectNoViolation(1'000'000, 5'000, CrashHistory()); }

}  // namespace
}  // namespace partita
