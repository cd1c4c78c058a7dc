#include <unordered_set>

#include "api/byte_arena.h"
#include "api/page_pause.h"
#include "api/query.h"
#include "api/table_state.h"
#include "engine/base/assert.h"
#include "engine/block_keeper.h"

namespace partita {

namespace {

constexpr size_t kRawValueSizeMax = 16u << 20;  // DESIGN 4.
// What a call in flight takes beside keys and contents, about: frames and vectors.
constexpr size_t kRawCallBytes = 512;
constexpr size_t kRawOperationsMax = 10'000;
constexpr size_t kRawBatchBytesMax = 64u << 20;

Status CheckRawKeys(std::string_view partition_key, std::string_view row_key) {
  if (partition_key.size() + row_key.size() > KeyBuffer::kRawKeysMax) {
    return Status::InvalidArgument("the two keys take " +
                                   std::to_string(partition_key.size() + row_key.size()) +
                                   " bytes; at most 4,096 are allowed");
  }
  if (partition_key.find('\0') != partition_key.npos || row_key.find('\0') != row_key.npos) {
    return Status::InvalidArgument("a key holds a zero byte, which raw keys must not");
  }
  return Status();
}

Status CheckRawOperation(const RawTable::Operation& operation) {
  PARTITA_TRY(CheckRawKeys(operation.partition_key, operation.row_key));
  if (operation.value.size() > kRawValueSizeMax) {
    return Status::InvalidArgument("the value has " + std::to_string(operation.value.size()) +
                                   " bytes; at most 16 MiB are allowed");
  }
  return Status();
}

struct RawBatch {
  std::vector<std::string> keys;
  std::vector<RawTable::Operation> operations;  // Kept when the batch outlives its caller.
  std::vector<WriteOp> ops;
  WriteRequest request;
};

std::optional<WriteResult> Encode(const TableCore& table, std::span<const RawTable::Operation> operations,
                                  WriteOptions options, RawBatch* batch) {
  if (!table.impl->is_usable()) [[unlikely]]
    return Refused(table.impl->CheckUse());
  if (Status known = CheckDurability(options.durability); !known.ok()) return Refused(std::move(known));
  if (operations.empty() || operations.size() > kRawOperationsMax) {
    return Refused(Status::InvalidArgument("a batch takes 1 to 10,000 operations, not " +
                                           std::to_string(operations.size())));
  }
  size_t bytes = 0;
  std::unordered_set<std::string_view> rows;
  for (size_t i = 0; i < operations.size(); ++i) {
    const RawTable::Operation& operation = operations[i];
    Status checked = CheckRawOperation(operation);
    if (!checked.ok()) return Refused(std::move(checked), i);
    bytes += operation.value.size() + operation.row_key.size();
    const char* broken = operation.partition_key != operations[0].partition_key ? "has another partition key"
                         : !rows.insert(operation.row_key).second               ? "repeats a row key"
                         : bytes > kRawBatchBytesMax ? "takes the batch beyond 64 MiB"
                                                     : nullptr;
    if (broken != nullptr) {
      return Refused(Status::InvalidArgument("operation " + std::to_string(i) + " " + broken), i);
    }
    batch->keys.push_back(EncodeUserKey(table.id, operation.partition_key, operation.row_key));
  }
  for (size_t i = 0; i < operations.size(); ++i) {
    WriteOp op;
    op.kind = operations[i].remove ? WriteKind::kDelete : WriteKind::kPut;
    op.user_key = batch->keys[i];
    op.content = operations[i].value;
    batch->ops.push_back(op);
  }
  batch->request.table = table.id;
  batch->request.ops = batch->ops;
  batch->request.durability = LevelOf(options.durability, table.durability);
  return std::nullopt;
}

// One operation without copies: the road of an embedder's put.
WriteResult RunSingle(const TableCore& table, WriteKind kind, std::string_view partition_key,
                      std::string_view row_key, std::string_view value, WriteOptions options) {
  if (!table.impl->is_usable()) [[unlikely]]
    return Refused(table.impl->CheckUse());
  Status checked = CheckRawKeys(partition_key, row_key);
  if (checked.ok()) checked = CheckDurability(options.durability);
  if (checked.ok() && value.size() > kRawValueSizeMax) {
    checked = Status::InvalidArgument("the value has " + std::to_string(value.size()) +
                                      " bytes; at most 16 MiB are allowed");
  }
  if (!checked.ok()) return Refused(std::move(checked));
  KeyBuffer key(table.id, partition_key, row_key, /*ordered_text=*/false);
  WriteOp op;
  op.kind = kind;
  op.user_key = key.key();
  op.content = value;
  WriteRequest request;
  request.table = table.id;
  request.ops = std::span<const WriteOp>(&op, 1);
  request.durability = LevelOf(options.durability, table.durability);
  return ResultOf(table.impl->RunWrite(request));
}

Status RawStatusOf(const Shard::ReadAnswer& answer) {
  if (answer.state == Shard::ReadState::kFound) return Status();
  if (answer.state == Shard::ReadState::kInDoubt)
    return Status::Unknown("the last write of this key is in doubt");
  if (answer.state == Shard::ReadState::kMoved) return NoSuchTable();
  return Status::NotFound("there is no such key");
}

// What memory could not answer.
Task<Status> FetchRaw(Store* store, std::string_view user_key, std::string* value) {
  PARTITA_CO_ASSIGN(Shard::ReadAnswer answer, co_await store->Get(user_key, value));
  co_return RawStatusOf(answer);
}

Task<Result<std::string>> ReadRawOwned(Store* store, std::string user_key) {
  std::string value;
  Shard::ReadAnswer answer = store->TryGet(user_key, &value);
  Status status = RawStatusOf(answer);
  bool from_memory = answer.state == Shard::ReadState::kFound || answer.state == Shard::ReadState::kAbsent;
  if (!from_memory) {
    PARTITA_CO_ASSIGN(answer, co_await store->Get(user_key, &value));
    status = RawStatusOf(answer);
  }
  if (!status.ok()) co_return status;
  co_return value;
}

Task<void> ReadRawInto(Store* store, std::string user_key, Result<std::string>* out) {
  *out = co_await ReadRawOwned(store, std::move(user_key));
}

Task<WriteResult> ApplyOwned(Database::Impl* impl, std::unique_ptr<RawBatch> batch) {
  WriteOutcome outcome = co_await impl->store->Write(batch->request);
  co_return ResultOf(std::move(outcome));
}

class RawSink : public RowSink {
 public:
  explicit RawSink(std::vector<RawRow>* out) : out_(out) {}
  Verdict Add(std::string_view user_key, Version, std::string_view content) override {
    const UserKeyParts parts = SplitReadKey(user_key);
    out_->push_back({std::string(parts.partition_key), std::string(parts.row_key), std::string(content)});
    return Verdict::kTaken;
  }

 private:
  std::vector<RawRow>* out_;
};

// Values stay in the cache where they are, or are copied.
class RawViewSink : public RowSink {
 public:
  Verdict Add(std::string_view user_key, Version, std::string_view content) override {
    return Show(user_key, arena_.Copy(content));
  }
  Verdict AddPinned(std::string_view user_key, Version, std::string_view content,
                    const BlockPin& pin) override {
    return Show(user_key, keeper_.Keep(pin) ? content : arena_.Copy(content));
  }

  const std::vector<RawRowView>& rows() const { return rows_; }
  void Clear() {
    rows_.clear();
    keeper_.Clear();
    arena_.Clear();
  }

 private:
  Verdict Show(std::string_view user_key, std::string_view value) {
    const UserKeyParts parts = SplitReadKey(arena_.Copy(user_key));
    rows_.push_back({parts.partition_key, parts.row_key, value});
    return Verdict::kTaken;
  }

  BlockKeeper keeper_;
  ByteArena arena_;
  std::vector<RawRowView> rows_;
};

Task<Result<RawPage>> ReadRawPage(Database::Impl* impl, TableId table, ScanRequest request) {
  RawPage page;
  RawSink sink(&page.rows);
  Clock& clock = impl->runtime->clock();
  const uint64_t started = clock.MonotonicNanos();
  PARTITA_CO_ASSIGN(ScanAnswer answer, co_await impl->store->Scan(request, &sink));
  page.cost = {.scanned = answer.scanned,
               .returned = answer.rows,
               .blocks = answer.blocks,
               .nanos = clock.MonotonicNanos() - started};
  page.skipped = SkippedKeysOf(answer.skipped);
  if (!answer.done)
    page.continuation = ContinuationOf(OrderOf(request.direction), table, std::move(answer.next_key));
  co_return page;
}

Result<ScanRequest> RawScanRequest(const ScanOptions& options, TableId table) {
  PARTITA_ASSIGN(ScanBounds bounds, BoundsOf(options, table, /*ordered_text=*/false));
  ScanRequest request;
  request.lower = std::move(bounds.lower);
  request.upper = std::move(bounds.upper);
  request.direction = DirectionOf(options.order);
  request.limit = options.limit;
  request.bytes_limit = options.bytes_limit;
  request.skip_damage = options.skip_damage;
  return request;
}

}  // namespace

const std::string& RawTable::name() const { return state_->TableCore::name(); }

WriteResult RawTable::Put(std::string_view partition_key, std::string_view row_key, std::string_view value,
                          WriteOptions options) const {
  return RunSingle(*state_, WriteKind::kPut, partition_key, row_key, value, options);
}

WriteResult RawTable::Delete(std::string_view partition_key, std::string_view row_key,
                             WriteOptions options) const {
  return RunSingle(*state_, WriteKind::kDelete, partition_key, row_key, {}, options);
}

WriteResult RawTable::Apply(std::span<const Operation> operations, WriteOptions options) const {
  RawBatch batch;
  if (std::optional<WriteResult> refused = Encode(*state_, operations, options, &batch)) return *refused;
  return ResultOf(state_->impl->RunWrite(batch.request));
}

void RawTable::ApplyAsync(std::vector<Operation> operations, WriteOptions options, WriteCallback done) const {
  PARTITA_ASSERT(done != nullptr);
  auto batch = std::make_unique<RawBatch>();
  batch->operations = std::move(operations);
  if (std::optional<WriteResult> refused = Encode(*state_, batch->operations, options, batch.get())) {
    return done(std::move(*refused));
  }
  std::string_view key = batch->ops[0].user_key;
  Database::Impl* impl = state_->impl;
  size_t bytes = 0;
  for (const WriteOp& op : batch->ops) bytes += op.user_key.size() + op.content.size() + kRawCallBytes;
  Task<WriteResult> call = ApplyOwned(impl, std::move(batch));
  if (!impl->Start(impl->store->ExecutorFor(key), bytes, std::move(call), &done))
    done(Refused(TooManyCalls()));
}

Status RawTable::Get(std::string_view partition_key, std::string_view row_key, std::string* value) const {
  if (!state_->impl->is_usable()) [[unlikely]]
    return state_->impl->CheckUse();
  PARTITA_TRY(CheckRawKeys(partition_key, row_key));
  KeyBuffer key(state_->id, partition_key, row_key, /*ordered_text=*/false);
  Store* store = state_->impl->store.get();
  Shard::ReadAnswer answer = store->TryGet(key.key(), value);
  if (answer.state == Shard::ReadState::kFound) return Status();
  if (answer.state == Shard::ReadState::kAbsent) return RawStatusOf(answer);
  return state_->impl->Run(FetchRaw(store, key.key(), value));
}

void RawTable::GetAsync(std::string partition_key, std::string row_key,
                        std::function<void(Result<std::string>)> done) const {
  PARTITA_ASSERT(done != nullptr);
  Status checked = state_->impl->CheckUse();
  if (checked.ok()) checked = CheckRawKeys(partition_key, row_key);
  if (!checked.ok()) return done(checked);
  std::string key = EncodeUserKey(state_->id, partition_key, row_key);
  Store* store = state_->impl->store.get();
  Task<Result<std::string>> call = ReadRawOwned(store, key);
  if (!state_->impl->StartRead(store->ReaderFor(key), kRawCallBytes, std::move(call), &done))
    done(TooManyCalls());
}

std::vector<Result<std::string>> RawTable::GetMany(std::span<const Table::Key> keys) const {
  const Status usable = state_->impl->CheckUse();
  if (!usable.ok()) return std::vector<Result<std::string>>(keys.size(), usable);
  std::vector<Result<std::string>> results;
  std::vector<MissingKey> missing;
  Store* store = state_->impl->store.get();
  for (size_t i = 0; i < keys.size(); ++i) {
    Status checked = CheckRawKeys(keys[i].partition_key, keys[i].row_key);
    if (!checked.ok()) {
      results.emplace_back(checked);
      continue;
    }
    KeyBuffer key(state_->id, keys[i].partition_key, keys[i].row_key, /*ordered_text=*/false);
    std::string value;
    Shard::ReadAnswer answer = store->TryGet(key.key(), &value);
    if (answer.state == Shard::ReadState::kFound) {
      results.emplace_back(std::move(value));
      continue;
    }
    results.emplace_back(RawStatusOf(answer));
    if (answer.state != Shard::ReadState::kAbsent) missing.push_back({i, std::string(key.key())});
  }
  ReadMissing(state_->impl, missing, &ReadRawInto, &results);
  return results;
}

Result<RawPage> RawTable::Scan(const ScanOptions& options) const {
  PARTITA_TRY(state_->impl->CheckUse());
  PARTITA_ASSIGN(ScanRequest request, RawScanRequest(options, state_->id));
  return state_->impl->Run(ReadRawPage(state_->impl, state_->id, std::move(request)));
}

void RawTable::ScanAsync(const ScanOptions& options, std::function<void(Result<RawPage>)> done) const {
  PARTITA_ASSERT(done != nullptr);
  Database::Impl* impl = state_->impl;
  const auto request_of = [&]() -> Result<ScanRequest> {
    PARTITA_TRY(impl->CheckUse());
    return RawScanRequest(options, state_->id);
  };
  Result<ScanRequest> request = request_of();
  if (!request.ok()) return done(request.status());
  const bool forward = request->direction == Direction::kForward;
  Executor& worker = impl->store->ReaderFor(forward ? request->lower : request->upper);
  const size_t bytes = PageBytesMax(options.limit, kRawValueSizeMax, options.bytes_limit);
  Task<Result<RawPage>> call = ReadRawPage(impl, state_->id, std::move(request).value());
  if (!impl->Start(worker, bytes, std::move(call), &done)) done(TooManyCalls());
}

Result<QueryCost> RawTable::ForEach(const ScanOptions& options,
                                    const std::function<bool(const RawRowView& row)>& visit) const {
  PARTITA_ASSERT(visit != nullptr);
  PARTITA_TRY(state_->impl->CheckUse());
  // What the processor's caches hold beside the table: rows are shown while they are still there.
  constexpr uint64_t kRowsAtOnceBytes = 256u << 10;
  if (options.skip_damage) {
    return Status::InvalidArgument("skip_damage is for pages, which say what they skipped: use Scan");
  }
  PARTITA_ASSIGN(ScanRequest request, RawScanRequest(options, state_->id));
  request.bytes_limit = std::min(request.bytes_limit, kRowsAtOnceBytes);
  Clock& clock = state_->impl->runtime->clock();
  const uint64_t started = clock.MonotonicNanos();
  QueryCost cost;
  RawViewSink sink;
  for (bool got_on = false; true; got_on = true) {
    Result<ScanAnswer> answer = state_->impl->Run(state_->impl->store->Scan(request, &sink));
    if (answer.code() == Code::kThrottled && got_on) {
      PARTITA_TRY(state_->impl->Run(
          PauseBeforePage(clock, answer.status(), /*deadline_ns=*/UINT64_MAX, /*cancelled=*/nullptr)));
      continue;
    }
    PARTITA_TRY(answer.status());
    cost += {.scanned = answer->scanned, .returned = answer->rows, .blocks = answer->blocks};
    cost.nanos = clock.MonotonicNanos() - started;
    for (const RawRowView& row : sink.rows()) {
      if (!visit(row)) return cost;
    }
    if (answer->done) return cost;
    sink.Clear();
    (options.order == ScanOrder::kAscending ? request.lower : request.upper) = std::move(answer->next_key);
  }
}

}  // namespace partita
