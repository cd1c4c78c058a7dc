#include "compaction/table_outputs.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/hex.h"
#include "engine/base/user_key.h"

namespace partita {

TableOutputs::TableOutputs(JobContext& context, Codec codec, OutputCutter cutter, JobStatistics* statistics,
                           uint32_t shrink_min, BlockTaker* warm)
    : context_(context),
      codec_(codec),
      shrink_min_(shrink_min),
      cutter_(std::move(cutter)),
      statistics_(statistics),
      warm_(warm) {}

TableOutputs::~TableOutputs() { PARTITA_ASSERT(writer_ == nullptr && ended_ == nullptr); }

bool TableOutputs::MustTurn(std::string_view key) {
  if (writer_ == nullptr) {
    cutter_.CutBefore(key, {}, 0);
    return true;
  }
  return cutter_.CutBefore(key, writer_->last_key(), writer_->estimated_size());
}

Task<Status> TableOutputs::Turn() {
  if (writer_ != nullptr) PARTITA_CO_TRY(co_await EndTable());
  TableWriterOptions options;
  options.store = context_.store_id;
  options.id = context_.next_object_id();
  options.codec = codec_;
  options.shrink_min = shrink_min_;
  options.block_size = context_.block_size;
  options.zones = context_.zones;
  options.counts_as = context_.counts_as;
  options.long_filters = context_.cache.MayKeepMore();
  PARTITA_CO_ASSIGN(writer_, co_await TableWriter::Create(context_.store, std::move(options)));
  co_return Status();
}

Status TableOutputs::Add(const Entry& entry) {
  ++statistics_->entries_out;
  Status added = writer_->Add(entry);
  return added.ok() ? added : added.WithContext(DescribeKey(entry.user_key));
}

Status TableOutputs::AddBlock(const PassThroughBlock& block, uint64_t entry_count) {
  statistics_->entries_out += entry_count;
  Status added = writer_->AddBlock(block);
  return added.ok() ? added : added.WithContext("block from " + DescribeKey(block.decoded->Key(0)));
}

void TableOutputs::EvenOut(size_t content_size) {
  const size_t together = block_fill() + content_size;
  if (writer_ != nullptr && together > context_.block_size) writer_->LimitBlock(together / 2);
}

Task<Status> TableOutputs::Drain() { co_return co_await writer_->Drain(); }

Task<Status> TableOutputs::EndTable() {
  PARTITA_CO_TRY(co_await SettleEnded());
  PARTITA_CO_TRY(co_await writer_->BeginFinish());
  ended_ = std::move(writer_);
  co_return Status();
}

Task<Status> TableOutputs::SettleEnded() {
  if (ended_ == nullptr) co_return Status();
  Result<TableInfo> info = co_await ended_->Finish();
  if (!info.ok()) co_return info.status();  // Discard abandons it.
  ended_.reset();
  finished_.push_back(info->id);
  statistics_->bytes_written += info->file_size;
  Status read_back = co_await ReadBack(std::move(info).value());
  if (context_.read_back) context_.read_back();
  if (read_back.code() != Code::kCorruption) co_return read_back;
  // Nothing of the store is damaged: the file is discarded, and its inputs are there (F22).
  co_return Status::IoError("what was written does not read back: " + read_back.message());
}

// F47: what is on disk is read in full, past all caches, before any input is let go.
Task<Status> TableOutputs::ReadBack(TableInfo info) {
  PARTITA_CO_ASSIGN(std::shared_ptr<TableReader> table,
                    co_await TableReader::Open(context_.store, context_.cache, context_.store_id, info.id));
  TableVerifyReport report;
  PARTITA_CO_TRY(co_await table->Verify(&report, warm_, context_.read_ahead, context_.cancel));
  statistics_->bytes_verified += report.bytes_read;
  if (report.entries != info.entry_count || report.tombstones != info.tombstone_count ||
      table->info() != info) {
    co_return Status::Corruption(table->name() + ": read back other counts than were written (F47)");
  }
  tables_.push_back(std::move(table));
  co_return Status();
}

Task<Status> TableOutputs::Finish() {
  PARTITA_CO_TRY(co_await SettleEnded());
  ended_ = std::move(writer_);  // Nothing goes on beside its flush.
  PARTITA_CO_TRY(co_await SettleEnded());
  uint64_t entries = 0;
  for (const auto& table : tables_) entries += table->info().entry_count;
  if (entries != statistics_->entries_out) {
    co_return Status::Corruption("outputs hold " + std::to_string(entries) + " entries, " +
                                 std::to_string(statistics_->entries_out) + " were written (F47)");
  }
  co_return CheckAccounts(*statistics_);
}

Task<void> TableOutputs::Discard() {
  for (std::unique_ptr<TableWriter>* one : {&ended_, &writer_}) {
    if (*one != nullptr) co_await (*one)->Abandon();
    one->reset();
  }
  tables_.clear();
  for (ObjectId id : finished_) {
    Status removed = co_await context_.store.Remove(id);
    if (!removed.ok()) left_behind_.push_back(id);
  }
  finished_.clear();
}

std::string DescribeKey(std::string_view user_key) {
  static constexpr size_t kShown = 48;
  std::string text;
  if (user_key.size() >= kTableIdSize) text = "table " + std::to_string(LoadBe32(user_key.data())) + ", ";
  text += "key ";
  AppendHex(&text, user_key.substr(0, kShown));
  if (user_key.size() > kShown) text += "...";
  return text;
}

void CountFate(Fate fate, JobStatistics* statistics) {
  switch (fate) {
    case Fate::kKeep:
      break;  // Counted where it is written.
    case Fate::kShadowed:
      ++statistics->dropped_shadowed;
      break;
    case Fate::kTombstoneDropped:
      ++statistics->dropped_tombstones;
      break;
    case Fate::kDeadTable:
      ++statistics->dropped_dead_table;
      break;
  }
}

Status CheckAccounts(const JobStatistics& statistics) {
  if (statistics.Accounted()) return Status();
  return Status::Corruption("a job took in " + std::to_string(statistics.entries_in) +
                            " entries and accounts for " +
                            std::to_string(statistics.entries_out + statistics.dropped_shadowed +
                                           statistics.dropped_tombstones + statistics.dropped_dead_table) +
                            " (F47)");
}

}  // namespace partita
