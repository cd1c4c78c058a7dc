#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bench/lab/cell.h"
#include "bench/lab/metrics.h"
#include "test/lab/experiments.h"
#include "test/lab/fake_store.h"

namespace partita::lab {
namespace {

// Answers at once, but for one stop of the world of a second.
class StallingStore final : public FakeStore {
 public:
  explicit StallingStore(double stall_at_s) : stall_at_s_(stall_at_s) {}

  Status Settle(const ThroughputTargets&, const GoesOn&) override {
    started_ = Clock::now();
    return Status();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Who comes within the second waits for its end.
  Status Serve() override {
    const auto from =
        started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(stall_at_s_));
    const auto now = Clock::now();
    if (now >= from) std::this_thread::sleep_until(from + std::chrono::seconds(1));
    return Status();
  }

  const double stall_at_s_;
  Clock::time_point started_;
};

CellFigures RunWithAStall(ArrivalModel model, uint32_t clients) {
  static const Experiment sound = ParseSound(ReadingsText(kDeviceLayout));
  Experiment experiment = sound;
  experiment.records = 10;
  experiment.arrival = {
      .model = model, .rates = {500}, .clients = clients, .think_s = 0.002, .warmup_s = 0, .duration_s = 1.5};
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<StallingStore>(0.3), experiment.layouts[0], generator,
                                   stop, [](double) { return true; });
  EXPECT_TRUE(target.ok());
  return RunCell(**target, generator, 500, [](double) { return true; }).value();
}

OpFigures SumOf(const CellFigures& cell) {
  OpFigures all;
  for (const OpFigures& figures : cell.ops) all.Add(figures);
  return all;
}

constexpr double kHalf_s = 0.5;
uint64_t CountAbove(double seconds, const bench::Histogram& times) {
  uint64_t above = 0;
  times.ForEach([&](uint64_t nanos, uint64_t count) {
    if (static_cast<double>(nanos) > seconds * 1e9) above += count;
  });
  return above;
}

TEST(StallTest, AStallOfASecondShowsInTheLatencyOfAllThatWereDueInIt) {
  constexpr uint32_t kClients = 4;
  const CellFigures cell = RunWithAStall(ArrivalModel::kConstant, kClients);
  EXPECT_TRUE(cell.clients_limited()) << "nearly all of a second's operations found no client free";
  const OpFigures figures = SumOf(cell);
  EXPECT_GT(MetricOf("p999_ms", figures, 1.5, {}), 950);
  // Two thirds of the operations were due in it, and waited for what was left: evenly up to a second.
  EXPECT_GT(CountAbove(kHalf_s, figures.latency), 500 * kHalf_s * 0.9);
  // What hides it: only as many operations as there are clients were begun in it, of some 750; and as many in
  // a pause of the machine itself.
  EXPECT_LE(CountAbove(kHalf_s, figures.service), 2 * kClients);
}

TEST(StallTest, AClosedLoopHidesItAndIsCalledOne) {
  const CellFigures cell = RunWithAStall(ArrivalModel::kClosed, 1);
  EXPECT_FALSE(cell.clients_limited()) << "there an operation is due when a client is free";
  const OpFigures figures = SumOf(cell);
  // The one that was begun in it, and one in a pause of the machine itself.
  EXPECT_LE(CountAbove(kHalf_s, figures.latency), 2u) << "why latency counts from when an operation was due";
  EXPECT_STREQ(ArrivalModelName(ArrivalModel::kClosed), "closed");
}

// Refuses each first try.
class RefusingStore final : public FakeStore {
  Status Serve() override { return ++tries_ % 2 == 1 ? Status::Throttled("full", 1'000) : Status(); }
  std::atomic<uint64_t> tries_{0};
};

TEST(StallTest, AWishToStopEndsTheWaitForAnOperationFarAhead) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.records = 10;
  experiment.arrival = {.rates = {0.001}, .clients = 2, .warmup_s = 0, .duration_s = 3'600};
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<StallingStore>(0), experiment.layouts[0], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  // Else it would sleep for a quarter of an hour.
  const CellFigures cell = RunCell(**target, generator, 0.001, [](double) { return false; }).value();
  EXPECT_LE(SumOf(cell).completed, 1u);
}

TEST(RetryTest, AnOperationThatIsTriedAgainEndsOnce) {
  Experiment experiment = ParseSound(ReadingsText(kDeviceLayout));
  experiment.records = 10;
  experiment.on_throttled = OnThrottled::kRetry;
  experiment.ops.erase(experiment.ops.begin(), experiment.ops.begin() + 2);  // Of "read" each is one request.
  experiment.arrival = {.rates = {100}, .clients = 1, .warmup_s = 0, .duration_s = 0.5};
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<RefusingStore>(), experiment.layouts[0], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  const CellFigures cell = RunCell(**target, generator, 100, [](double) { return true; }).value();
  SecondFigures all;
  for (const SecondFigures& second : cell.seconds) {
    all.due += second.due;
    all.completed += second.completed;
    all.throttled += second.throttled;
    all.ended += second.ended;
  }
  EXPECT_EQ(all.due, 50u);
  EXPECT_EQ(all.completed, all.due);
  EXPECT_EQ(all.throttled, all.due);
  EXPECT_EQ(all.ended, all.due);
  uint64_t ended = 0;
  for (const Timeline::Column& column : cell.timeline.columns()) ended += column.ended;
  EXPECT_EQ(ended, all.due);
}

}  // namespace
}  // namespace partita::lab
