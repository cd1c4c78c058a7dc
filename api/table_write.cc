#include <algorithm>

#include "api/async_database.h"
#include "api/encoded_batch.h"
#include "api/etag.h"
#include "api/limits.h"
#include "api/row_keys.h"
#include "api/table_state.h"
#include "engine/base/assert.h"
#include "engine/base/text.h"

// Writes of entity tables: check, encode, hand to the engine.

namespace partita {

WriteResult ResultOf(WriteOutcome outcome) {
  WriteResult result;
  result.status = std::move(outcome.status);
  result.failed_operation = outcome.failed_op;
  if (!result.ok()) return result;
  result.timestamp_ticks = outcome.version.value;
  result.etag = FormatEtag(outcome.version);
  return result;
}

WriteResult Refused(Status status, size_t operation) {
  WriteResult result;
  result.status = std::move(status);
  result.failed_operation = static_cast<uint32_t>(operation);
  return result;
}

namespace {

// What a call in flight takes beside keys and contents, about: frames and vectors.
constexpr size_t kCallOverheadBytes = 512;
constexpr uint64_t kEmbeddedBatchBytesMax = 64ull << 20;  // What a log record carries in good time.

// What an operation counts for, exactly and at most. Of a delete the keys alone are used.
uint64_t SizeOf(const Write& write) {
  const Entity& entity = write.entity;
  if (write.action != WriteAction::kDelete) return EntitySizeBytes(entity);
  return kEntitySizeBase + 2 * (Utf16Units(entity.partition_key()) + Utf16Units(entity.row_key()));
}
uint64_t SizeBoundOf(const Write& write) {
  const Entity& entity = write.entity;
  if (write.action != WriteAction::kDelete) return EntitySizeBoundBytes(entity);
  return kEntitySizeBase + 2 * (entity.partition_key().size() + entity.row_key().size());
}

// Checks and encodes; on failure the result says which operation and why.
std::optional<WriteResult> EncodeBatch(const TableCore& table, std::span<const Write> writes,
                                       const BatchOptions& options, EncodedBatch* batch) {
  if (!table.impl->is_usable()) [[unlikely]]
    return Refused(table.impl->CheckUse(), 0);
  if (Status known = CheckDurability(options.durability); !known.ok()) return Refused(std::move(known), 0);
  if (writes.empty()) return Refused(Status::InvalidArgument("the batch is empty"), 0);
  if (writes.size() > options.operations_max) {
    return Refused(
        Status::InvalidArgument("the batch has " + std::to_string(writes.size()) + " operations; at most " +
                                std::to_string(options.operations_max) + " are allowed"),
        options.operations_max);
  }
  if (options.bytes_max > kEmbeddedBatchBytesMax) {
    return Refused(Status::InvalidArgument("bytes_max is above 64 MiB"), 0);
  }
  uint64_t bytes_bound = 0;
  for (const Write& write : writes) bytes_bound += SizeBoundOf(write);
  batch->Reserve(writes.size(), EncodedRoom(bytes_bound, writes.size()));
  uint64_t bytes = 0;
  RowKeys rows;
  for (size_t i = 0; i < writes.size(); ++i) {
    const Entity& entity = writes[i].entity;
    if (entity.partition_key() != writes[0].entity.partition_key()) {
      return Refused(
          Status::InvalidArgument("all operations of a batch must have one PartitionKey; operation " +
                                  std::to_string(i) + " has another"),
          i);
    }
    if (!rows.Add(entity.row_key())) {
      return Refused(
          Status::InvalidArgument("operation " + std::to_string(i) + " names a RowKey for the second time"),
          i);
    }
    Status added = batch->Add(writes[i]);
    if (!added.ok()) return Refused(std::move(added), i);
    if (bytes_bound > options.bytes_max) bytes += SizeOf(writes[i]);
    if (bytes > options.bytes_max) {
      return Refused(Status::InvalidArgument("the entities of the batch are larger than " +
                                             std::to_string(options.bytes_max) + " bytes together"),
                     i);
    }
  }
  batch->Link(LevelOf(options.durability, table.durability));
  return std::nullopt;
}

std::optional<WriteResult> EncodeOne(const TableCore& table, const Write& write, Durability durability,
                                     EncodedBatch* batch) {
  if (!table.impl->is_usable()) [[unlikely]]
    return Refused(table.impl->CheckUse(), 0);
  if (Status known = CheckDurability(durability); !known.ok()) return Refused(std::move(known), 0);
  batch->Reserve(1, EncodedRoom(SizeBoundOf(write), 1));
  Status added = batch->Add(write);
  if (!added.ok()) return Refused(std::move(added), 0);
  batch->Link(LevelOf(durability, table.durability));
  return std::nullopt;
}

WriteResult RunOne(const TableCore& table, Write write, WriteOptions options) {
  EncodedBatch batch(table.id);
  if (std::optional<WriteResult> refused = EncodeOne(table, write, options.durability, &batch))
    return *refused;
  return ResultOf(table.impl->RunWrite(batch.request()));
}

Task<WriteResult> RunOwned(Database::Impl* impl, std::unique_ptr<EncodedBatch> batch) {
  WriteOutcome outcome = co_await impl->store->Write(batch->request());
  co_return ResultOf(std::move(outcome));
}

void Launch(Database::Impl* impl, std::unique_ptr<EncodedBatch> batch, WriteCallback done) {
  std::string_view key = batch->request().ops[0].user_key;
  size_t bytes = 0;
  for (const WriteOp& op : batch->request().ops)
    bytes += op.user_key.size() + op.content.size() + kCallOverheadBytes;
  Task<WriteResult> call = RunOwned(impl, std::move(batch));
  if (!impl->Start(impl->store->ExecutorFor(key), bytes, std::move(call), &done))
    done(Refused(TooManyCalls(), 0));
}

}  // namespace

const std::string& Table::name() const { return state_->TableCore::name(); }

WriteResult Table::Insert(const Entity& entity, WriteOptions options) const {
  return RunOne(*state_, Write{WriteAction::kInsert, entity, ""}, options);
}
WriteResult Table::Replace(const Entity& entity, std::string_view if_match, WriteOptions options) const {
  return RunOne(*state_, Write{WriteAction::kReplace, entity, std::string(if_match)}, options);
}
WriteResult Table::Merge(const Entity& entity, std::string_view if_match, WriteOptions options) const {
  return RunOne(*state_, Write{WriteAction::kMerge, entity, std::string(if_match)}, options);
}
WriteResult Table::InsertOrReplace(const Entity& entity, WriteOptions options) const {
  return RunOne(*state_, Write{WriteAction::kInsertOrReplace, entity, ""}, options);
}
WriteResult Table::InsertOrMerge(const Entity& entity, WriteOptions options) const {
  return RunOne(*state_, Write{WriteAction::kInsertOrMerge, entity, ""}, options);
}
WriteResult Table::Delete(std::string_view partition_key, std::string_view row_key, std::string_view if_match,
                          WriteOptions options) const {
  Entity entity{std::string(partition_key), std::string(row_key)};
  return RunOne(*state_, Write{WriteAction::kDelete, std::move(entity), std::string(if_match)}, options);
}

WriteResult Table::Transact(std::span<const Write> writes, BatchOptions options) const {
  EncodedBatch batch(state_->id);
  if (std::optional<WriteResult> refused = EncodeBatch(*state_, writes, options, &batch)) return *refused;
  return ResultOf(state_->impl->RunWrite(batch.request()));
}

namespace {

// Independent writes under way together; the answers go to `results`.
Task<void> RunInto(Database::Impl* impl, EncodedBatch* batch, WriteResult* result) {
  WriteOutcome outcome = co_await impl->store->Write(batch->request());
  *result = ResultOf(std::move(outcome));
}

struct OwnBatch {
  std::unique_ptr<EncodedBatch> batch;
  WriteResult* result = nullptr;
};

Task<Status> RunTogether(Database::Impl* impl, const std::vector<OwnBatch>* batches) {
  TaskGroup group;
  for (const OwnBatch& own : *batches) {
    group.Spawn(impl->store->ExecutorFor(own.batch->request().ops[0].user_key),
                RunInto(impl, own.batch.get(), own.result));
  }
  co_await group.Join();
  co_return Status();
}

}  // namespace

std::vector<WriteResult> Table::WriteMany(std::span<const Write> writes, WriteOptions options) const {
  // So many share a flush, and no more are encoded at a time.
  constexpr size_t kAtOnce = 1'024;
  constexpr size_t kBytesAtOnce = 4u << 20;
  std::vector<WriteResult> results(writes.size());
  std::vector<OwnBatch> batches;
  size_t bytes = 0;
  for (size_t i = 0; i < writes.size(); ++i) {
    auto batch = std::make_unique<EncodedBatch>(state_->id);
    if (auto refused = EncodeOne(*state_, writes[i], options.durability, batch.get())) {
      results[i] = std::move(*refused);
    } else {
      bytes += batch->size_bytes();
      batches.push_back({std::move(batch), &results[i]});
    }
    const bool is_last = i + 1 == writes.size();
    if (batches.empty() || (!is_last && batches.size() < kAtOnce && bytes < kBytesAtOnce)) continue;
    const Status ran = state_->impl->Run(RunTogether(state_->impl, &batches));
    for (const OwnBatch& own : batches) {
      if (!ran.ok()) own.result->status = ran;
    }
    batches.clear();
    bytes = 0;
  }
  return results;
}

void Table::WriteAsync(Write write, WriteOptions options, WriteCallback done) const {
  PARTITA_ASSERT(done != nullptr);
  auto batch = std::make_unique<EncodedBatch>(state_->id);
  if (std::optional<WriteResult> refused = EncodeOne(*state_, write, options.durability, batch.get())) {
    return done(std::move(*refused));
  }
  Launch(state_->impl, std::move(batch), std::move(done));
}

void Table::TransactAsync(std::vector<Write> writes, BatchOptions options, WriteCallback done) const {
  PARTITA_ASSERT(done != nullptr);
  auto batch = std::make_unique<EncodedBatch>(state_->id);
  if (std::optional<WriteResult> refused = EncodeBatch(*state_, writes, options, batch.get())) {
    return done(std::move(*refused));
  }
  Launch(state_->impl, std::move(batch), std::move(done));
}

// ---- The same on a worker.

Task<WriteResult> AsyncTable::Write(const partita::Write& write) const {
  EncodedBatch batch(core_->id);
  std::optional<WriteResult> refused = EncodeOne(*core_, write, Durability::kTableDefault, &batch);
  if (refused) co_return std::move(*refused);
  WriteOutcome outcome = co_await core_->impl->store->Write(batch.request());
  co_return ResultOf(std::move(outcome));
}

Task<WriteResult> AsyncTable::Transact(EncodedBatch& batch) const {
  batch.Link(LevelOf(Durability::kTableDefault, core_->durability));
  WriteOutcome outcome = co_await core_->impl->store->Write(batch.request());
  co_return ResultOf(std::move(outcome));
}

Task<WriteResult> AsyncTable::Transact(std::span<const partita::Write> writes,
                                       const BatchOptions& options) const {
  EncodedBatch batch(core_->id);
  std::optional<WriteResult> refused = EncodeBatch(*core_, writes, options, &batch);
  if (refused) co_return std::move(*refused);
  WriteOutcome outcome = co_await core_->impl->store->Write(batch.request());
  co_return ResultOf(std::move(outcome));
}

}  // namespace partita
