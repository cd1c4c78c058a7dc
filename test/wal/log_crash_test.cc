#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <optional>
#include <set>

#include "test/wal/log_harness.h"

// Random lives of a log on the simulator: append, flush, tail, trim, rotate, seal, move, with
// errors and crashes at any operation, recovery included, against a plain vector.
//
// covers: F3 F6 F12 F18 F20 F21 F28 F29 F30 F31 F33 F34
namespace partita {
namespace {

// PARTITA_SEED runs one seed alone, PARTITA_SEEDS another number of them.
std::pair<uint64_t, uint64_t> SeedRange(uint64_t last) {
  const char* only = std::getenv("PARTITA_SEED");
  const char* count = std::getenv("PARTITA_SEEDS");
  if (count != nullptr) return {1, std::strtoull(count, nullptr, 10)};
  if (only == nullptr) return {1, last};
  const uint64_t seed = std::strtoull(only, nullptr, 10);
  return {seed, seed};
}

class CrashWorld {
 public:
  CrashWorld(uint64_t seed, LogDefect planted) : random_(seed), disk_(seed), seed_(seed) {
    options_ = LogProcess::Options();
    options_.segment_size = kPageSize * (3 + Below(10));
    options_.frame_size_max = static_cast<uint32_t>(kPageSize * (1 + Below(4)));
    options_.tail_size = 2 * kPageSize * (1 + Below(4));
    options_.spare_segments_max = static_cast<uint32_t>(1 + Below(3));
    options_.planted = planted;
    payload_max_ = Chance(0.3) ? 30'000 : 1500;
  }

  // Empty when all went well, else what went wrong.
  std::string Run(int lives) {
    for (int life = 0; life < lives && problem_.empty(); ++life) OneLife();
    // At last an undisturbed one, to see what is really there.
    if (problem_.empty()) OneLife(/*calm=*/true);
    return problem_;
  }

  uint64_t crashes() const { return crashes_; }
  uint64_t crashes_in_recovery() const { return crashes_in_recovery_; }
  uint64_t moves() const { return moves_; }
  uint64_t torn() const { return torn_; }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }
  void Problem(const std::string& text) {
    if (problem_.empty())
      problem_ = "seed " + std::to_string(seed_) + ", life " + std::to_string(life_) + ": " + text;
  }
  bool dead() const { return runtime_->crashed() || !problem_.empty(); }
  uint64_t issued() const { return payloads_.size(); }

  void OneLife(bool calm = false) {
    ++life_;
    options_.incarnation = Incarnation{life_};
    SimRuntime runtime({.seed = random_()}, disk_);
    runtime_ = &runtime;
    calm_ = calm;
    fault_.reset();
    hits_forgiven_ = 0;
    in_tail_.clear();
    recovered_ = false;
    closed_cleanly_ = closing_ = false;
    if (!calm) PlanTrouble();
    if (Chance(0.5)) {
      RunBlocking(Live());
    } else {
      concurrent_ = Chance(0.7);
      runtime.Run(Live());
      runtime.RunUntilIdle();
    }
    concurrent_ = false;
    if (runtime.crashed()) {
      ++crashes_;
      if (!recovered_) ++crashes_in_recovery_;
    }
    const bool failed = hits() > 0;
    if (hits() != hits_forgiven_) process_floor_ = FloorWithoutPoisoned();
    log_.reset();
    runtime_ = nullptr;
    const bool power = Chance(0.5);
    if (recovered_) {
      clean_expected_ = closed_cleanly_;
      clean_allowed_ = closing_;
      floor_ = power ? power_floor_ : std::max(power_floor_, process_floor_);
    } else {
      // What a dead process left in the kernel is gone with the power; and the one copy of it may be
      // gone with a failed flush.
      if (power || failed) floor_ = power_floor_;
      clean_expected_ = false;
    }
    power ? disk_.CrashPower() : disk_.CrashProcess();
  }

  void PlanTrouble() {
    if (Chance(0.8)) {
      // A recovery takes some 40 operations.
      const uint64_t operation = Chance(0.25) ? 1 + Below(60) : 40 + Below(150);
      runtime_->CrashAtOperation(operation, Chance(0.5) ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
    }
    if (Chance(0.3)) {
      fault_ = runtime_->AddFault({.operations = SimOps(SimOp::kWrite, SimOp::kFlush),
                                   .path_prefix = kTestDirectory + "/0",
                                   .probability = 0.03});
    }
    if (Chance(0.05)) runtime_->AddFault({.operations = SimOps(SimOp::kRead), .probability = 0.05});
    if (Chance(0.2)) runtime_->AddFault({.effect = SimEffect::kShort, .probability = 0.1});
  }

  uint64_t hits() const { return fault_.has_value() ? runtime_->FaultHits(*fault_) : 0; }

  Task<void> Live() {
    auto opened = co_await LocalLogStore::Open(runtime_->files(), options_);
    if (!opened.ok()) {
      CheckRefusal(opened.status());
      co_return;
    }
    log_ = std::move(opened).value();
    const bool recovered = co_await Recover();
    if (recovered) {
      tail_running_ = concurrent_;
      if (concurrent_) runtime_->Spawn(TailBeside());
      const uint64_t steps = calm_ ? 3 : 5 + Below(60);
      for (uint64_t step = 0; step < steps && !dead(); ++step) {
        Status status = co_await Step();
        if (!status.ok() && !runtime_->crashed()) {
          const bool left = co_await LeavePoison();
          if (!left) break;
        }
        NoteFloors();
      }
      leaving_ = true;
      while (tail_running_) co_await Yield();
      leaving_ = false;
      if (!dead() && (calm_ || Chance(0.15))) {
        const auto rest = RecordsFrom(appended_ + 1, issued());
        Status sealed = co_await log_->Append(rest);
        closing_ = sealed.ok();
        if (sealed.ok()) sealed = co_await log_->Seal(/*closing=*/true);
        closed_cleanly_ = sealed.ok() && !runtime_->crashed();
        NoteFloors();
      }
    }
    Status closed = co_await log_->Close();
    if (!closed.ok()) Problem("close: " + closed.ToString());
  }

  // Errors may refuse to open a log, never doubt in it.
  void CheckRefusal(const Status& status) {
    if (status.code() == Code::kCorruption) Problem("refused as damaged: " + status.ToString());
    if (calm_) Problem("an undisturbed open failed: " + status.ToString());
  }

  Task<bool> Recover() {
    std::vector<std::string> delivered;
    uint64_t expected = std::max<uint64_t>(from_, 1);
    bool in_order = true;
    LogReplaySink sink = [&](const LogRecord& record) {
      in_order = in_order && record.position.value == expected++;
      delivered.emplace_back(record.payload);
      return Status();
    };
    auto report = co_await log_->Recover(LogPosition{std::max<uint64_t>(from_, 1)}, sink);
    if (runtime_->crashed()) co_return false;
    if (!report.ok()) {
      CheckRefusal(report.status());
      co_return false;
    }
    if (!in_order) Problem("records out of order");
    CheckRecovered(*report, delivered);
    payloads_.resize(report->last.value);
    power_floor_ = process_floor_ = appended_ = tail_given_ = report->last.value;
    if (log_->durable_end() != report->last || log_->kernel_end() != report->last) Problem("ends differ");
    if (report->torn_bytes > 0) ++torn_;
    recovered_ = true;
    co_return true;
  }

  void CheckRecovered(const LogRecovery& report, const std::vector<std::string>& delivered) {
    const uint64_t last = report.last.value;
    if (last < floor_) Problem("lost " + std::to_string(floor_) + ", ends at " + std::to_string(last));
    if (last > issued()) Problem("records that nobody wrote: " + std::to_string(last));
    if (report.version_max.value < ceiling_floor_) Problem("a durable ceiling was lost");
    if (delivered.size() != report.records) Problem("record count differs");
    if (last + 1 != std::max<uint64_t>(from_, 1) + delivered.size()) Problem("records missing");
    for (size_t i = 0; i < delivered.size() && problem_.empty(); ++i) {
      const uint64_t position = std::max<uint64_t>(from_, 1) + i;
      if (position <= issued() && delivered[i] != payloads_[position - 1]) {
        Problem("other content at position " + std::to_string(position));
      }
    }
    if (clean_expected_ && (!report.clean || report.torn_bytes > 0)) Problem("a clean close is not seen");
    if (report.clean && !clean_allowed_) Problem("clean, though nobody closed it");
  }

  void Issue(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const size_t size = Below(Chance(0.1) ? payload_max_ : 600);
      payloads_.push_back(PayloadFor(issued() + 1, life_, size));
    }
  }

  std::vector<LogRecord> RecordsFrom(uint64_t first, uint64_t last) const {
    std::vector<LogRecord> records;
    for (uint64_t p = first; p <= last; ++p) {
      records.push_back({LogPosition{p}, Version{1'000'000 + p}, payloads_[p - 1]});
    }
    return records;
  }

  Task<Status> Step() {
    const uint64_t kind = Below(100);
    if (kind < 45) {
      Issue(1 + Below(4));
      const uint64_t last = issued();
      const auto records = RecordsFrom(appended_ + 1, last);
      const bool flush = kind < 25;
      Status status;
      if (flush) {
        status = co_await log_->AppendAndFlush(records);
      } else {
        status = co_await log_->Append(records);
      }
      if (status.ok()) {
        appended_ = last;
        if (log_->kernel_end().value < last) Problem("kernel_end is behind");
        if (flush && log_->durable_end().value != last) Problem("durable_end is behind");
      }
      co_return status;
    }
    if (kind < 60) co_return co_await log_->Flush();
    if (kind < 80) {
      Issue(Below(3));
      CopyToTail();
      co_return Status();
    }
    if (kind < 86) co_return co_await log_->Seal(/*closing=*/false);
    if (kind < 90) {
      log_->LeaseCeiling(Version{2'000'000 + issued()});
      co_return Status();
    }
    if (kind < 94) {
      if (calm_) co_return Status();
      Status prepared = co_await log_->PrepareNext();
      if (!prepared.ok() && hits() == 0 && !runtime_->crashed()) Problem("prepare: " + prepared.ToString());
      co_return Status();
    }
    from_ = std::max(from_, power_floor_ > 5 ? power_floor_ - Below(5) : 1);
    Status trimmed = co_await log_->Trim(LogPosition{from_});
    if (!trimmed.ok() && !runtime_->crashed()) Problem("trim: " + trimmed.ToString());
    co_return Status();
  }

  void CopyToTail() {
    const uint64_t first = std::max(log_->kernel_end().value, tail_given_) + 1;
    const auto records = RecordsFrom(first, issued());
    const Status status = log_->AppendTail(records);
    if (status.code() == Code::kBusy) return;
    if (!status.ok()) Problem("tail: " + status.ToString());
    if (runtime_->crashed()) return;
    tail_given_ = std::max(tail_given_, issued());
    for (const LogRecord& record : records) in_tail_.insert(record.position.value);
    NoteFloors();
  }

  // The holder of the tail token, at the same time as appends and flushes.
  Task<void> TailBeside() {
    while (!leaving_ && !dead()) {
      CopyToTail();
      const uint64_t pause = 1000 * (1 + Below(300));
      co_await SleepFor(pause);
    }
    tail_running_ = false;
  }

  // What was promised, if the process died now.
  void NoteFloors() {
    if (runtime_->crashed() || log_ == nullptr) return;
    power_floor_ = std::max(power_floor_, log_->durable_end().value);
    ceiling_floor_ = std::max(ceiling_floor_, log_->durable_ceiling().value);
    if (hits() == hits_forgiven_) {
      process_floor_ = log_->kernel_end().value;
      return;
    }
    process_floor_ = FloorWithoutPoisoned();
  }

  // A write or flush failed and no move has repaired it yet: what only the poisoned segment holds
  // is in doubt until then; the device may have dropped it.
  uint64_t FloorWithoutPoisoned() const {
    uint64_t floor = power_floor_;
    while (in_tail_.contains(floor + 1)) ++floor;
    return floor;
  }

  Task<bool> LeavePoison() {
    NoteFloors();
    for (int attempt = 0; attempt < 6 && !dead(); ++attempt) {
      const uint64_t durable = log_->durable_end().value;
      const uint64_t last = issued();
      const auto records = RecordsFrom(durable + 1, last);
      Status moved = co_await log_->MoveToNewSegment(records);
      if (runtime_->crashed()) co_return false;
      if (!moved.ok()) {
        NoteFloors();
        continue;
      }
      if (log_->durable_end().value != last) Problem("a move did not make its records durable");
      ++moves_;
      appended_ = last;
      hits_forgiven_ = hits();
      co_return true;
    }
    co_return false;
  }

  std::mt19937_64 random_;
  SimDisk disk_;
  const uint64_t seed_;
  LocalLogOptions options_;
  SimRuntime* runtime_ = nullptr;
  std::unique_ptr<LocalLogStore> log_;
  std::string problem_;
  uint32_t life_ = 0;
  bool calm_ = false;
  bool concurrent_ = false;
  bool leaving_ = false;
  bool tail_running_ = false;
  bool recovered_ = false;
  bool closed_cleanly_ = false;
  bool clean_expected_ = false;
  bool closing_ = false;        // It began to close, and may have got to its end.
  bool clean_allowed_ = false;  // The last life that recovered did.
  std::optional<size_t> fault_;
  uint64_t hits_forgiven_ = 0;
  size_t payload_max_;

  std::deque<std::string> payloads_;  // Of position index + 1; a deque, as calls hold views of it.
  uint64_t appended_ = 0;
  uint64_t tail_given_ = 0;
  std::set<uint64_t> in_tail_;
  uint64_t from_ = 0;
  uint64_t power_floor_ = 0;
  uint64_t process_floor_ = 0;
  uint64_t floor_ = 0;  // What the next recovery must give back.
  uint64_t ceiling_floor_ = 0;
  uint64_t crashes_ = 0, crashes_in_recovery_ = 0, moves_ = 0, torn_ = 0;
};

TEST(LogCrashTest, EveryRecoveryIsAPrefixWithAllThatWasDurable) {
  uint64_t crashes = 0, in_recovery = 0, moves = 0, torn = 0;
  const auto [seed_first, seed_last] = SeedRange(3000);
  for (uint64_t seed = seed_first; seed <= seed_last; ++seed) {
    CrashWorld world(seed, LogDefect::kNone);
    ASSERT_EQ(world.Run(/*lives=*/6), "");
    crashes += world.crashes();
    in_recovery += world.crashes_in_recovery();
    moves += world.moves();
    torn += world.torn();
  }
  if (seed_first == seed_last) return;
  EXPECT_GT(crashes, 5000u);
  EXPECT_GT(in_recovery, 500u);
  EXPECT_GT(moves, 300u);
  EXPECT_GT(torn, 200u);
  RecordProperty("crashes", static_cast<int>(crashes));
  std::printf("crashes %llu, of them in recovery %llu; moves %llu; torn tails %llu\n",
              static_cast<unsigned long long>(crashes), static_cast<unsigned long long>(in_recovery),
              static_cast<unsigned long long>(moves), static_cast<unsigned long long>(torn));
}

TEST(LogCrashTest, PlantedDefectsAreCaught) {
  for (LogDefect planted : {LogDefect::kSkipFlush, LogDefect::kForgetTail, LogDefect::kValidityIsProof}) {
    std::string found;
    uint64_t seed = 0;
    while (found.empty() && ++seed <= 500) found = CrashWorld(seed, planted).Run(6);
    EXPECT_NE(found, "") << "defect " << static_cast<int>(planted) << " was not caught";
    std::printf("defect %d: %s\n", static_cast<int>(planted), found.c_str());
  }
}

}  // namespace
}  // namespace partita
