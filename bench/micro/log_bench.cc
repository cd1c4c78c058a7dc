// The log: what an append costs, by frame size and by level.
//
//   bin/bench_log [--benchmark_filter=...]
//
// Files go to $PARTITA_BENCH_DIR, else to the working directory; give it the disk to be measured.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/real_runtime.h"
#include "wal/frame_gatherer.h"
#include "wal/local_log_store.h"
#include "wal/tail_format.h"

namespace partita {
namespace {

constexpr size_t kRecordSize = 1024;

class TempDirectory {
 public:
  TempDirectory() {
    const char* base = std::getenv("PARTITA_BENCH_DIR");
    std::string pattern = std::string(base != nullptr ? base : ".") + "/bench-log-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDirectory() {
    std::error_code unused;
    std::filesystem::remove_all(path_, unused);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A log of its own, recovered, on this thread (blocking mode).
class BenchLog {
 public:
  BenchLog() {
    RealRuntimeOptions options;
    options.directory = directory_.path();
    options.backend = IoBackend::kThreads;
    runtime_ = RealRuntime::Open(options).value();
    LocalLogOptions log_options;
    log_options.store = StoreId{1};
    log_options.directory = "log";
    log_options.incarnation = Incarnation{1};
    log_ = RunBlocking(LocalLogStore::Open(runtime_->files(), log_options)).value();
    const LogReplaySink sink = [](const LogRecord&) { return Status(); };
    if (!RunBlocking(log_->Recover(LogPosition{1}, sink)).ok()) std::abort();
    Prepare();
  }
  ~BenchLog() {
    (void)RunBlocking(log_->Close());
    log_.reset();
    (void)runtime_->Close();
  }
  LocalLogStore& log() { return *log_; }
  void Prepare() {
    if (!RunBlocking(log_->PrepareNext()).ok()) std::abort();
  }

 private:
  TempDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
  std::unique_ptr<LocalLogStore> log_;
};

std::vector<LogRecord> Records(const std::string& payload, size_t count) {
  std::vector<LogRecord> records;
  for (size_t i = 0; i < count; ++i) records.push_back({LogPosition{i + 1}, Version{i + 1}, payload});
  return records;
}

void Advance(std::vector<LogRecord>* records) {
  for (LogRecord& record : *records) {
    record.position.value += records->size();
    record.version.value += records->size();
  }
}

// Packing and sealing alone, no I/O. range(0): records a frame group.
void BM_GatherFrames(benchmark::State& state) {
  const std::string payload(kRecordSize, 'x');
  const auto records = Records(payload, static_cast<size_t>(state.range(0)));
  FrameGatherer gatherer({StoreId{1}, ShardId{0}}, 256 << 10);
  const FrameStamp stamp{.segment = SegmentId{1}, .incarnation = Incarnation{1}};
  for (auto _ : state) {
    RecordCursor at;
    FrameCursor frames{kPageSize, 0};
    while (at.index < records.size()) {
      auto gathered = gatherer.Gather(records, at, frames, 64 << 20, stamp);
      at = gathered->records;
      frames = gathered->frames;
      benchmark::DoNotOptimize(gathered->bytes.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_GatherFrames)->Arg(1)->Arg(3)->Arg(15)->Arg(63)->Arg(255);

// A durable group: write and fdatasync. range(0): records of 1 KiB in it.
void BM_AppendAndFlush(benchmark::State& state) {
  BenchLog bench;
  const std::string payload(kRecordSize, 'x');
  auto records = Records(payload, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    const Status status = RunBlocking(bench.log().AppendAndFlush(records));
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    Advance(&records);
    if (!bench.log().needs_prepare()) continue;
    state.PauseTiming();  // The shard does it in the background.
    (void)RunBlocking(bench.log().Trim(records.front().position));
    bench.Prepare();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * static_cast<int64_t>(kRecordSize));
}
BENCHMARK(BM_AppendAndFlush)->Arg(1)->Arg(3)->Arg(15)->Arg(63)->Arg(255)->UseRealTime();

// The same without a flush: what the device's cache takes.
void BM_Append(benchmark::State& state) {
  BenchLog bench;
  const std::string payload(kRecordSize, 'x');
  auto records = Records(payload, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    const Status status = RunBlocking(bench.log().Append(records));
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    Advance(&records);
    if (!bench.log().needs_prepare()) continue;
    state.PauseTiming();
    (void)RunBlocking(bench.log().Trim(records.front().position));
    bench.Prepare();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Append)->Arg(1)->Arg(15)->Arg(63)->UseRealTime();

// Level `process`: a record to the mapped tail. Both halves are used; a flush every half.
void BM_AppendTail(benchmark::State& state) {
  BenchLog bench;
  const std::string payload(kRecordSize, 'x');
  std::vector<LogRecord> kept = Records(payload, 3000);
  size_t next = 0;
  for (auto _ : state) {
    const Status status = bench.log().AppendTail({&kept[next], 1});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    if (++next < kept.size()) continue;
    state.PauseTiming();
    (void)RunBlocking(bench.log().AppendAndFlush(kept));
    (void)RunBlocking(bench.log().Trim(kept.back().position));
    bench.Prepare();
    Advance(&kept);
    next = 0;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_AppendTail);

// The alternative to the mapping: encode, then a buffered pwrite of the record to a written file.
void BM_TailByPwrite(benchmark::State& state) {
  TempDirectory directory;
  const std::string path = directory.path() + "/tail";
  const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  const std::string zeros(8 << 20, '\0');
  if (pwrite(file, zeros.data(), zeros.size(), 0) != static_cast<ssize_t>(zeros.size())) std::abort();
  (void)fsync(file);
  const std::string payload(kRecordSize, 'x');
  std::vector<uint8_t> encoded(TailRecordSize(kRecordSize));
  uint64_t offset = 0, position = 0;
  for (auto _ : state) {
    const TailRecord record{LogPosition{++position}, Version{position}, payload};
    EncodeTailRecord({StoreId{1}, ShardId{0}}, Incarnation{1}, offset, record, encoded);
    if (pwrite(file, encoded.data(), encoded.size(), static_cast<off_t>(offset)) < 0) std::abort();
    offset += encoded.size();
    if (offset + encoded.size() > zeros.size()) offset = 0;
  }
  state.SetItemsProcessed(state.iterations());
  close(file);
}
BENCHMARK(BM_TailByPwrite);

}  // namespace
}  // namespace partita
