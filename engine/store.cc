#include "engine/store.h"

#include <algorithm>

#include "engine/base/user_key.h"
#include "engine/io/read_only_file_system.h"
#include "engine/io/runtime_over.h"

namespace partita {

namespace {

std::string NameKey(std::string_view account, std::string_view name) {
  return std::string(account) + "/" + FoldCase(name);
}

Status NoSuchTable(std::string_view name) {
  return Status::NotFound("there is no table named '" + std::string(name) + "'");
}

// Settling a catalog change in doubt is tried again after 50 ms, doubling up to 2 s.
constexpr uint64_t kSettleNanosMin = 50'000'000;
constexpr uint64_t kSettleNanosMax = 2'000'000'000;

constexpr uint64_t kLeaseTicksMax = 11 * kTicksPerSecond;

// A moved range is routed anew at most so often: moves are rare, a missing table is not a move.
constexpr int kRoutesMax = 100;

}  // namespace

Store::Store(Runtime& runtime, StoreOptions options)
    : reading_files_(options.read_only ? std::make_unique<ReadOnlyFileSystem>(runtime.files()) : nullptr),
      reading_runtime_(options.read_only ? std::make_unique<RuntimeOver>(runtime, *reading_files_) : nullptr),
      runtime_(options.read_only ? *reading_runtime_ : runtime),
      options_(std::move(options)) {}

Store::~Store() { PARTITA_ASSERT(closed_ || shards_.empty()); }

Status Store::CheckWritable() const {
  if (!options_.read_only) return Status();
  return Status::Unsupported("the store was opened for reading only (F64)");
}

// ---- Names.

Result<TableDescriptor> Store::FindTable(std::string_view account, std::string_view name) const {
  std::shared_ptr<const TableDescriptor> table = LookUpTable(account, name);
  if (table == nullptr) return NoSuchTable(name);
  return *table;
}

std::shared_ptr<const TableDescriptor> Store::LookUpTable(std::string_view account,
                                                          std::string_view name) const {
  return names_.With([&](const NameIndex& names) { return names.FindTable(account, name); });
}

std::vector<TableDescriptor> Store::ListTables(std::string_view account) const {
  std::vector<TableDescriptor> tables;
  {
    std::lock_guard lock(names_mutex_);
    for (const TableDescriptor& table : catalog_.tables) {
      if (table.account == account) tables.push_back(table);
    }
  }
  std::sort(tables.begin(), tables.end(),
            [](const auto& a, const auto& b) { return FoldCase(a.name) < FoldCase(b.name); });
  return tables;
}

Catalog Store::CatalogCopy() const {
  std::lock_guard lock(names_mutex_);
  return catalog_;
}

Task<Status> Store::SaveCatalog(Catalog next) {
  PARTITA_CO_TRY(CheckWritable());
  std::string bytes = EncodeCatalog(next);
  Result<uint64_t> saved = co_await meta_->CompareAndSwap(kCatalogKey, catalog_generation_, bytes);
  if (saved.code() == Code::kUnknown || saved.code() == Code::kPreconditionFailed) {
    // In doubt: what a read finds now is settled and durable, and decides (F15). Until one has
    // answered nothing may go on from a catalog that may be the wrong one.
    Result<std::optional<MetaValue>> read = co_await meta_->Get(kCatalogKey);
    uint64_t pause = kSettleNanosMin;
    while (!read.ok() && opened_ && !closing_.load()) {  // An open that fails is asked for again.
      co_await SleepFor(pause);
      pause = std::min(pause * 2, kSettleNanosMax);
      read = co_await meta_->Get(kCatalogKey);
    }
    if (!read.ok()) co_return Status::Unknown("the catalog change is in doubt: " + read.status().ToString());
    std::optional<MetaValue> found = std::move(read).value();
    if (!found.has_value() && catalog_generation_ == 0) co_return saved.status();  // Was to be the first.
    if (!found.has_value()) co_return Status::Corruption("meta/catalog vanished");
    catalog_generation_ = found->generation;
    if (found->bytes != bytes) co_return saved.status();
  } else if (!saved.ok()) {
    co_return saved.status();
  } else {
    catalog_generation_ = *saved;
  }
  names_.Publish(std::make_unique<const NameIndex>(next));
  std::lock_guard lock(names_mutex_);
  catalog_ = std::move(next);
  co_return Status();
}

// A new table needs none of the shards that are not served.
void Store::KeepOffDamagedShards(TableId id, Catalog* catalog) const {
  if (sound_shards_.empty()) return;
  size_t turn = 0;
  for (RangeDescriptor& range : catalog->ranges) {
    if (!range.lower.starts_with(TableLowerBound(id)) || shard_damages_[range.owner.value].ok()) continue;
    range.owner = sound_shards_[turn++ % sound_shards_.size()]->id();
  }
}

Task<Result<TableDescriptor>> Store::CreateTable(TableSpec spec) {
  AsyncMutex::Guard changing = co_await catalog_mutex_.Lock();
  Catalog next = CatalogCopy();
  if (next.FindTable(spec.account, spec.name) != nullptr) {
    co_return Status::AlreadyExists("a table named '" + spec.name + "' exists already");
  }
  {
    std::lock_guard lock(names_mutex_);
    if (std::find(deleting_.begin(), deleting_.end(), NameKey(spec.account, spec.name)) != deleting_.end()) {
      co_return Status::Busy("table '" + spec.name + "' is being deleted; try again");
    }
  }
  TableDescriptor table;
  table.account = spec.account;
  table.name = spec.name;
  table.raw = spec.raw;
  table.durability = spec.durability;
  // Above every version so far: a table of this name may have lived on another shard, whose clock may
  // be ahead, and an ETag of it must match nothing here (F17).
  table.created_ticks = runtime_.clock().WallTicks();
  for (Shard* shard : sound_shards_)
    table.created_ticks = std::max(table.created_ticks, shard->last_version().value);
  // What a damaged shard gave may lie as far ahead as a lease goes.
  if (degraded()) table.created_ticks += kLeaseTicksMax;
  std::vector<std::string> splits;
  for (const std::string& partition : spec.split_partitions) {
    splits.push_back(EncodeUserKey(TableId(next.next_table_id), partition, ""));
  }
  TableId id = next.AddTable(table, splits);
  if (degraded()) KeepOffDamagedShards(id, &next);
  PARTITA_CO_TRY(co_await SaveCatalog(next));

  // Durable, so decided (F19). The shards take the ranges before anyone is routed to them.
  std::string lower = TableLowerBound(id);
  for (Shard* shard : sound_shards_) {
    std::vector<RangeDescriptor> ranges;
    for (const RangeDescriptor& range : next.ranges) {
      if (range.owner == shard->id() && range.lower.substr(0, kTableIdSize) == lower) ranges.push_back(range);
    }
    if (!ranges.empty()) co_await shard->AddRanges(std::move(ranges), Version(table.created_ticks));
  }
  PublishRoutes();
  co_return *next.FindTable(id);
}

Task<Status> Store::DeleteTable(std::string account, std::string name) {
  std::string key = NameKey(account, name);
  TableId id;
  {
    AsyncMutex::Guard changing = co_await catalog_mutex_.Lock();
    Catalog next = CatalogCopy();
    const TableDescriptor* table = next.FindTable(account, name);
    if (table == nullptr) co_return NoSuchTable(name);
    id = table->id;
    next.RemoveTable(id);
    {
      std::lock_guard lock(names_mutex_);
      deleting_.push_back(key);
    }
    Status saved = co_await SaveCatalog(next);
    if (!saved.ok()) {
      std::lock_guard lock(names_mutex_);
      std::erase(deleting_, key);
      co_return saved;
    }
    PublishRoutes();
  }
  // Acknowledged only when no shard can decide a write of the old table any more (DESIGN 2).
  for (Shard* shard : sound_shards_) co_await shard->DropTable(id);
  std::lock_guard lock(names_mutex_);
  std::erase(deleting_, key);
  co_return Status();
}

void Store::PublishRoutes() {
  auto map = std::make_unique<RangeMap>();
  {
    std::lock_guard lock(names_mutex_);
    map->ranges = catalog_.ranges;
  }
  routes_.Publish(std::move(map));
}

// ---- Entities.

Store::Route Store::RouteOf(ShardId owner) const {
  Shard* shard = shards_[owner.value].get();
  return {shard, shard == nullptr ? &shard_damages_[owner.value] : nullptr};
}

Store::Route Store::RouteTo(std::string_view user_key) const {
  return routes_.With([&](const RangeMap& map) {
    const RangeDescriptor* range = map.Find(user_key);
    return range == nullptr ? Route() : RouteOf(range->owner);
  });
}

Executor& Store::ExecutorFor(std::string_view user_key) {
  Shard* shard = RouteTo(user_key).shard;
  return runtime_.shard_executor(shard == nullptr ? ShardId(0) : shard->id());
}

std::vector<RangeDescriptor> Store::RangesOf(TableId table) const {
  const std::string lower = TableLowerBound(table);
  const std::string upper = TableUpperBound(table);
  return routes_.With([&](const RangeMap& map) {
    std::vector<RangeDescriptor> ranges;
    for (const RangeDescriptor& range : map.ranges) {
      const bool ends_before = !range.upper.empty() && range.upper <= lower;
      if (!ends_before && range.lower < upper) ranges.push_back(range);
    }
    return ranges;
  });
}

Task<WriteOutcome> Store::Write(const WriteRequest& request) {
  WriteOutcome outcome;
  if (options_.read_only) outcome.status = CheckWritable();
  if (!outcome.status.ok()) co_return outcome;
  for (int i = 0; i < kRoutesMax; ++i) {
    const Route route = RouteTo(request.ops[0].user_key);
    if (route.damage != nullptr) {
      outcome.status = *route.damage;
      co_return outcome;
    }
    if (route.shard == nullptr) break;
    outcome = co_await route.shard->Write(request);
    if (outcome.status.code() != Code::kMoved) co_return outcome;
  }
  outcome.status = Status::NotFound("the table does not exist (any more)");
  co_return outcome;
}

Shard::ReadAnswer Store::TryGet(std::string_view user_key, std::string* content) {
  const Route route = RouteTo(user_key);
  if (route.damage != nullptr) return {Shard::ReadState::kNeedsIo, {}};  // Get says why it cannot.
  if (route.shard == nullptr) return {Shard::ReadState::kMoved, {}};
  return route.shard->TryGet(user_key, content);
}

Task<Result<Shard::ReadAnswer>> Store::Get(std::string_view user_key, std::string* content) {
  for (int i = 0; i < kRoutesMax; ++i) {
    const Route route = RouteTo(user_key);
    if (route.damage != nullptr) co_return *route.damage;
    if (route.shard == nullptr) break;
    Result<Shard::ReadAnswer> answer = co_await route.shard->Get(user_key, content);
    if (!answer.ok() || answer->state != Shard::ReadState::kMoved) co_return answer;
  }
  co_return Status::NotFound("the table does not exist (any more)");
}

// ---- Maintenance.

Task<Status> Store::Barrier() {
  for (Shard* shard : sound_shards_) PARTITA_CO_TRY(co_await shard->FlushLog());
  co_return Status();
}

Task<Status> Store::FlushMemtables() {
  PARTITA_CO_TRY(CheckWritable());
  for (Shard* shard : sound_shards_) PARTITA_CO_TRY(co_await shard->FlushMemtables());
  co_return Status();
}

Task<Status> Store::CompactAll() {
  PARTITA_CO_TRY(CheckWritable());
  PARTITA_CO_TRY(co_await FlushMemtables());
  for (Shard* shard : sound_shards_) PARTITA_CO_TRY(co_await shard->CompactAll());
  co_return Status();
}

Task<Result<Store::VerifyResult>> Store::Verify(std::function<void(uint64_t, uint64_t)> progress) {
  VerifyResult result;
  uint64_t due = 0;
  std::map<ObjectId, FileRef> files;
  result.damages = report_.damaged_shards;
  for (Shard* shard : sound_shards_) {
    for (FileRef& file : shard->FileRefs()) files.emplace(file.info.id, std::move(file));
  }
  for (const auto& [id, file] : files) due += file.info.file_size;
  for (const auto& [id, file] : files) {
    ++result.tables;
    if (file.table == nullptr) {
      result.damages.push_back(file.damage.ToString());
      continue;
    }
    TableVerifyReport report;
    Status verified = co_await file.table->Verify(&report);
    if (!verified.ok()) result.damages.push_back(verified.ToString());
    result.entries += report.entries;
    result.bytes += report.bytes_read;
    if (progress) progress(result.bytes, due);
  }
  for (Shard* shard : sound_shards_) {
    Status checked = shard->CheckInvariants();
    if (!checked.ok()) result.damages.push_back(checked.ToString());
  }
  co_return result;
}

std::vector<ShardStatistics> Store::Statistics() {
  std::vector<ShardStatistics> statistics;
  for (auto& shard : shards_) {
    statistics.push_back(shard == nullptr ? ShardStatistics() : shard->Statistics());
  }
  return statistics;
}

Task<Status> Store::Close() {
  PARTITA_ASSERT(!closed_);
  closing_.store(true);
  Status first;
  for (Shard* shard : sound_shards_) {
    Status closed = co_await shard->Close();
    if (first.ok()) first = closed;
  }
  co_await tasks_.Join();
  co_await read_ahead_->Join();  // Of scans that ended early.
  sound_shards_.clear();
  shards_.clear();
  lock_.reset();
  closed_ = true;
  co_return first;
}

}  // namespace partita
