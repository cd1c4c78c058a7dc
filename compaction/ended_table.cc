#include "compaction/ended_table.h"

#include <string>

namespace partita {

Task<Status> EndedTable::Perform() {
  Status settled = co_await Settle();
  if (warm_ != nullptr) warm_->End();
  warm_.reset();
  co_return settled;
}

Task<Status> EndedTable::Settle() {
  Result<TableInfo> info = co_await writer_->Finish();
  if (!info.ok()) co_return info.status();  // Discard abandons it.
  writer_.reset();
  durable_ = info->id;
  if (context_.note_work) context_.note_work(0);
  Status read_back = co_await ReadBack(*info);
  if (context_.note_work) context_.note_work(bytes_verified_);
  if (read_back.code() != Code::kCorruption) co_return read_back;
  // Nothing of the store is damaged: the file is discarded, and its inputs are there (F22).
  co_return Status::IoError("what was written does not read back: " + read_back.message());
}

// F47: what is on disk is read in full, past all caches, before any input is let go.
Task<Status> EndedTable::ReadBack(const TableInfo& info) {
  PARTITA_CO_ASSIGN(std::shared_ptr<TableReader> table,
                    co_await TableReader::Open(context_.store, context_.cache, context_.store_id, info.id));
  TableVerifyReport report;
  PARTITA_CO_TRY(co_await table->Verify(&report, warm_.get(), context_.read_ahead, context_.cancel));
  bytes_verified_ = report.bytes_read;
  if (report.entries != info.entry_count || report.tombstones != info.tombstone_count ||
      table->info() != info) {
    co_return Status::Corruption(table->name() + ": read back other counts than were written (F47)");
  }
  table_ = std::move(table);
  co_return Status();
}

Task<std::optional<ObjectId>> EndedTable::Discard() {
  table_.reset();
  if (writer_ != nullptr) {
    co_await writer_->Abandon();
    writer_.reset();
  } else if (durable_) {
    const ObjectId id = *durable_;
    const Status removed = co_await context_.store.Remove(id);
    if (!removed.ok()) co_return id;
  }
  co_return std::nullopt;
}

}  // namespace partita
