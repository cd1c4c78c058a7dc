#include "engine/repair_tables.h"

#include <algorithm>
#include <cstring>
#include <queue>

#include "compaction/compression_policy.h"
#include "compaction/flush_job.h"
#include "compaction/table_outputs.h"
#include "engine/base/coding.h"
#include "engine/base/executor.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"

namespace partita {

namespace {

constexpr uint64_t kFileBytes = 32u << 20;

class NoteNothing final : public SkippedSpanSink {
 public:
  void Skipped(SkippedSpan) override {}  // The survey has listed it.
};

Task<Status> Settle(TableIterator* it) {
  while (it->state() == IterState::kNeedsIo) PARTITA_CO_TRY(co_await it->Fetch());
  co_return Status();
}

// The order of internal keys: by key, newest first.
struct Behind {
  bool operator()(const TableIterator* a, const TableIterator* b) const {
    const int order = a->entry().user_key.compare(b->entry().user_key);
    return order != 0 ? order > 0 : a->entry().version < b->entry().version;
  }
};

}  // namespace

RepairTables::RepairTables(RepairSurvey& survey, const Catalog& catalog, uint32_t incarnation,
                           const RepairWorld& world, const RepairOptions& options)
    : survey_(survey),
      catalog_(catalog),
      incarnation_(incarnation),
      world_(world),
      pool_(options.memory_bytes) {}

Task<Result<std::shared_ptr<TableReader>>> RepairTables::Open(ObjectId id) {
  co_return co_await TableReader::Open(survey_.objects(), survey_.cache(), catalog_.store, id);
}

// ---- Logs.

// Not what is of a table that was dropped, or of a range that has another owner now.
bool RepairTables::Counts(const RepairFindings::Shard& shard, const BatchRecordHeader& record,
                          std::string_view user_key) const {
  const RangeDescriptor* range = catalog_.FindRange(user_key);
  if (range == nullptr || survey_.findings().catalog_lost) return range != nullptr;
  return range->owner == shard.id && record.CountsIn(range->move_attempt);
}

Task<Result<std::vector<FileMeta>>> RepairTables::OfLog(const RepairFindings::Shard& shard) {
  std::vector<FileMeta> out;
  LogPosition from = shard.manifest.replay_from;
  for (bool again = true; again;) {
    Memtable memtable(pool_);
    LogPosition last;
    bool full = false;
    LogReplaySink sink = [&](const LogRecord& record) {
      // Not beyond what the survey has listed as kept.
      if (record.position > shard.log.last) return Status::Corruption("behind the prefix that is kept");
      PARTITA_ASSIGN(BatchRecordReader check, BatchRecordReader::Open(record));
      last = record.position;
      Entry entry;
      bool any = false;
      while (!any && check.Next(&entry)) any = Counts(shard, check.header(), entry.user_key);
      if (!any) return check.status();
      uint8_t* memory = memtable.arena().Allocate(record.payload.size());
      if (memory == nullptr || !memtable.Reserve(check.header().operations)) {
        last = LogPosition(record.position.value - 1);
        full = true;
        return Status::ResourceExhausted("a log record does not fit the memory of the repair; give it more");
      }
      std::memcpy(memory, record.payload.data(), record.payload.size());
      const std::string_view payload(reinterpret_cast<const char*>(memory), record.payload.size());
      PARTITA_ASSIGN(BatchRecordReader reader, BatchRecordReader::Open(payload));
      while (reader.Next(&entry)) {
        // What the survey could not trust it has listed.
        const bool intact = !SiteIsOn("repair.memtable.value_check") || StoredValueIntact(entry);
        if (!intact || !Counts(shard, check.header(), entry.user_key)) continue;
        // Without a manifest the log is read from its beginning, where what moved away and back is twice.
        const Lookup known = memtable.Get(entry.user_key, kVersionMax);
        if (known.state == LookupState::kAbsent || known.version < entry.version) memtable.Insert(entry);
      }
      if (check.header().attempt != 0) memtable.CountAs(check.header().version);
      return reader.status();
    };
    if (shard.log.records == 0) co_return out;
    Result<SalvagedLog> read =
        co_await SalvageLog(survey_.files(), survey_.LogOptionsOf(shard), from, std::move(sink));
    again = full;
    if (!read.ok() && !(again && !memtable.empty())) co_return read.status();
    PARTITA_CO_TRY(co_await survey_.pacer().Spend(memtable.memory_used()));
    if (!memtable.empty()) PARTITA_CO_TRY(co_await WriteMemtable(memtable, &out));
    from = LogPosition(last.value + 1);
    if (!again && last < shard.log.last) {
      co_return Status::Corruption(LogDirectory(catalog_.layout, shard.id) +
                                   ": reads differently than before; try again (F52)");
    }
  }
  co_return out;
}

Task<Status> RepairTables::WriteMemtable(Memtable& memtable, std::vector<FileMeta>* out) {
  FlushSpec spec;
  spec.entries = memtable.NewIterator(Direction::kForward);
  spec.entries_expected = memtable.entry_count();
  spec.retention.visible = memtable.version_max();
  spec.cut_points = BoundsOf(catalog_.ranges);
  JobContext context{.store = survey_.objects(),
                     .cache = survey_.cache(),
                     .store_id = catalog_.store,
                     .next_object_id = [this] { return NextId(); },
                     .is_dead_table = [this](TableId id) { return catalog_.FindTable(id) == nullptr; },
                     .zones = world_.zones,
                     .target_file_bytes = kFileBytes,
                     .counts_as = memtable.counts_as()};
  FlushJob job(std::move(context), std::move(spec));
  PARTITA_CO_ASSIGN(JobResult written, co_await job.Run());
  for (const LevelEdit::Added& added : written.edit.added) {
    const RangeDescriptor* range = catalog_.FindRange(added.file.info->smallest);
    PARTITA_ASSERT(range != nullptr);  // Others were dropped as of dead tables.
    out->push_back({0, range->lower, range->upper, added.file.info});
  }
  co_return Status();
}

// ---- One file.

Task<Status> RepairTables::Begin(uint32_t level, Version counts_as) {
  writer_id_ = NextId();
  TableWriterOptions options{.store = catalog_.store,
                             .id = writer_id_,
                             .codec = CodecForLevel(level),
                             .zones = world_.zones,
                             .counts_as = counts_as};
  PARTITA_CO_ASSIGN(writer_, co_await TableWriter::Create(survey_.objects(), std::move(options)));
  co_return Status();
}

Task<Status> RepairTables::Add(const Entry& entry) {
  PARTITA_CO_TRY(writer_->Add(entry));
  co_return co_await DrainIfDue();
}

Task<Status> RepairTables::DrainIfDue() {
  if (!writer_->NeedsDrain()) co_return Status();
  PARTITA_CO_TRY(co_await survey_.pacer().Spend(0));
  co_return co_await writer_->Drain();
}

Task<Status> RepairTables::EndBadly(Status why) {
  if (writer_ != nullptr) co_await writer_->Abandon();
  writer_.reset();
  co_return why;
}

Task<Result<TableInfo>> RepairTables::End() {
  const uint64_t entries = writer_->entry_count();
  const Status paced = co_await survey_.pacer().Spend(writer_->estimated_size());
  if (!paced.ok()) co_return co_await EndBadly(paced);
  Result<TableInfo> info = co_await writer_->Finish();
  if (!info.ok()) co_return co_await EndBadly(info.status());
  writer_.reset();
  // Nothing that was there is damaged by it: a disk that does not give back what it took.
  const auto unread = [](const Status& why) {
    return why.code() == Code::kCorruption
               ? Status::IoError("a table that repair wrote does not read back; try again: " + why.ToString())
               : why;
  };
  Result<std::shared_ptr<TableReader>> table = co_await Open(writer_id_);
  if (!table.ok()) co_return unread(table.status());
  TableVerifyReport found;
  const Status verified = co_await (*table)->Verify(&found);
  if (!verified.ok()) co_return unread(verified);
  if (found.entries != entries) {
    co_return unread(Status::Corruption((*table)->name() + ": another number of entries (F47)"));
  }
  co_return (*table)->info();
}

// ---- Damaged tables.

Task<Result<std::optional<TableInfo>>> RepairTables::OfDamaged(const RepairFindings::Table& table,
                                                               uint32_t level) {
  if (table.reader == nullptr || table.entries == 0) co_return std::optional<TableInfo>();
  PARTITA_CO_TRY(co_await Begin(level, table.reader->info().version_max));
  Status copied = co_await CopyDamaged(*table.reader);
  if (copied.ok() && writer_->entry_count() != table.entries) {
    copied = Status::Corruption(table.reader->name() + ": reads differently than before; try again (F52)");
  }
  if (!copied.ok()) co_return co_await EndBadly(copied);
  PARTITA_CO_ASSIGN(TableInfo info, co_await End());
  co_return std::optional<TableInfo>(std::move(info));
}

Task<Status> RepairTables::CopyDamaged(const TableReader& table) {
  NoteNothing skipped;
  auto add = [this](const Entry& entry) { return writer_->Add(entry); };
  auto drain = [this] { return DrainIfDue(); };
  co_return co_await ReadWhatThereIs(table, &skipped, add, drain);
}

// ---- Lost manifests.

Task<Result<std::vector<FileMeta>>> RepairTables::OfRange(const RangeDescriptor& range,
                                                          std::vector<std::shared_ptr<TableReader>> tables) {
  NoteNothing skipped;
  TableScan scan;
  scan.skipped = &skipped;
  std::vector<std::unique_ptr<TableIterator>> sources;
  for (const std::shared_ptr<TableReader>& table : tables) {
    const TableInfo& info = table->info();
    if (info.largest < range.lower || (!range.upper.empty() && info.smallest >= range.upper)) continue;
    IterOptions options;
    options.caching = IterCaching::kBypass;
    options.lower = range.lower;
    options.upper = range.upper;
    options.scan = &scan;
    sources.push_back(table->NewIterator(Direction::kForward, std::move(options)));
  }
  std::vector<FileMeta> out;
  Status merged = co_await Merge(range, std::move(sources), &out);
  if (!merged.ok()) co_return co_await EndBadly(merged);
  co_return out;
}

Task<Status> RepairTables::Merge(const RangeDescriptor& range,
                                 std::vector<std::unique_ptr<TableIterator>> sources,
                                 std::vector<FileMeta>* out) {
  std::priority_queue<TableIterator*, std::vector<TableIterator*>, Behind> next;
  for (auto& source : sources) {
    source->SeekToFirst();
    PARTITA_CO_TRY(co_await Settle(source.get()));
    if (source->state() == IterState::kEntry) next.push(source.get());
  }
  std::string last_key;
  Version last_version = kVersionMax;
  for (uint64_t steps = 1; !next.empty(); ++steps) {
    TableIterator* it = next.top();
    next.pop();
    const Entry& entry = it->entry();
    const bool same_key = entry.user_key == last_key;
    // What the survey could not trust it has listed.
    const bool intact = !SiteIsOn("repair.merge.value_check") || StoredValueIntact(entry);
    if (!(same_key && entry.version == last_version) && intact) {
      if (writer_ != nullptr && !same_key && writer_->estimated_size() >= kFileBytes) {
        PARTITA_CO_ASSIGN(TableInfo info, co_await End());
        out->push_back({1, range.lower, range.upper, std::move(info)});
      }
      if (writer_ == nullptr) PARTITA_CO_TRY(co_await Begin(1, Version()));
      PARTITA_CO_TRY(co_await Add(entry));
      last_key.assign(entry.user_key);
      last_version = entry.version;
    }
    it->Next();
    PARTITA_CO_TRY(co_await Settle(it));
    if (it->state() == IterState::kEntry) next.push(it);
    if ((steps & 255) != 0) continue;
    PARTITA_CO_TRY(co_await survey_.pacer().Spend(0));
    co_await YieldIfDue();
  }
  if (writer_ == nullptr) co_return Status();
  PARTITA_CO_ASSIGN(TableInfo info, co_await End());
  out->push_back({1, range.lower, range.upper, std::move(info)});
  co_return Status();
}

}  // namespace partita
