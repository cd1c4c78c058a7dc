#include "compaction/table_outputs.h"

#include <algorithm>
#include <optional>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/hex.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

// What is smaller than this share of the target size is not cut for the number of its entries: of files of
// half as much many are merged into one (picker.cc, level0_picker.cc), over and over if it were cut again.
constexpr uint64_t kShareCutForEntries = 8;

}  // namespace

TableOutputs::TableOutputs(JobContext& context, Codec codec, OutputCutter cutter, JobStatistics* statistics,
                           uint32_t shrink_min, WarmEntries& warm, std::vector<std::string> marks)
    : context_(context),
      codec_(codec),
      shrink_min_(shrink_min),
      cutter_(std::move(cutter)),
      statistics_(statistics),
      warm_(warm),
      marks_(std::move(marks)) {}

TableOutputs::~TableOutputs() { PARTITA_ASSERT(writer_ == nullptr && ended_ == nullptr); }

bool TableOutputs::MustTurn(std::string_view key) {
  if (writer_ == nullptr) {
    cutter_.CutBefore(key, {}, 0);
    return true;
  }
  return cutter_.CutBefore(key, writer_->last_key(), CountedBytes());
}

uint64_t TableOutputs::CountedBytes() const {
  const uint64_t bytes = writer_->estimated_size();
  if (bytes < context_.target_file_bytes / kShareCutForEntries) return bytes;
  return std::max(bytes, writer_->entry_count() * context_.entry_bytes_min);
}

Task<Status> TableOutputs::Turn() {
  if (writer_ != nullptr) {
    PARTITA_CO_TRY(co_await writer_->BeginFinish());
    PARTITA_CO_TRY(co_await EndTable());
    if (context_.start_beside) context_.start_beside(ended_);
  }
  TableWriterOptions options;
  sizes_.emplace_back();
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

void TableOutputs::Count(std::string_view key, uint64_t entries) {
  if (marks_.empty()) return;
  Sizes& sizes = sizes_.back();
  std::vector<TableReader::SizeMark>& marks = sizes.marks;
  for (; next_mark_ < marks_.size() && marks_[next_mark_] <= key; ++next_mark_) {
    if (sizes.entries == 0) continue;
    // Of those with nothing between them the first and the last tell all.
    const size_t count = marks.size();
    if (count >= 2 && marks[count - 2].entries == sizes.entries) marks.pop_back();
    marks.push_back({marks_[next_mark_], sizes.entries, writer_->estimated_size()});
  }
  sizes.entries += entries;
}

Status TableOutputs::Add(const Entry& entry) {
  ++statistics_->entries_out;
  Count(entry.user_key, 1);
  Status added = writer_->Add(entry);
  return added.ok() ? added : added.WithContext(DescribeKey(entry.user_key));
}

Status TableOutputs::AddBlock(const PassThroughBlock& block, uint64_t entry_count) {
  statistics_->entries_out += entry_count;
  if (!marks_.empty()) Count(block.decoded->Key(0), entry_count);
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
  ended_ = std::make_shared<EndedTable>(context_, std::move(writer_), warm_.EndOutput());
  co_return Status();
}

Task<Status> TableOutputs::SettleEnded() {
  if (ended_ == nullptr) co_return Status();
  const Status settled = co_await ended_->Arrive();
  settled_.push_back(std::move(ended_));
  PARTITA_CO_TRY(settled);
  tables_.push_back(settled_.back()->TakeTable());
  if (!marks_.empty()) tables_.back()->SetMarks(std::move(sizes_[tables_.size() - 1].marks));
  statistics_->bytes_written += tables_.back()->info().file_size;
  statistics_->bytes_verified += settled_.back()->bytes_verified();
  co_return Status();
}

Task<Status> TableOutputs::Finish() {
  if (writer_ != nullptr) {
    if (ended_ != nullptr) PARTITA_CO_TRY(co_await writer_->BeginFinish());  // While that is read back.
    PARTITA_CO_TRY(co_await EndTable());
  }
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
  if (ended_ != nullptr && ended_->Forgo()) settled_.push_back(std::move(ended_));
  (void)co_await SettleEnded();  // Whoever performs it uses what is the job's.
  if (writer_ != nullptr) co_await writer_->Abandon();
  writer_.reset();
  tables_.clear();
  for (const std::shared_ptr<EndedTable>& table : settled_) {
    if (const std::optional<ObjectId> left = co_await table->Discard()) left_behind_.push_back(*left);
  }
  settled_.clear();
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
