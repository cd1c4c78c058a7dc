#include "engine/store.h"

#include <algorithm>

#include "engine/backup.h"
#include "engine/base/site.h"
#include "engine/base/user_key.h"
#include "engine/damage.h"
#include "engine/io/read_only_file_system.h"
#include "engine/io/runtime_over.h"
#include "engine/read_meter.h"

namespace partita {

Store::Store(Runtime& runtime, StoreOptions options)
    : reading_files_(options.read_only ? std::make_unique<ReadOnlyFileSystem>(runtime.files()) : nullptr),
      reserve_(runtime),
      runtime_over_(std::make_unique<RuntimeOver>(
          runtime, options.read_only ? *reading_files_ : static_cast<FileSystem&>(reserve_))),
      runtime_(*runtime_over_),
      options_(std::move(options)),
      write_hold_(runtime_.clock()) {
  if (options_.planted == EngineDefect::kKeepReserve) reserve_.PlantKeeping();
  load_.AddConsumer(&recent_load_);
  load_.AddConsumer(&hot_partitions_);
  load_.AddConsumer(&heat_history_);
}

Store::~Store() { PARTITA_ASSERT(closed_ || shards_.empty()); }

Status Store::CheckWritable() const {
  if (!options_.read_only) return Status();
  return Status::Unsupported("the store was opened for reading only (F64)");
}

Status Store::CheckSpace() const { return reserve_.low() ? reserve_.Refusal() : Status(); }

// ---- Names.

Result<TableDescriptor> Store::FindTable(std::string_view account, std::string_view name) const {
  std::shared_ptr<const TableDescriptor> table = LookUpTable(account, name);
  if (table == nullptr) return WhyNoTable(account, name);
  return *table;
}

Status Store::WhyNoTable(std::string_view account, std::string_view name) const {
  const bool in_doubt = names_.With([&](const NameIndex& names) { return names.IsInDoubt(account, name); });
  if (!in_doubt) return NoSuchTable("there is no table named '" + std::string(name) + "'");
  return Status::Unknown("whether there is a table named '" + std::string(name) +
                         "' is in doubt until the catalog can be read again, then by itself (F26)");
}

TablePtr Store::LookUpTable(std::string_view account, std::string_view name) const {
  return names_.With([&](const NameIndex& names) { return names.FindTable(account, name); });
}

std::vector<TablePtr> Store::ListTables(std::string_view account, std::string_view from, size_t limit) const {
  return names_.With([&](const NameIndex& names) { return names.ListTables(account, from, limit); });
}

Catalog Store::CatalogCopy() const {
  std::lock_guard lock(names_mutex_);
  return catalog_;
}

// ---- Entities.

Store::Route Store::RouteOf(ShardId owner) const {
  Shard* shard = shards_[owner.value].get();
  return {shard, shard == nullptr ? &shard_damages_[owner.value] : nullptr};
}

Store::Route Store::RouteTo(std::string_view user_key) const {
  return routes_.With([&](const RangeMap& map) {
    const RangeDescriptor* range = map.Find(user_key);
    if (range == nullptr) return Route();
    return map.IsInDoubt(*range) ? Route{nullptr, &deletion_in_doubt_} : RouteOf(range->owner);
  });
}

Executor& Store::ExecutorFor(std::string_view user_key) {
  Shard* shard = RouteTo(user_key).shard;
  return runtime_.shard_executor(shard == nullptr ? ShardId(0) : shard->id());
}

Executor& Store::ReaderFor(std::string_view user_key) {
  Executor* here = Executor::Current();
  for (uint32_t i = 0; here != nullptr && i < shards_.size(); ++i) {
    if (&runtime_.shard_executor(ShardId(i)) == here) return *here;
  }
  return ExecutorFor(user_key);
}

std::vector<RangeDescriptor> Store::RangesOf(TableId table) const {
  const std::string lower = TableLowerBound(table);
  const std::string upper = TableUpperBound(table);
  return routes_.With([&](const RangeMap& map) {
    const auto first = std::partition_point(
        map.ranges.begin(), map.ranges.end(),
        [&](const RangeDescriptor& range) { return !range.upper.empty() && range.upper <= lower; });
    const auto end = std::partition_point(first, map.ranges.end(),
                                          [&](const RangeDescriptor& range) { return range.lower < upper; });
    return std::vector<RangeDescriptor>(first, end);
  });
}

Task<WriteOutcome> Store::Write(const WriteRequest& request) {
  WriteOutcome outcome;
  outcome.status = options_.read_only ? CheckWritable() : throttle_.ChargeWrite(request);
  if (!outcome.status.ok()) {
    outcome.status = NoteThrottled(request.ops[0].user_key, request.ops.size(), std::move(outcome.status));
    co_return outcome;
  }
  for (int i = 0; i < kRoutesMax; ++i) {
    const Route route = RouteTo(request.ops[0].user_key);
    if (route.damage != nullptr) {
      outcome.status = *route.damage;
      co_return outcome;
    }
    if (route.shard == nullptr) break;
    outcome = co_await route.shard->Write(request);
    if (outcome.status.code() != Code::kMoved) co_return outcome;
    co_await PauseBeforeRoute(i);
  }
  outcome.status = NoRoute(request.ops[0].user_key);
  co_return outcome;
}

Shard::ReadAnswer Store::TryGet(std::string_view user_key, std::string* content) {
  if (!memory_looks_.IsDue()) return {Shard::ReadState::kNeedsIo, {}};
  const uint64_t begun_ns = load_.IsWatchDue(1) ? runtime_.clock().MonotonicNanos() : 0;
  const Route route = RouteTo(user_key);
  if (route.damage != nullptr) return {Shard::ReadState::kNeedsIo, {}};  // Get says why it cannot.
  if (route.shard == nullptr) return {Shard::ReadState::kMoved, {}};
  const Shard::ReadAnswer answer = route.shard->TryGet(user_key, content);
  if (answer.state == Shard::ReadState::kMoved) return {Shard::ReadState::kNeedsIo, {}};  // Get routes anew.
  memory_looks_.Looked(answer.state != Shard::ReadState::kNeedsIo);
  const bool is_found = answer.state == Shard::ReadState::kFound;
  if (!is_found && answer.state != Shard::ReadState::kAbsent) return answer;
  // Likewise Get says that it is too much.
  if (!throttle_.TryChargeRead(user_key, is_found ? *content : std::string_view())) {
    return {Shard::ReadState::kNeedsIo, {}};
  }
  // Nothing waited: the time is that of this thread, unless it was interrupted.
  NoteRead(user_key, is_found ? content->size() : 0,
           begun_ns == 0 ? 0 : runtime_.clock().MonotonicNanos() - begun_ns);
  return answer;
}

Task<Result<Shard::ReadAnswer>> Store::Get(std::string_view user_key, std::string* content) {
  const LoadSampler::Watch watch = load_.StartWatch(1);
  ReadMeter meter(throttle_, user_key);
  PARTITA_CO_TRY(NoteThrottled(user_key, 1, meter.Admit()));
  for (int i = 0; i < kRoutesMax; ++i) {
    const Route route = RouteTo(user_key);
    if (route.damage != nullptr) co_return *route.damage;
    if (route.shard == nullptr) break;
    Result<Shard::ReadAnswer> answer = co_await route.shard->Get(user_key, content);
    const bool is_found = answer.ok() && answer->state == Shard::ReadState::kFound;
    if (is_found) meter.Found(*content);
    if (!answer.ok() || answer->state != Shard::ReadState::kMoved) {
      NoteRead(user_key, is_found ? content->size() : 0, watch.Nanos());
      co_return answer;
    }
    co_await PauseBeforeRoute(i);
  }
  co_return NoRoute(user_key);
}

// ---- Maintenance.

Task<Status> Store::Barrier() {
  if (!SiteIsOn("barrier.log.wait")) co_return Status();
  for (Shard* shard : sound_shards_) PARTITA_CO_TRY(co_await shard->FlushLog());
  co_return Status();
}

Task<Status> Store::FlushMemtables() {
  PARTITA_CO_TRY(CheckWritable());
  for (Shard* shard : sound_shards_) PARTITA_CO_TRY(co_await shard->FlushMemtables());
  co_return Status();
}

namespace {

// Shards that are compacted, each by whoever takes it first.
struct CompactionRound {
  std::vector<Shard*> shards;
  std::atomic<size_t> next{0};
  std::atomic<bool> is_over{false};  // Helpers leave after the job at hand.
};

Task<Status> CompactInTurn(std::shared_ptr<CompactionRound> round, BackgroundClass by) {
  for (size_t i = 0; (i = round->next.fetch_add(1)) < round->shards.size() && !round->is_over.load();) {
    PARTITA_CO_TRY(co_await round->shards[i]->CompactAll(by, &round->is_over));
  }
  co_return Status();
}

Task<void> HelpCompacting(std::shared_ptr<CompactionRound> round) {
  (void)co_await CompactInTurn(std::move(round), BackgroundClass::kIdle);  // The caller comes to it, too.
}

}  // namespace

Task<Status> Store::CompactAll() {
  PARTITA_CO_TRY(CheckWritable());
  PARTITA_CO_TRY(co_await FlushMemtables());
  auto round = std::make_shared<CompactionRound>();
  round->shards = sound_shards_;
  // Helpers of the idle class take shards, too, as long as the caller has one of its own. Where they find no
  // time the caller does what is left.
  for (size_t i = 1; i < round->shards.size() && !closing_.load(); ++i) {
    tasks_.Spawn(runtime_.background(BackgroundClass::kIdle), HelpCompacting(round));
  }
  Status done = co_await CompactInTurn(round, BackgroundClass::kOrdinary);
  round->is_over.store(true);
  PARTITA_CO_TRY(std::move(done));
  for (Shard* shard : sound_shards_) {
    PARTITA_CO_TRY(co_await shard->CompactAll(BackgroundClass::kOrdinary, /*leave=*/nullptr));
  }
  co_return Status();
}

Task<Result<Store::VerifyResult>> Store::Verify(std::function<bool(uint64_t, uint64_t)> progress) {
  VerifyResult result;
  uint64_t done = 0, due = 0;
  std::map<ObjectId, FileRef> files;
  result.damages = report_.damaged_shards;
  PARTITA_CO_ASSIGN(const bool is_backup, co_await runtime_.files().Exists(MetaPath(kBackupKey)));
  const Status kind = is_backup ? co_await CheckIsBackup(runtime_.files()) : Status();
  if (!kind.ok() && !IsDamage(kind)) co_return kind;
  if (!kind.ok()) result.damages.push_back(kind.ToString());
  for (Shard* shard : sound_shards_) {
    for (FileRef& file : shard->FileRefs()) files.emplace(file.info->id, std::move(file));
  }
  for (const auto& [id, file] : files) due += file.info->file_size;
  for (const auto& [id, file] : files) {
    ++result.tables;
    done += file.info->file_size;
    TableVerifyReport report;
    const Status verified = file.table == nullptr ? *file.damage : co_await file.table->Verify(&report);
    if (!verified.ok() && !IsDamage(verified)) co_return verified;  // Out of memory, say.
    if (!verified.ok()) result.damages.push_back(verified.ToString());
    result.entries += report.entries;
    result.bytes += report.bytes_read;
    if (progress && !progress(done, due)) co_return Status::Cancelled("stopped as it was asked to");
  }
  for (Shard* shard : sound_shards_) {
    Status checked = shard->CheckInvariants();
    if (!checked.ok()) result.damages.push_back(checked.ToString());
  }
  co_return result;
}

std::vector<ShardStatistics> Store::Statistics() {
  std::vector<ShardStatistics> statistics;
  std::set<ObjectId> counted;
  for (auto& shard : shards_) {
    statistics.push_back(shard == nullptr ? ShardStatistics() : shard->Statistics(&counted));
    // All of them read from the one disk.
    if (shard != nullptr && waits_->overdue() > 0) statistics.back().stalled = true;
  }
  return statistics;
}

std::vector<BackgroundMeter*> Store::BackgroundMeters() const {
  std::vector<BackgroundMeter*> meters;
  for (const auto& shard : shards_) meters.push_back(shard == nullptr ? nullptr : &shard->background());
  return meters;
}

std::vector<StallReport> Store::Stalls() const {
  std::vector<StallReport> stalls;
  for (uint32_t worker = 0; worker < runtime_.shard_count(); ++worker) {
    const StallLog* log = runtime_.shard_executor(ShardId(worker)).stalls();
    if (log != nullptr) stalls.push_back(log->Read());
  }
  return stalls;
}

// Of cursors that ended early. The shards' jobs have ended, and what they read is still there.
Task<void> Store::JoinReads() {
  for (ReadAheadPool* reads : {read_ahead_.get(), job_reads_.get(), idle_job_reads_.get()}) {
    if (reads != nullptr) co_await reads->Join();
  }
  if (waits_ != nullptr) co_await waits_->Join();
}

void Store::StopPacing() {
  for (Shard* shard : sound_shards_) shard->StopPacing();
}

Task<Status> Store::Close() {
  PARTITA_ASSERT(!closed_);
  closing_.store(true);
  for (Shard* shard : sound_shards_) shard->BeginClose();
  co_await tasks_.Join();  // First: a change of the catalog that is settled now goes on to the shards.
  memtable_pool_->TellAbove(SIZE_MAX);  // Nobody is woken any more.
  co_await reserve_.StopCalling();
  Status first;
  for (Shard* shard : sound_shards_) {
    Status closed = co_await shard->Close();
    if (first.ok()) first = closed;
  }
  co_await JoinReads();
  sound_shards_.clear();
  shards_.clear();
  co_await reserve_.Close();
  lock_.reset();
  closed_ = true;
  co_return first;
}

}  // namespace partita
