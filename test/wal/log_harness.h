#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/io/sim_runtime.h"
#include "wal/local_log_store.h"

namespace partita {

inline constexpr StoreId kTestStore{0x5741'4c00'0000'0001};
inline constexpr ShardId kTestShard{3};
inline const std::string kTestDirectory = "shard-3/log";

// A payload that nobody else has: of this position, in this life of the log.
inline std::string PayloadFor(uint64_t position, uint32_t life, size_t size) {
  std::string payload(size, '\0');
  uint64_t state = position * 0x9e37'79b9'7f4a'7c15 + life;
  for (size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) state = state * 6364136223846793005 + 1442695040888963407;
    payload[i] = static_cast<char>(state >> (i % 8 * 8));
  }
  return payload;
}

struct Replayed {
  LogRecovery report;
  std::vector<std::string> payloads;
  std::vector<uint64_t> positions;
  std::vector<uint64_t> versions;
};

// One process with one log on a disk; calls are done at once (blocking mode).
class LogProcess {
 public:
  LogProcess(SimDisk& disk, LocalLogOptions options, uint64_t seed = 1)
      : runtime_({.seed = seed}, disk), options_(std::move(options)) {}
  ~LogProcess() { Close(); }

  static LocalLogOptions Options(uint32_t incarnation = 1) {
    LocalLogOptions options;
    options.store = kTestStore;
    options.shard = kTestShard;
    options.directory = kTestDirectory;
    options.incarnation = Incarnation{incarnation};
    options.segment_size = 64 << 10;
    options.tail_size = 32 << 10;
    options.frame_size_max = 16 << 10;
    return options;
  }

  Status TryOpen() {
    auto opened = RunBlocking(LocalLogStore::Open(runtime_.files(), options_));
    if (!opened.ok()) return opened.status();
    log_ = std::move(opened).value();
    return Status();
  }

  Result<Replayed> TryRecover(uint64_t from = 1) {
    if (log_ == nullptr) PARTITA_TRY(TryOpen());
    Replayed out;
    auto report = RunBlocking(log_->Recover(LogPosition{from}, [&out](const LogRecord& record) {
      out.payloads.emplace_back(record.payload);
      out.positions.push_back(record.position.value);
      out.versions.push_back(record.version.value);
      return Status();
    }));
    if (!report.ok()) return report.status();
    out.report = report.value();
    return out;
  }

  Replayed Recover(uint64_t from = 1) {
    auto replayed = TryRecover(from);
    EXPECT_TRUE(replayed.ok()) << replayed.status().ToString();
    return replayed.ok() ? std::move(replayed).value() : Replayed{};
  }

  Status Append(uint64_t first, const std::vector<std::string>& payloads) {
    const auto records = Records(first, payloads);
    return RunBlocking(log_->Append(records));
  }
  Status AppendAndFlush(uint64_t first, const std::vector<std::string>& payloads) {
    const auto records = Records(first, payloads);
    return RunBlocking(log_->AppendAndFlush(records));
  }
  Status AppendTail(uint64_t first, const std::vector<std::string>& payloads) {
    return log_->AppendTail(Records(first, payloads));
  }
  Status Move(uint64_t first, const std::vector<std::string>& payloads) {
    const auto records = Records(first, payloads);
    return RunBlocking(log_->MoveToNewSegment(records));
  }
  Status Flush() { return RunBlocking(log_->Flush()); }
  Status Seal(bool closing = false) { return RunBlocking(log_->Seal(closing)); }
  Status Trim(uint64_t position) { return RunBlocking(log_->Trim(LogPosition{position})); }

  static std::vector<LogRecord> Records(uint64_t first, const std::vector<std::string>& payloads) {
    std::vector<LogRecord> records;
    for (size_t i = 0; i < payloads.size(); ++i) {
      records.push_back({LogPosition{first + i}, Version{1000 + first + i}, payloads[i]});
    }
    return records;
  }

  void Close() {
    if (log_ != nullptr) EXPECT_TRUE(RunBlocking(log_->Close()).ok());
    log_.reset();
  }

  LocalLogStore& log() { return *log_; }
  SimRuntime& runtime() { return runtime_; }

 private:
  SimRuntime runtime_;
  LocalLogOptions options_;
  std::unique_ptr<LocalLogStore> log_;
};

}  // namespace partita
