#include "test/support/concurrent_histories.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/io/real_runtime.h"
#include "engine/io/runtime_over.h"
#include "engine/store.h"
#include "test/support/failing_files.h"
#include "test/support/linearizability.h"
#include "test/support/small_store.h"

// A round: three new partitions, four threads that call as an embedding server does (inline execution, read
// views, the strand taken by whoever finds it free) and two clients that are coroutines on the workers
// (queues, the ring); beside them the memtables are flushed at times, and ranges move to the other shard, are
// cut and joined. Then each partition's calls are checked.

namespace partita {

namespace {

constexpr uint32_t kRows = 3;
constexpr uint32_t kPartitions = 3;  // Of a round.
constexpr uint32_t kThreads = 4, kCoroutines = 2;
constexpr uint32_t kCallsOfAClient = 27;
constexpr uint64_t kFaultOneOf = 20;

Result<std::string> Append(std::string_view, std::string_view base, std::string_view patch) {
  if (base.empty()) return std::string(patch);
  return std::string(base) + ";" + std::string(patch);
}

class RowReader : public RowSink {
 public:
  explicit RowReader(std::vector<std::pair<std::string, HistoryCall::Row>>* rows) : rows_(rows) {}
  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    rows_->push_back({std::string(user_key), {true, version, std::string(content)}});
    return Verdict::kTaken;
  }

 private:
  std::vector<std::pair<std::string, HistoryCall::Row>>* rows_;
};

// What clients share: the store, the clock of the history, and the versions seen last, for conditions.
struct Round {
  Store* store = nullptr;
  TableId table;
  uint64_t number = 0;
  std::atomic<uint64_t> now{1};
  std::array<std::array<std::atomic<uint64_t>, kRows>, kPartitions> versions{};
  uint32_t stale_one_of = 0;

  std::string Key(uint32_t partition, uint32_t row) const {
    // The first byte decides the range, hence the shard.
    std::string name = std::string(1, static_cast<char>('a' + partition * 8)) + std::to_string(number);
    return EncodeUserKey(table, name, "r" + std::to_string(row));
  }
};

// One client, and what it saw. Its own thread's, or its worker's.
class Client {
 public:
  Client(Round* round, uint32_t number, uint64_t seed) : round_(*round), number_(number), random_(seed) {}

  static Task<void> Run(Client* self) {
    for (uint32_t i = 0; i < kCallsOfAClient; ++i) {
      self->partition_ = static_cast<uint32_t>(self->random_.Below(kPartitions));
      const uint64_t what = self->random_.Below(100);
      if (what < 55) {
        co_await self->Write(i);
      } else if (what < 85) {
        co_await self->Get();
      } else {
        co_await self->Page();
      }
    }
  }

  const std::vector<HistoryCall>& calls(uint32_t partition) const { return calls_[partition]; }
  const std::string& failure() const { return failure_; }

 private:
  HistoryCall Begin(HistoryCall::Kind kind) {
    HistoryCall call;
    call.kind = kind;
    call.client = number_;
    call.begun = round_.now.fetch_add(1);
    return call;
  }
  void End(HistoryCall call) {
    call.ended = round_.now.fetch_add(1);
    calls_[partition_].push_back(std::move(call));
  }
  void SawVersion(uint32_t row, Version version) { round_.versions[partition_][row].store(version.value); }

  Task<void> Write(uint32_t number);
  Task<void> Get();
  Task<void> Page();
  HistoryCall::Part DrawPart(uint32_t row, uint32_t number);
  void EndWrite(HistoryCall call, const WriteOutcome& outcome);

  Round& round_;
  const uint32_t number_;
  SimRandom random_;
  uint32_t partition_ = 0;
  std::array<std::vector<HistoryCall>, kPartitions> calls_;
  std::array<std::array<HistoryCall::Row, kRows>, kPartitions> seen_before_;
  std::string failure_;
};

HistoryCall::Part Client::DrawPart(uint32_t row, uint32_t number) {
  HistoryCall::Part part;
  part.row = row;
  const uint64_t kind = random_.Below(100);
  part.kind = kind < 50 ? WriteKind::kPut : kind < 75 ? WriteKind::kMerge : WriteKind::kDelete;
  const uint64_t condition = random_.Below(100);
  if (condition < 20) part.precondition = Precondition::kAbsent;
  if (condition >= 20 && condition < 35) part.precondition = Precondition::kPresent;
  if (condition >= 35 && condition < 60) {
    part.precondition = Precondition::kVersionEquals;
    part.expected = Version(round_.versions[partition_][row].load());
    if (random_.Chance(0.1)) part.expected = Version(part.expected.value - 1);
  }
  if (part.kind == WriteKind::kDelete) return part;
  part.content = std::to_string(number_) + "." + std::to_string(number) + "." + std::to_string(row);
  if (random_.Chance(0.1)) part.content += ":" + std::string(random_.Below(2000), 'x');
  return part;
}

Task<void> Client::Write(uint32_t number) {
  const uint32_t count = random_.Chance(0.7) ? 1 : 2 + static_cast<uint32_t>(random_.Below(kRows - 1));
  const uint32_t first = static_cast<uint32_t>(random_.Below(kRows));
  const uint64_t level = random_.Below(100);
  std::vector<HistoryCall::Part> parts;
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t row = (first + i) % kRows;
    parts.push_back(DrawPart(row, number));
    if (count > 1 && random_.Chance(0.6)) parts.back().precondition = Precondition::kNone;
    keys.push_back(round_.Key(partition_, row));
  }
  HistoryCall call = Begin(HistoryCall::Kind::kWrite);
  call.parts = std::move(parts);
  std::vector<WriteOp> ops;
  for (uint32_t i = 0; i < count; ++i) {
    const HistoryCall::Part& part = call.parts[i];
    ops.push_back(WriteOp{part.kind, part.precondition, part.expected, keys[i], part.content});
  }
  WriteRequest request;
  request.table = round_.table;
  request.ops = ops;
  request.durability = level < 15   ? DurabilityLevel::kPower
                       : level < 50 ? DurabilityLevel::kProcess
                                    : DurabilityLevel::kMemory;
  request.merge = Append;
  const WriteOutcome outcome = co_await round_.store->Write(request);
  EndWrite(std::move(call), outcome);
}

void Client::EndWrite(HistoryCall call, const WriteOutcome& outcome) {
  call.code = outcome.status.code();
  call.failed_part = outcome.failed_op;
  call.version = outcome.version;
  switch (call.code) {
    case Code::kOk:
      for (const HistoryCall::Part& part : call.parts) SawVersion(part.row, outcome.version);
      End(std::move(call));
      return;
    case Code::kAlreadyExists:
    case Code::kNotFound:
    case Code::kPreconditionFailed:
      End(std::move(call));
      return;
    case Code::kUnknown:
      calls_[partition_].push_back(std::move(call));  // It may happen whenever, so it never ends.
      return;
    case Code::kIoError:
    case Code::kDeadlineExceeded:
    case Code::kBusy:
    case Code::kResourceExhausted:
      return;  // It did not happen.
    default:
      failure_ = "write: " + outcome.status.ToString();
  }
}

Task<void> Client::Get() {
  const uint32_t row = static_cast<uint32_t>(random_.Below(kRows));
  const bool stale = round_.stale_one_of > 0 && random_.Below(round_.stale_one_of) == 0;
  const std::string key = round_.Key(partition_, row);
  HistoryCall call = Begin(HistoryCall::Kind::kGet);
  call.row = row;
  std::string content;
  Shard::ReadAnswer answer = round_.store->TryGet(key, &content);
  if (answer.state == Shard::ReadState::kNeedsIo || answer.state == Shard::ReadState::kMoved) {
    Result<Shard::ReadAnswer> read = co_await round_.store->Get(key, &content);
    if (!read.ok()) {
      failure_ = "get: " + read.status().ToString();
      co_return;
    }
    answer = *read;
  }
  if (answer.state == Shard::ReadState::kInDoubt) co_return;
  HistoryCall::Row seen;
  if (answer.state == Shard::ReadState::kFound) {
    seen = {true, answer.version, content};
    SawVersion(row, answer.version);
  }
  HistoryCall::Row& before = seen_before_[partition_][row];
  call.seen = {stale ? before : seen};
  before = seen;
  End(std::move(call));
}

Task<void> Client::Page() {
  ScanRequest request;
  request.lower = round_.Key(partition_, 0);
  request.upper = round_.Key(partition_, kRows);
  request.direction = random_.Chance(0.5) ? Direction::kForward : Direction::kBackward;
  std::vector<std::pair<std::string, HistoryCall::Row>> found;
  RowReader sink(&found);
  HistoryCall call = Begin(HistoryCall::Kind::kPage);
  Result<ScanAnswer> answer = co_await round_.store->Scan(request, &sink);
  if (!answer.ok() && answer.code() != Code::kUnknown) failure_ = "scan: " + answer.status().ToString();
  // In doubt: nothing was said, or the page ended before the row that is.
  if (!answer.ok() || !answer->done) co_return;
  call.seen.resize(kRows);
  for (const auto& [key, row] : found) {
    const uint32_t at = static_cast<uint32_t>(key.back() - '0');
    call.seen[at] = row;
    SawVersion(at, row.version);
  }
  End(std::move(call));
}

class HistoryRunner {
 public:
  explicit HistoryRunner(const HistoryOptions& options) : options_(options), random_(options.seed) {}

  HistoryReport Run() {
    RealRuntimeOptions world;
    world.directory = options_.directory;
    world.backend = options_.backend;
    world.shards = 2;
    auto runtime = RealRuntime::Open(world);
    if (!runtime.ok()) return Failed(runtime.status());
    FailingFiles files((*runtime)->files(), "log-", options_.seed);
    RuntimeOver over(**runtime, files);
    const Status opened = Open(over);
    if (!opened.ok()) return Failed(opened);
    const auto begun = std::chrono::steady_clock::now();
    auto seconds = [begun] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    };
    for (uint64_t i = 0; report_.histories < options_.histories && report_.violations.empty(); ++i) {
      if (options_.seconds_max > 0 && seconds() > options_.seconds_max) break;
      files.FailOneOf(options_.faults && i % 3 != 2 ? kFaultOneOf : 0);
      RunRound(over, i);
    }
    files.FailOneOf(0);
    report_.faults = files.failed();
    for (const ShardStatistics& shard : store_->Statistics()) report_.flushes += shard.flushes;
    const Status closed = over.RunToEnd(store_->Close());
    store_.reset();
    if (!closed.ok() && !options_.faults) return Failed(closed);
    return report_;
  }

 private:
  HistoryReport Failed(const Status& status) {
    report_.violations.push_back(status.ToString());
    return report_;
  }

  Status Open(Runtime& runtime) {
    StoreOptions options = SmallStoreOptions(/*shards=*/2, /*memtable_data_bytes=*/24u << 10);
    options.planted = options_.planted;
    PARTITA_ASSIGN(store_, runtime.RunToEnd(Store::Open(runtime, std::move(options))));
    Store::TableSpec spec;
    spec.account = "default";
    spec.name = "histories";
    spec.raw = true;
    spec.split_partitions = {"h", "p"};
    PARTITA_ASSIGN(const TableDescriptor table, runtime.RunToEnd(store_->CreateTable(std::move(spec))));
    table_ = table.id;
    return Status();
  }

  void RunRound(Runtime& runtime, uint64_t number) {
    Round round;
    round.store = store_.get();
    round.table = table_;
    round.number = number;
    round.stale_one_of = options_.stale_one_of;
    std::vector<std::unique_ptr<Client>> clients;
    for (uint32_t i = 0; i < kThreads + kCoroutines; ++i) {
      clients.push_back(std::make_unique<Client>(&round, i, random_.Next()));
    }
    TaskGroup coroutines;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kCoroutines; ++i) {
      coroutines.Spawn(runtime.shard_executor(ShardId(i)), Client::Run(clients[kThreads + i].get()));
    }
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&runtime, client = clients[i].get()] { runtime.Run(Client::Run(client)); });
    }
    if (random_.Chance(0.2)) (void)runtime.RunToEnd(store_->FlushMemtables());
    while (random_.Chance(0.5)) ChangeRanges(runtime, round);
    for (std::thread& thread : threads) thread.join();
    runtime.Run(coroutines.Join());
    for (const auto& client : clients) {
      if (!client->failure().empty()) report_.violations.push_back(client->failure());
    }
    for (uint32_t partition = 0; partition < kPartitions; ++partition) Check(clients, partition);
  }

  void ChangeRanges(Runtime& runtime, const Round& round) {
    const uint32_t partition = static_cast<uint32_t>(random_.Below(kPartitions));
    const ShardId to(static_cast<uint32_t>(random_.Below(2)));
    const Result<Store::MoveReport> moved = runtime.RunToEnd(store_->MoveRange(round.Key(partition, 0), to));
    if (moved.ok() && moved->from != moved->to) ++report_.moves;
    if (!moved.ok() && !options_.faults) report_.violations.push_back("move: " + moved.status().ToString());
    // Between partitions: which of them it cuts off depends on what the letters are.
    if (random_.Chance(0.5)) (void)runtime.RunToEnd(store_->SplitRange(EncodeUserKey(round.table, "d", "")));
    if (random_.Chance(0.5)) (void)runtime.RunToEnd(store_->MergeRanges(EncodeUserKey(round.table, "d", "")));
  }

  void Check(const std::vector<std::unique_ptr<Client>>& clients, uint32_t partition) {
    std::vector<HistoryCall> calls;
    for (const auto& client : clients) {
      calls.insert(calls.end(), client->calls(partition).begin(), client->calls(partition).end());
    }
    std::sort(calls.begin(), calls.end(),
              [](const HistoryCall& a, const HistoryCall& b) { return a.begun < b.begun; });
    uint64_t latest_end = 0;
    for (const HistoryCall& call : calls) {
      Count(call);
      if (call.begun < latest_end) ++report_.overlapping;
      if (call.ended != UINT64_MAX) latest_end = std::max(latest_end, call.ended);
    }
    ++report_.histories;
    const auto wrong = ExplainNotLinearizable(calls, kRows);
    if (wrong) report_.violations.push_back(*wrong);
  }

  void Count(const HistoryCall& call) {
    ++report_.calls;
    if (call.kind == HistoryCall::Kind::kGet) ++report_.gets;
    if (call.kind == HistoryCall::Kind::kPage) ++report_.pages;
    if (call.kind != HistoryCall::Kind::kWrite) return;
    ++report_.writes;
    if (call.parts.size() > 1) ++report_.transactions;
    if (call.code == Code::kUnknown) ++report_.in_doubt;
    if (call.code != Code::kUnknown && call.code != Code::kOk) ++report_.refused;
  }

  const HistoryOptions options_;
  SimRandom random_;
  std::unique_ptr<Store> store_;
  TableId table_;
  HistoryReport report_;
};

}  // namespace

HistoryReport RunHistories(const HistoryOptions& options) { return HistoryRunner(options).Run(); }

}  // namespace partita
