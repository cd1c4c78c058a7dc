#include <algorithm>
#include <chrono>
#include <optional>

#include "api/database_impl.h"
#include "api/limits.h"
#include "api/names.h"
#include "api/table_state.h"
#include "engine/base/assert.h"
#include "engine/base/entity_record.h"
#include "engine/base/memory_budget.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"
#include "engine/inspect.h"

namespace partita {

Status TooManyCalls() { return Status::Busy("too many calls are under way; try again"); }

Status WaitsInCallback() {
  return Status::InvalidArgument(
      "a call that may wait was made from a callback, where only those may be whose names end in Async");
}

// Zones of entities; raw values, which are no records, have none.
void ExtractZones(std::string_view content, ZoneSink& sink) {
  if (!EntityRecordView(content).IsWalkable()) return;
  ZoneCodes(content, nullptr, [&sink](std::string_view name, PropertyType type, uint64_t code) {
    sink.Add(name, static_cast<uint8_t>(type), code);
  });
}

namespace {

// Its size as the service counts it, in KiB (an EntityCost).
uint64_t CostOfEntity(std::string_view user_key, std::string_view content) {
  constexpr uint64_t kUnit = 1024;
  // No size is above twice the encoded bytes: text may double, fixed parts take less than they do here.
  if (2 * (user_key.size() + content.size()) <= kUnit) return 1;
  uint64_t size = user_key.size() + content.size();
  if (const std::optional<size_t> properties = EntityRecordView(content).BilledSizeIfWalkable()) {
    // Both keys at once, without the zero byte between them.
    const size_t key_units = Utf16Units(user_key.substr(kTableIdSize)) - 1;
    size = kEntitySizeBase + 2 * key_units + *properties;
  }
  return std::max<uint64_t>(1, (size + kUnit - 1) / kUnit);
}

uint32_t ShardsOf(const Options& options) {
  return options.shards != 0 ? options.shards : ShardsByCores(options.memory_bytes);
}

Status CheckOptions(const Options& options) {
  if (options.directory.empty()) return Status::InvalidArgument("directory is empty; it must name the store");
  if (options.memory_bytes < (64ull << 20) || options.memory_bytes > (1ull << 40)) {
    return Status::InvalidArgument("memory_bytes is " + std::to_string(options.memory_bytes) +
                                   "; it must be 64 MiB to 1 TiB");
  }
  if (options.shards > kShardCountMax) {
    return Status::InvalidArgument("shards is " + std::to_string(options.shards) + "; it must be 0 to 256");
  }
  // Opened to read or degraded it has the shards that it was made with, and is looked at when they are known.
  const uint32_t shards = options.read_only || options.open_degraded ? 1 : ShardsOf(options);
  PARTITA_TRY(DeriveMemoryPlan(options.memory_bytes, shards, options.host_memory_bytes));
  PARTITA_TRY(CheckDurability(options.durability));
  if (options.durability == Durability::kTableDefault) {
    return Status::InvalidArgument(
        "durability must be kPower, kProcess or kMemory: it is what tables default to");
  }
  if (options.io_backend > IoBackend::kThreads) {
    return Status::InvalidArgument("io_backend is " + std::to_string(static_cast<int>(options.io_backend)) +
                                   "; it must be kUring or kThreads");
  }
  if (options.read_only && options.create_if_missing) {
    return Status::InvalidArgument("create_if_missing and read_only exclude each other");
  }
  PARTITA_TRY(CheckThroughputTargets(options.throughput));
  PARTITA_TRY(CheckThroughputNames(options.throughput));
  return CheckAccountName(options.account);
}

// What to do about files that refuse the open (F39, F53), or a disk that has no room for it (F54).
Status WithAdvice(const Status& status, const Options& options) {
  if (status.code() == Code::kNoSpace && ShardCountOfStore(options.directory).has_value()) {
    return Status(
        status.code(),
        status.message() + "; until there is some it can be opened to read (read_only, --read-only)");
  }
  if (status.code() != Code::kCorruption) return status;
  std::string advice = ". Restore a backup, or see what 'partita repair' can keep";
  // Without the catalog no shard is found.
  if (!options.open_degraded && DamageOfRoot(options.directory).empty())
    advice += "; until then it can be opened without what is damaged (open_degraded, --degraded)";
  return Status(status.code(),
                status.message() + advice +
                    ". Put a file back only from a copy made since the store was last open for "
                    "writing: older ones do not fit the others. Nothing of it was changed");
}

OpenReport ReportOf(const StoreOpenReport& report, uint32_t shards) {
  OpenReport out;
  out.records_replayed = report.records_replayed;
  out.torn_bytes = report.torn_bytes;
  out.torn_logs = report.torn_logs;
  out.records_stranded = report.records_stranded;
  out.stranded_logs = report.stranded_logs;
  out.leftover_files_removed = report.leftover_objects_removed;
  out.leftovers_kept = report.leftovers_kept;
  out.clean_shutdown = report.clean_shutdown;
  out.shards = shards;
  out.shards_before = report.shards_before;
  out.direct_io_refused = report.direct_io_refused;
  out.damaged_shards = report.damaged_shards;
  return out;
}

ShardStats StatsOf(const ShardStatistics& from, uint32_t shard) {
  ShardStats to;
  to.shard = shard;
  to.memtable_bytes = from.memtable_bytes;
  to.memtable_entries = from.memtable_entries;
  to.frozen_memtables = from.frozen_memtables;
  to.log_live_bytes = from.log_live_bytes;
  for (const auto& level : from.levels) {
    to.levels.push_back({level.files, level.bytes, level.entries, level.tombstones});
  }
  to.writes = from.writes;
  to.flushes = from.flushes;
  to.compactions = from.compactions;
  to.compactions_given_up = from.compactions_given_up;
  to.bytes_written_user = from.bytes_user;
  to.bytes_written_log = from.log_bytes;
  to.bytes_written_flush = from.bytes_flushed;
  to.bytes_written_compaction = from.bytes_compaction_written;
  to.bytes_read_compaction = from.bytes_compaction_read;
  to.compaction_debt_bytes = from.debt_bytes;
  static_assert(kBackgroundKindNames == kBackgroundWorkNames);
  for (size_t i = 0; i < kBackgroundKinds; ++i) {
    const BackgroundLoad& load = from.background[i];
    to.background[i] = {load.bytes,
                        static_cast<double>(load.cpu_ns) / 1e9,
                        {load.last_second.bytes_per_second, load.last_second.cores},
                        {load.last_minute.bytes_per_second, load.last_minute.cores}};
  }
  to.write_delay_us_total = from.delay_us_total;
  to.write_delay_us_max = from.delay_us_max;
  to.fenced = from.fenced;
  to.stalled = from.stalled;
  to.stalls = from.stalls;
  if (!from.flush_error.ok()) to.flush_error = from.flush_error.ToString();
  if (!from.compaction_error.ok()) to.compaction_error = from.compaction_error.ToString();
  to.references_set_aside = from.references_set_aside;
  to.fences = from.fences;
  to.flushes_failed = from.flushes_failed;
  to.compactions_failed = from.compactions_failed;
  to.saves_failed = from.saves_failed;
  to.clock_seconds_ahead = static_cast<double>(from.clock_ticks_ahead) / kTicksPerSecond;
  return to;
}

}  // namespace

Database::Database() : impl_(std::make_unique<Impl>()) {}

Result<std::unique_ptr<Database>> Database::OpenOn(Runtime& runtime, const Options& options) {
  auto started = std::chrono::steady_clock::now();
  std::unique_ptr<Database> database(new Database());
  Impl& impl = *database->impl_;
  impl.runtime = &runtime;
  impl.options = options;
  impl.options.opening_progress = nullptr;  // What it captures may own the database.
  StoreOptions store;
  store.create_if_missing = options.create_if_missing;
  store.read_only = options.read_only;
  store.open_degraded = options.open_degraded;
  store.memory_bytes = options.memory_bytes;
  store.host_memory_bytes = options.host_memory_bytes;
  store.shards = ShardsOf(options);
  store.balance_ranges = options.balance_ranges;
  store.opening = options.opening_progress;
  store.zones = ExtractZones;
  store.entity_cost = CostOfEntity;
  PARTITA_ASSIGN(impl.store, runtime.RunToEnd(Store::Open(runtime, std::move(store))));
  impl.report = ReportOf(impl.store->open_report(), impl.store->shard_count());
  PARTITA_TRY(impl.store->throttle().SetTargets(options.throughput));
  impl.report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return database;
}

Result<std::unique_ptr<Database>> Database::Open(const Options& options) {
  PARTITA_TRY(CheckMayWait());
  PARTITA_TRY(CheckOptions(options));
  WorldOptions world{options.directory, options.create_if_missing, ShardsOf(options), options.io_backend};
  Result<std::unique_ptr<Runtime>> opened = OpenWorld(world);
  if (!opened.ok()) return opened.status().WithContext("opening '" + options.directory + "'");
  std::unique_ptr<Runtime> runtime = std::move(opened).value();
  std::string volatile_storage;
  if (!options.read_only) {
    PARTITA_ASSIGN(volatile_storage, WhyPowerIsNotGiven(options.directory));
  }
  if (!volatile_storage.empty() && !options.allow_volatile_storage) {
    return Status::Unsupported(
               "opening '" + options.directory +
               "': what is flushed there would not survive a loss of power: " + volatile_storage +
               "; allow_volatile_storage (--allow-volatile-storage) opens it nevertheless (F5)")
        .WithDetail(static_cast<uint16_t>(Unmet::kStableStorage));
  }
  Status place;
  if (!options.read_only)
    place = runtime->RunToEnd(Store::CheckPlace(runtime->files(), options.create_if_missing));
  if (!place.ok()) return place.WithContext("opening '" + options.directory + "'");
  Result<std::unique_ptr<Database>> database = OpenOn(*runtime, options);
  if (!database.ok())
    return WithAdvice(database.status(), options).WithContext("opening '" + options.directory + "'");
  (*database)->impl_->own_runtime = std::move(runtime);
  (*database)->impl_->report.volatile_storage = std::move(volatile_storage);
  return database;
}

Database::~Database() {
  // Its threads are the parent's: nothing can be stopped here, nothing must be flushed.
  if (impl_->is_of_parent()) {
    (void)impl_.release();
    return;
  }
  const bool destroyed_in_a_callback =
      impl_->store != nullptr && impl_->own_runtime != nullptr && Executor::Current() != nullptr;
  PARTITA_ASSERT(!destroyed_in_a_callback);  // A worker cannot wait for its own end.
  Status closed = Close();
  (void)closed;
}

Status Database::Close() {
  if (impl_->store == nullptr) return Status();
  PARTITA_TRY(impl_->CheckUse());
  PARTITA_TRY(impl_->Run(WaitForCalls(impl_.get())));  // From a callback, which is one of them: not closed.
  Status closed = impl_->Run(impl_->store->Close());
  impl_->store.reset();
  impl_->own_runtime.reset();
  return closed;
}

Task<Status> WaitForCalls(Database::Impl* impl) {
  impl->store->StopPacing();
  co_await impl->calls.Join();
  co_return Status();
}

// ---- Tables.

namespace {

Task<Result<TableDescriptor>> Create(Database::Impl* impl, Store::TableSpec spec) {
  co_return co_await impl->store->CreateTable(std::move(spec));
}

Result<TableDescriptor> CreateAny(Database::Impl* impl, std::string_view name, const TableOptions& options,
                                  bool raw) {
  PARTITA_TRY(impl->CheckUse());
  PARTITA_TRY(CheckTableName(name));
  PARTITA_TRY(CheckDurability(options.durability));
  Store::TableSpec spec;
  spec.account = impl->options.account;
  spec.name = std::string(name);
  spec.raw = raw;
  spec.durability = LevelOf(options.durability, impl->options.durability);
  for (const std::string& split : options.split_partition_keys) {
    if (!raw) PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, split));
    if (split.empty() || split.find('\0') != std::string::npos) {
      return Status::InvalidArgument("a split key is empty or holds a zero byte");
    }
    if (raw && split.size() > KeyBuffer::kRawKeysMax) {
      return Status::InvalidArgument("a split key has " + std::to_string(split.size()) +
                                     " bytes; at most 4,096 are allowed");
    }
    spec.split_partitions.push_back(raw ? split : OrderedText(split));
  }
  bool sorted = std::is_sorted(spec.split_partitions.begin(), spec.split_partitions.end());
  bool distinct = std::adjacent_find(spec.split_partitions.begin(), spec.split_partitions.end()) ==
                  spec.split_partitions.end();
  if (!sorted || !distinct) {
    return Status::InvalidArgument("split_partition_keys must be sorted by UTF-16 code units, each once");
  }
  return impl->RunChange(Create(impl, std::move(spec)));
}

std::shared_ptr<const TableCore> CoreOf(Database::Impl* impl, const TableDescriptor& table) {
  return std::make_shared<const TableCore>(impl, std::make_shared<const TableDescriptor>(table));
}

Result<TableDescriptor> Find(Database::Impl* impl, std::string_view name, bool raw) {
  PARTITA_TRY(impl->CheckUse());
  PARTITA_ASSIGN(TableDescriptor table, impl->store->FindTable(impl->options.account, name));
  if (table.raw != raw) {
    return Status::InvalidArgument("table '" + table.name + "' is " +
                                   (table.raw ? "a raw table" : "an entity table") + "; open it as one");
  }
  return table;
}

}  // namespace

Result<Table> Database::CreateTable(std::string_view name, const TableOptions& options) {
  PARTITA_ASSIGN(TableDescriptor table, CreateAny(impl_.get(), name, options, /*raw=*/false));
  return Table(std::make_shared<const Table::State>(*CoreOf(impl_.get(), table)));
}

Result<RawTable> Database::CreateRawTable(std::string_view name, const TableOptions& options) {
  PARTITA_ASSIGN(TableDescriptor table, CreateAny(impl_.get(), name, options, /*raw=*/true));
  return RawTable(std::make_shared<const RawTable::State>(*CoreOf(impl_.get(), table)));
}

Result<Table> Database::OpenTable(std::string_view name) {
  PARTITA_ASSIGN(TableDescriptor table, Find(impl_.get(), name, /*raw=*/false));
  return Table(std::make_shared<const Table::State>(*CoreOf(impl_.get(), table)));
}

Result<RawTable> Database::OpenRawTable(std::string_view name) {
  PARTITA_ASSIGN(TableDescriptor table, Find(impl_.get(), name, /*raw=*/true));
  return RawTable(std::make_shared<const RawTable::State>(*CoreOf(impl_.get(), table)));
}

Status Database::DeleteTable(std::string_view name) {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(impl_->store->DeleteTable(impl_->options.account, std::string(name)));
}

std::vector<TableDescription> Database::ListTables() const {
  std::vector<TableDescription> tables;
  if (!impl_->is_usable()) return tables;
  for (const TablePtr& table : impl_->store->ListTables(impl_->options.account)) {
    tables.push_back(
        {table->name, table->raw, static_cast<Durability>(table->durability), table->created_ticks});
  }
  return tables;
}

// ---- Maintenance.

Status Database::Barrier() {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->Run(impl_->store->Barrier());
}
Status Database::Flush() {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(impl_->store->FlushMemtables());
}
Status Database::CompactAll() {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(impl_->store->CompactAll());
}
Status Database::SetThroughputTargets(const ThroughputTargets& targets) {
  PARTITA_TRY(impl_->CheckUse());
  PARTITA_TRY(CheckThroughputNames(targets));
  return impl_->store->throttle().SetTargets(targets);
}
ThroughputTargets Database::throughput_targets() const {
  return impl_->is_usable() ? impl_->store->throttle().targets() : ThroughputTargets::Off();
}
const OpenReport& Database::open_report() const { return impl_->report; }

DatabaseStats Database::Stats() const {
  DatabaseStats stats;
  if (!impl_->is_usable()) return stats;
  std::vector<ShardStatistics> shards = impl_->store->Statistics();
  for (size_t i = 0; i < shards.size(); ++i) {
    stats.shards.push_back(StatsOf(shards[i], static_cast<uint32_t>(i)));
    stats.resident_table_bytes += shards[i].resident_table_bytes;
  }
  CacheStatistics cache = impl_->store->CacheStats();
  stats.cache_bytes = cache.used_bytes;
  stats.cache_capacity = cache.capacity_bytes;
  stats.cache_hits = cache.hits;
  stats.cache_misses = cache.misses;
  stats.memory_budget = impl_->options.memory_bytes;
  stats.memtable_pool_bytes = impl_->store->memory_plan().memtable_bytes;
  stats.resident_set_bytes = ResidentSetBytes();
  stats.memory_beside_cache = impl_->store->bytes_beside_cache();
  stats.memory_beyond_budget = impl_->store->bytes_beyond_budget();
  stats.durability = stats.durability_in_force = impl_->options.durability;
  const bool given = impl_->report.volatile_storage.empty() || stats.durability != Durability::kPower;
  if (!given) stats.durability_in_force = Durability::kProcess;
  stats.reads_overdue = impl_->store->waits().overdue();
  stats.reads_overdue_total = impl_->store->waits().overdue_total();
  const ReadFaults& faults = impl_->store->read_faults();
  stats.reads_transient = impl_->store->reads_transient();
  stats.damaged_parts = faults.damaged_parts.load(std::memory_order_relaxed);
  stats.damaged_filters = faults.damaged_filters.load(std::memory_order_relaxed);
  stats.scrub_damages = impl_->store->scrub_damages();
  stats.log_torn_bytes = impl_->report.torn_bytes;
  stats.log_records_stranded = impl_->report.records_stranded;
  stats.catalog_in_doubt = impl_->store->catalog_in_doubt();
  const DiskReserve& reserve = impl_->store->reserve();
  stats.reserve_bytes = reserve.bytes_held();
  stats.reserve_wanted = reserve.bytes_wanted();
  stats.out_of_space = reserve.low();
  stats.times_out_of_space = reserve.times_low();
  const Throttle::Statistics throttle = impl_->store->throttle().statistics();
  stats.throttled_by_partition = throttle.refused_by_partition;
  stats.throttled_by_account = throttle.refused_by_account;
  stats.throttled_by_total = throttle.refused_by_total;
  stats.throttled_partitions_active = throttle.partitions_active;
  const Store::BalanceStatistics balance = impl_->store->balance_statistics();
  stats.ranges_split = balance.splits;
  stats.ranges_merged = balance.merges;
  stats.ranges_moved = balance.moves;
  stats.ranges_failed = balance.failed;
  const LoadSampler::Statistics load = impl_->store->LoadStatistics();
  stats.load_samples = load.samples;
  stats.load_samples_lost = load.lost;
  return stats;
}

Result<VerifyReport> Database::Verify(std::function<bool(uint64_t, uint64_t)> progress) {
  PARTITA_TRY(impl_->CheckUse());
  PARTITA_ASSIGN(Store::VerifyResult result, impl_->Run(impl_->store->Verify(std::move(progress))));
  VerifyReport report;
  report.tables_read = result.tables;
  report.entries = result.entries;
  report.bytes = result.bytes;
  report.damages = std::move(result.damages);
  return report;
}

}  // namespace partita
