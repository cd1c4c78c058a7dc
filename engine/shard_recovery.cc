#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/given_version.h"
#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/shard.h"
#include "wal/local_log_store.h"

// Recovery of one shard (F28 to F38):
//
//  1. Load the manifest. One that is missing or damaged refuses the shard (F35, F39).
//  2. Open its tables. A damaged one leaves its range damaged, and the shard opens (F39).
//  3. Replay the log from the manifest's replay_from into memtables; nothing is rewritten into
//     tables unless memory does not suffice (then what is there is flushed first, and the log is
//     read on from there), or the shard makes way for another number of them.
//  4. Let go of log segments that hold little: each opening begins a new one.
//  5. Start the clock above everything that was ever exposed (F17, F18).
//
// It may be killed anywhere and repeated: until a manifest is saved nothing on disk changes but for
// what the log does to make its own torn end harmless (F33).

namespace partita {

namespace {

// Tells a full pool from other things that may run out (descriptors) while the log is read.
constexpr uint16_t kPoolIsFull = 1;

Status PoolIsFull() {
  return Status::ResourceExhausted("log replay ran out of memtable memory").WithDetail(kPoolIsFull);
}

// The files that a manifest names, each once, opened some at a time: each waits for the disk for a third of a
// millisecond, and a store of 10 GiB has a thousand.
struct FilesToOpen {
  // Beside each other, of a shard. Each holds the end of its file meanwhile, 128 KiB.
  static constexpr int kAtOnce = 8;

  const ShardContext& context;
  std::vector<const FileMeta*> files;
  size_t next = 0;  // Of `files`.
  std::map<ObjectId, FileRef> opened;
  Status refused;  // Why the shard does not open.
};

Task<FileRef> OpenFile(const ShardContext& context, const FileMeta& meta) {
  FileRef file;
  file.info = meta.info;
  file.lower = meta.lower;
  file.upper = meta.upper;
  Result<std::shared_ptr<TableReader>> opened =
      co_await TableReader::Open(context.objects, context.cache, context.store, meta.info->id);
  Status why = opened.ok() ? (*opened)->CheckIs(*meta.info) : opened.status();
  if (why.ok()) {
    file.table = std::move(opened).value();
  } else {
    // A file that the manifest names and the directory lacks is damage, not emptiness (F35).
    if (why.code() == Code::kNotFound)
      why = Status::Corruption(why.message() + ", although the manifest names it (F35)");
    file.damage = std::make_shared<const Status>(std::move(why));
  }
  co_return file;
}

Task<void> OpenNextFiles(FilesToOpen* all) {
  while (all->next < all->files.size() && all->refused.ok()) {
    const FileMeta& meta = *all->files[all->next++];
    FileRef file = co_await OpenFile(all->context, meta);
    // Out of descriptors or memory is not damage: the store does not open half. Nor is a file that a newer
    // version wrote: that version reads it (F66).
    const Code code = file.damage == nullptr ? Code::kOk : file.damage->code();
    if (code == Code::kResourceExhausted || code == Code::kUnsupported) all->refused = *file.damage;
    all->opened.emplace(meta.info->id, std::move(file));
  }
}

Task<void> OpenFiles(FilesToOpen* all) {
  TaskGroup lanes;
  for (int i = 0; i < FilesToOpen::kAtOnce; ++i) lanes.StartHere(OpenNextFiles(all));
  co_await lanes.Join();
}

// What catalog and manifest say of the versions that a shard has given; the log knows the rest.
Version HighestNamed(const Catalog& catalog, const Manifest& manifest) {
  Version highest = manifest.version_ceiling;
  for (const FileMeta& file : manifest.files) highest = HigherGiven(highest, file.info->version_max);
  std::unordered_set<uint32_t> own;
  for (const RangeDescriptor& range : catalog.ranges) {
    if (range.owner == manifest.shard) own.insert(LoadBe32(range.lower.data()));
  }
  for (const TablePtr& table : catalog.tables) {
    if (own.contains(table->id.value)) highest = HigherGiven(highest, Version(table->created_ticks));
  }
  return highest;
}

}  // namespace

Shard::Shard(ShardContext context, ShardId id)
    : context_(std::move(context)), id_(id), manifest_store_(context_.meta, context_.layout, id) {}

Shard::~Shard() = default;

Task<Shard::Opened> Shard::Open(ShardContext context, ShardId id, const Catalog& catalog, bool fresh) {
  std::unique_ptr<Shard> shard(new Shard(std::move(context), id));
  Status recovered = co_await shard->Recover(catalog, fresh);
  const Recovered found = shard->recovered_;
  if (recovered.ok()) {
    Opened opened{.shard = std::move(shard), .recovered = found};
    co_return opened;
  }
  if (shard->log_ != nullptr) {
    Status closed = co_await shard->log_->Close();
    (void)closed;
  }
  Opened refused{.shard = recovered.WithContext("shard " + std::to_string(id.value)), .recovered = found};
  co_return refused;
}

Task<Status> Shard::Recover(const Catalog& catalog, bool fresh) {
  Result<Manifest> loaded = co_await manifest_store_.Load();
  if (!loaded.ok()) {
    if (loaded.code() != Code::kNotFound) co_return loaded.status();
    if (!fresh) co_return ManifestMissing(context_.layout, id_);
    Manifest first;
    first.shard = id_;
    first.layout = context_.layout;
    first.replay_from = LogPosition(0);  // The log does not exist yet.
    if (!context_.read_only) PARTITA_CO_TRY(co_await manifest_store_.Save(first));
    loaded = first;
  }
  Manifest manifest = std::move(loaded).value();
  if (manifest.shard != id_ || manifest.layout != context_.layout) {
    co_return Status::Corruption("meta/" + ManifestKey(context_.layout, id_) + " belongs to shard " +
                                 std::to_string(manifest.shard.value) + " of layout " +
                                 std::to_string(manifest.layout) + " (F66)");
  }
  manifest.Settle(catalog);
  version_floor_ = manifest.version_ceiling;
  log_segment_ = manifest.log_segment;
  referenced_ = manifest.Objects();
  for (ObjectId id : referenced_) context_.references.Add(id);

  PARTITA_CO_ASSIGN(std::unique_ptr<ReadView> view, co_await LoadView(catalog, manifest));
  OpeningProgress::Part replayed(context_.opening);
  while (true) {
    Status replay = co_await ReplayLog(catalog, manifest, view.get(), &replayed);
    if (replay.ok()) break;
    if (!replay_needs_memory_) co_return replay;
    if (context_.read_only) {
      co_return Status::ResourceExhausted(
          "the log holds more than the memtables may take, and who only reads cannot write tables; open the "
          "store with more memory, or for writing");
    }
    PARTITA_CO_TRY(co_await SpillReplay(&manifest, view.get(), recovered_.log.last));
  }
  // A frame's; of records each is asked. Nothing is given above it.
  if (recovered_.log.version_max > kVersionGivenMax) {
    co_return Status::Corruption(LogDirectory(context_.layout, id_) + ": the log says that version " +
                                 std::to_string(recovered_.log.version_max.value) +
                                 " was given, which no clock gives");
  }
  if (!context_.read_only) PARTITA_CO_TRY(co_await EmptyLog(&manifest, view.get()));
  // The log exists now, and must from here on, up to the segment just begun (F35, F69).
  if (manifest.replay_from.value == 0) manifest.replay_from = LogPosition(1);
  manifest.log_segment = log_->newest_segment();
  if (!context_.read_only) {
    PARTITA_CO_TRY(co_await manifest_store_.Save(manifest));
    (void)co_await log_->Trim(manifest.replay_from);  // A spare that cannot be removed: tried again.
    (void)co_await log_->RemoveSurplus();             // Of a life that is over.
  }
  log_segment_ = segment_asked_ = manifest.log_segment;
  // What was replayed lies in older ones.
  frozen_at_segment_ = manifest.log_segment - (view->active->empty() || context_.read_only ? 0 : 1);
  replay_from_ = manifest.replay_from;

  Version floor = std::max({recovered_.log.version_max, replayed_version_, HighestNamed(catalog, manifest)});
  version_floor_ = floor;
  if (context_.planted == EngineDefect::kReuseVersions) floor = Version(view->active->version_max().value);
  Clock& clock = context_.runtime.clock();
  clock_ = std::make_unique<HybridClock>(clock, floor);
  commit_log_ = std::make_unique<CommitLog>(*log_, context_.runtime.shard_executor(id_), clock,
                                            context_.io_deadline_ns, context_.log_tail_bytes);
  commit_log_->Start(log_->durable_end(), floor);
  for (const MemtableRef& memtable : view->frozen) frozen_bytes_ += memtable.bytes;
  UpdateDebt(*view);
  clean_up_due_ = BuildManifest(*view, replay_from_).Objects() != referenced_;
  views_.Publish(std::move(view));
  co_return Status();
}

void Shard::StartBackground() {
  if (context_.read_only) return;
  ScheduleFlush();
  ScheduleCompaction();
  // Files of tables that were dropped just before the last life ended.
  if (clean_up_due_) tasks_.Spawn(context_.runtime.background(BackgroundClass::kOrdinary), CleanUp(this));
}

Task<Result<std::unique_ptr<ReadView>>> Shard::LoadView(const Catalog& catalog, const Manifest& manifest) {
  auto view = std::make_unique<ReadView>();
  view->active = std::make_shared<Memtable>(context_.memtable_pool);
  view->structure_counter = 1;
  FilesToOpen all{.context = context_, .files = {}, .opened = {}, .refused = {}};
  std::unordered_set<uint64_t> named;
  for (const FileMeta& meta : manifest.files) {
    if (named.insert(meta.info->id.value).second) all.files.push_back(&meta);
  }
  co_await OpenFiles(&all);
  PARTITA_CO_TRY(all.refused);
  std::vector<const RangeDescriptor*> own;
  for (const RangeDescriptor& range : catalog.ranges) {
    if (range.owner == id_) own.push_back(&range);
  }
  std::vector<std::vector<const FileMeta*>> files_of(own.size());  // One range's references at a time.
  for (const FileMeta& meta : manifest.files) {
    const auto lies_below = [&](const RangeDescriptor* range) {
      return !range->upper.empty() && range->upper <= meta.lower;
    };
    const auto first = std::partition_point(own.begin(), own.end(), lies_below);
    for (size_t i = static_cast<size_t>(first - own.begin()); i < own.size(); ++i) {
      if (!meta.upper.empty() && own[i]->lower >= meta.upper) break;
      files_of[i].push_back(&meta);
    }
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const RangeDescriptor& range = *own[i];
    LevelEdit edit;
    for (const FileMeta* meta : files_of[i]) {
      FileRef file = all.opened.at(meta->info->id);
      file.lower = std::max(meta->lower, range.lower);
      file.upper = NearerEnd(meta->upper, range.upper);
      if (file.OverlapsBounds(range.lower, range.upper)) edit.added.push_back({meta->level, std::move(file)});
    }
    Result<std::shared_ptr<const LevelSet>> levels = LevelSet::Empty()->Apply(edit);
    if (!levels.ok()) {
      co_return Status::Corruption("meta/" + ManifestKey(context_.layout, id_) + ": " +
                                   levels.status().message());
    }
    view->ranges.push_back(RangeView{range.lower, range.upper, range.epoch, std::move(levels).value()});
  }
  co_return view;
}

Task<Status> Shard::ReplayLog(const Catalog& catalog, const Manifest& manifest, ReadView* view,
                              OpeningProgress::Part* replayed) {
  LocalLogOptions options;
  options.store = context_.store;
  options.shard = id_;
  options.directory = LogDirectory(context_.layout, id_);
  options.incarnation = context_.incarnation;
  options.segment_size = context_.log_segment_bytes;
  options.tail_size = context_.log_tail_bytes;
  options.must_exist = manifest.replay_from.value > 0;
  options.newest_segment = manifest.log_segment;
  options.read_only = context_.read_only;
  options.planted = context_.planted_log;
  replayed->GoOn();
  options.replayed = [replayed](uint64_t done, uint64_t due) { replayed->Set(done, due); };
  if (log_ != nullptr) {
    Status closed = co_await log_->Close();
    (void)closed;
  }
  PARTITA_CO_ASSIGN(std::unique_ptr<LocalLogStore> log,
                    co_await LocalLogStore::Open(context_.runtime.files(), options));
  log_ = std::move(log);
  LogPosition from = manifest.replay_from;
  if (context_.planted == EngineDefect::kForgetReplayFrom) from = LogPosition(0);
  recovered_.log = LogRecovery();
  replayed_version_ = Version();
  replay_needs_memory_ = false;
  LogReplaySink replay = [&](const LogRecord& record) { return ReplayRecord(record, catalog, view); };
  PARTITA_CO_ASSIGN(LogRecovery recovery, co_await log_->Recover(from, std::move(replay)));
  recovered_.log = recovery;
  co_return Status();
}

Status Shard::ReplayRecord(const LogRecord& record, const Catalog& catalog, ReadView* view) {
  PARTITA_ASSIGN(BatchRecordReader check, BatchRecordReader::Open(record));
  if (check.header().version <= replayed_version_) {
    return Status::Corruption("log record " + std::to_string(record.position.value) +
                              " has a version that does not rise");
  }
  const bool is_batch = check.header().attempt == 0;
  // What is of a table that was dropped, or of a range that is not ours any more, counts no more; nor what is
  // of a move that was not made, or made again.
  const auto counts = [&](const Entry& entry) {
    const RangeDescriptor* range = catalog.FindRange(entry.user_key);
    return range != nullptr && range->owner == id_ && check.header().CountsIn(range->move_attempt);
  };
  // A batch lies in one partition: its first entry speaks for all. What was imported may be cut since.
  Entry entry;
  bool live = false;
  while (!live && check.Next(&entry)) {
    live = counts(entry);
    if (is_batch) break;
  }
  if (!live) {
    PARTITA_TRY(check.status());
    ++recovered_.records_skipped;
    recovered_.log.last = record.position;
    return Status();
  }
  Memtable* memtable = view->active.get();
  if (!context_.read_only && IsFull(*memtable)) {  // Who only reads flushes none: one takes the least memory.
    view->frozen.insert(view->frozen.begin(),
                        MemtableRef{view->active, recovered_.log.last, view->active->memory_used()});
    replayed_frozen_bytes_ += view->active->arena().reserved_bytes();
    view->active = std::make_shared<Memtable>(context_.memtable_pool);
    memtable = view->active.get();
  }
  // Shards replay beside each other from one pool: each keeps to its share, so that none finds it
  // taken by another. Who only reads could write nothing out, and asks for no more than there was in memory
  // before.
  uint64_t share = context_.memtable_pool.capacity_bytes() / context_.shard_count;
  const uint64_t used = memtable->arena().reserved_bytes() + replayed_frozen_bytes_;
  if (!context_.read_only && used > 0 && used + record.payload.size() + 2 * ChunkPool::kChunkSize > share) {
    replay_needs_memory_ = true;
    return PoolIsFull();
  }
  uint8_t* memory = memtable->arena().Allocate(record.payload.size());
  if (memory == nullptr || !memtable->Reserve(check.header().operations)) {
    replay_needs_memory_ = true;
    return PoolIsFull();
  }
  std::memcpy(memory, record.payload.data(), record.payload.size());
  std::string_view payload(reinterpret_cast<const char*>(memory), record.payload.size());
  PARTITA_ASSIGN(BatchRecordReader reader, BatchRecordReader::Open(payload));
  while (reader.Next(&entry)) {
    if (!is_batch && !counts(entry)) continue;
    if (!memtable->TryInsert(entry)) {
      return Status::Corruption("log record " + std::to_string(record.position.value) +
                                " has a version of a key that does not rise");
    }
  }
  PARTITA_TRY(reader.status());
  replayed_version_ = check.header().version;
  if (!is_batch) memtable->CountAs(replayed_version_);
  recovered_.log.last = record.position;
  return Status();
}

// The log holds more than the memtables may take, e.g. because the budget is smaller than before:
// what was replayed goes to tables, and the log is read on behind it.
Task<Status> Shard::SpillReplay(Manifest* manifest, ReadView* view, LogPosition last) {
  if (view->active->empty() && view->frozen.empty()) {
    co_return Status::ResourceExhausted(
        "a single log record does not fit the memtable budget; open the store "
        "with more memory");
  }
  // F27: what was spilled before is not replayed again, or this would have no end.
  PARTITA_ASSERT(last >= manifest->replay_from);
  if (!view->active->empty()) {
    view->frozen.insert(view->frozen.begin(), MemtableRef{view->active, last, view->active->memory_used()});
    view->active = std::make_shared<Memtable>(context_.memtable_pool);
  }
  uint64_t done = 0, due = 0;
  for (const MemtableRef& memtable : view->frozen) due += memtable.bytes;
  OpeningProgress::Part spilling(context_.opening);
  while (!view->frozen.empty()) {
    spilling.Set(done, due);
    done += view->frozen.back().bytes;
    PARTITA_CO_ASSIGN(std::vector<FileRef> files, co_await WriteMemtable(*view->frozen.back().table, *view));
    Install spilled;
    spilled.flushed = view->frozen.back().table;
    spilled.flushed_files = std::move(files);
    PARTITA_CO_TRY(ApplyInstall(spilled, view).status());
    view->frozen.pop_back();
  }
  spilling.Set(done, due);
  replayed_frozen_bytes_ = 0;
  Manifest next = BuildManifest(*view, LogPosition(last.value + 1));
  PARTITA_CO_TRY(co_await manifest_store_.Save(next));
  for (const FileMeta& file : next.files) {
    if (std::binary_search(referenced_.begin(), referenced_.end(), file.info->id)) continue;
    context_.references.Add(file.info->id);
    referenced_.insert(std::upper_bound(referenced_.begin(), referenced_.end(), file.info->id),
                       file.info->id);
  }
  *manifest = std::move(next);
  co_return Status();
}

// Without writes nothing would ever trim a log, and every opening adds a segment to it: one that holds
// nothing is begun anew, and what a long one holds in vain is written to tables. So is all of one that will
// be read no more.
Task<Status> Shard::EmptyLog(Manifest* manifest, ReadView* view) {
  const LogPosition last = recovered_.log.last;
  const uint64_t in_active = view->active->empty() ? 0 : view->active->arena().reserved_bytes();
  const uint64_t held = in_active + replayed_frozen_bytes_;
  if (held > 0) {
    const uint64_t idle = kIdleSegmentsMax * context_.log_segment_bytes;
    if (context_.is_resharded || log_->live_bytes() > idle + 2 * held)
      co_return co_await SpillReplay(manifest, view, last);
    co_return Status();
  }
  manifest->replay_from = LogPosition(last.value + 1);
  // What is let go of may have been all that knew of these versions.
  manifest->version_ceiling = std::max(manifest->version_ceiling, recovered_.log.version_max);
  co_return Status();
}

}  // namespace partita
