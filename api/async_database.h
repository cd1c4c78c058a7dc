#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/partita.h"
#include "engine/base/ids.h"
#include "engine/base/task.h"
#include "engine/store.h"

namespace partita {

class EncodedBatch;
struct TableCore;

// The calls of api/partita.h as coroutines, for the faces inside this project (the HTTP service, the
// lab): they run on a worker's thread without ever blocking it, or to their end in blocking mode.
// Besides, they know several accounts; partita.h knows the one that Options::account names.
//
// Thread-safety: as Database and Table. Arguments by reference must outlive the returned task.
class AsyncTable {
 public:
  explicit AsyncTable(std::shared_ptr<const TableCore> core) : core_(std::move(core)) {}

  const std::string& name() const;  // As created.
  TableId id() const;
  Store& store() const;

  // As the methods of Table. A refused argument answers without suspending.
  Task<WriteResult> Write(const partita::Write& write) const;
  Task<WriteResult> Transact(std::span<const partita::Write> writes, const BatchOptions& options) const;
  // The same of what was encoded before, for this table (id()). The limits of BatchOptions are the caller's
  // to keep: 64 MiB are the most that a log takes in good time. REQUIRES: batch.size() > 0; used once.
  Task<WriteResult> Transact(EncodedBatch& batch) const;

  // The entity record (engine/base/entity_record.h) under a key and its Timestamp: what memory can
  // answer at once, without waiting; nothing when the disk must be asked: then GetRecord. A key that no
  // entity can have (names.h) is kInvalidArgument.
  std::optional<Status> TryGetRecord(std::string_view partition_key, std::string_view row_key,
                                     std::string* record, uint64_t* timestamp_ticks) const;
  Task<Status> GetRecord(std::string_view partition_key, std::string_view row_key, std::string* record,
                         uint64_t* timestamp_ticks) const;

 private:
  std::shared_ptr<const TableCore> core_;
};

class AsyncDatabase {
 public:
  // `database` must outlive this.
  explicit AsyncDatabase(Database& database);

  Runtime& runtime() const;
  Store& store() const;

  // kNotFound, also for a raw table: those are not of the table model. Memory only.
  Result<AsyncTable> FindTable(std::string_view account, std::string_view name) const;
  // As Store's: raw tables are among them. Memory only.
  std::vector<TablePtr> ListTables(std::string_view account, std::string_view from, size_t limit) const;
  // As Database's. The arguments are copied before the first suspension.
  Task<Status> CreateTable(std::string_view account, std::string_view name) const;
  Task<Status> DeleteTable(std::string_view account, std::string_view name) const;

  // As Database's, of the tables of Options::account.
  Task<Status> SplitRange(std::string table, std::string partition_key) const;
  Task<Status> MergeRanges(std::string table, std::string partition_key) const;
  Task<Result<Database::RangeMove>> MoveRange(std::string table, std::string partition_key,
                                              uint32_t shard) const;

  // As Database's; the work is done by a thread of its own.
  Task<Result<ScrubReport>> Scrub(ScrubOptions options) const;
  Task<Result<BackupReport>> Backup(std::string directory, BackupOptions options) const;

  // Opaque bytes kept beside an entity table or an account (Store::SetTableAttributes); null: none, or no
  // such table. Reading asks memory only.
  Attributes TableAttributes(std::string_view account, std::string_view name) const;
  Attributes AccountAttributes(std::string_view account) const;
  Task<Status> SetTableAttributes(std::string account, std::string name, std::string bytes) const;
  Task<Status> SetAccountAttributes(std::string account, std::string bytes) const;

 private:
  Database::Impl* impl_;
};

}  // namespace partita
