#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/durability.h"
#include "api/entity.h"
#include "api/heat.h"
#include "api/query_options.h"
#include "api/stalls.h"
#include "api/statistics.h"
#include "engine/base/io_backend.h"
#include "engine/base/maintenance.h"
#include "engine/base/result.h"
#include "engine/base/status.h"
#include "engine/base/throughput_targets.h"

// Partita: a single-node storage engine for tables of typed entities. This is the one header to
// include.
//
//   partita::Options options;
//   options.directory = "data";
//   options.create_if_missing = true;
//   auto database = partita::Database::Open(options);
//   if (!database.ok()) return Report(database.status());  // says what to do
//   auto table = (*database)->OpenTable("Orders");
//   if (table.code() == partita::Code::kNotFound) table = (*database)->CreateTable("Orders");
//   if (!table.ok()) return Report(table.status());
//   partita::Entity order("customer-7", "order-0001");
//   order.Set("Total", 129.5);
//   auto written = table->Insert(order);                   // durable when it returns, if written.ok()
//   auto read = table->Get("customer-7", "order-0001");
//   partita::Status closed = (*database)->Close();
//
// Data model. A *table* holds *entities*; an entity has a PartitionKey and a RowKey, which together
// are its key, and up to 252 typed properties. Entities of one PartitionKey form a *partition*; a
// batch within one partition is atomic. Reads give entities in (PartitionKey, RowKey) order by
// UTF-16 code units. *Raw* tables hold opaque bytes under two byte-string keys instead.
//
// Threads. Every method of Database, Table and RawTable may be called from any thread at any time
// between Open and Close, in its last destructors and those of the process, too; from a callback, which runs
// on a worker, only the asynchronous ones (others answer kInvalidArgument where they would have to wait).
// Values (Entity, Page, ...) belong to the caller.
//
// A process that forks keeps its databases; the child's handles to them answer kClosed, as all do after Close
// (what gives no status answers with nothing).
//
// Callbacks. One that is called must not be empty; a progress may be. What one throws ends the process,
// unless it is called on the calling thread by a ForEach (`visit`), or by a call that is refused at once
// (`done`): then it leaves that call, which has done no harm. A fault in one (SIGSEGV and its like) comes to
// the handler of the program, on the worker; of other signals only SIGPROF is not blocked there.
//
// Errors are values (engine/base/status.h): a code for the decision, a message for the person. To ask a
// Result that is not ok() for its value ends the process, which says what it was. No call throws anything of
// its own. F and a number (F7) name rules of the fault model: test/rules.txt in the source. kUnknown means in
// doubt: the write is wholly there or wholly not, and a later read that shows which is final.
// kDeadlineExceeded: a limit of time, or the disk did not answer for 30 s; nothing was changed.
//
// Durability. A write that returned ok at kPower survives loss of power; at kProcess, any death of
// the process; kMemory promises nothing past the process. All three are atomic, ordered and
// visible alike. A read never shows what a crash may take back.
namespace partita {

class Store;
class Runtime;

// Everything that can be set; the rest is derived or measured ("partita doctor" shows it).
//
// What a process must have besides: a store keeps its files open, one for every 16 to 32 MiB of tables, and
// more where rows are tiny (10 GB of rows of 50 bytes are some 1,000); with kUring also a ring for each
// thread that reads, until that ends. So raise RLIMIT_NOFILE to its hard limit, as our command does: the
// usual 1,024 are used up from some 16 GB on, which whatever else opens files, or accepts connections, meets
// first.
struct Options {
  // The store's directory. Required. One process at a time.
  std::string directory{};

  // Opens for reading only: nothing on disk is changed, so a snapshot, a backup or a read-only medium can be
  // read, by several processes at once, but not beside one that writes (kLocked). What is in the logs is
  // replayed into memory, which must hold it. Writes answer kUnsupported; `shards` counts threads only.
  bool read_only = false;

  // A shard whose log or manifest is damaged otherwise refuses the open (kCorruption). With this the store is
  // opened without it: calls that concern its keys answer kCorruption, naming what is damaged; all others
  // work. Until it is repaired no table file is removed. OpenReport::damaged_shards says which shards that
  // are; `shards` counts threads only.
  bool open_degraded = false;

  // Makes an empty store where the directory is missing or empty. Never set by default: an empty
  // store in place of a lost one would hide the loss.
  bool create_if_missing = false;

  // One number for memtables, cache, filters, indexes and buffers, in bytes. 64 MiB to 1 TiB, and at least 16
  // MiB a shard. Resident memory stays within 5 % of it plus a fixed part of some 24 MiB and 10 MiB a shard
  // (code, stacks, rings, the mapped ends of the logs).
  uint64_t memory_bytes = uint64_t{1} << 30;
  // Part of memory_bytes that the store leaves to its host, which so can keep its own buffers within the one
  // number; the room for blocks gives way. 0 to a quarter of memory_bytes.
  uint64_t host_memory_bytes = 0;

  // Shards = worker threads, each with its own log and memtables; 0 to 256. 0: one for each core that the
  // thread which calls Open may run on, as far as memory_bytes is enough for them, whatever the store was
  // made with. All threads of the store have the affinity of that one, and no better rank (nice, scheduling
  // class), so where it is pinned to a core they all share it. Opened with another number than before
  // (OpenReport::shards_before) a store is divided anew, which takes time: name the number where that is not
  // meant. (The command line keeps the store's own.)
  uint32_t shards = 0;

  // What Durability::kTableDefault means for tables created without their own. Not kTableDefault.
  Durability durability = Durability::kPower;

  // Where a flush is known not to survive a loss of power (a file system in memory, an overlay mounted
  // volatile, a disk whose cache is not flushed), opening for writing fails with kUnsupported. True: it is
  // opened there nevertheless, and kPower is no more than kProcess (OpenReport::volatile_storage).
  bool allow_volatile_storage = false;

  // How many entities a second are let through, by partition and by account (throughput_targets.h); calls
  // beyond answer kThrottled, with the wait that would suffice. Can be changed while the store is open.
  ThroughputTargets throughput = ThroughputTargets::Off();

  // With several shards: tables split into ranges of partitions, and ranges move between shards, as the load
  // asks, so that no shard has much more to do than the others; what was moved by hand may be moved again.
  // False: only by SplitRange and its like.
  bool balance_ranges = true;

  // Whose tables these calls see. A store can hold those of several accounts, which only its HTTP
  // service tells apart; the default is the account that table clients use for local development.
  // 3 to 24 characters [a-z0-9].
  std::string account = "devstoreaccount1";

  // Called while the store opens, now and then: how many bytes are done, and how many there are to do, which
  // may rise, and falls by what is left of a shard that does not open; of the logs to be read, and of tables
  // where what they hold does not fit into memory or is divided anew. On any thread, by one at a time; it
  // must not wait. Not kept beyond Open. Null: nobody is told.
  std::function<void(uint64_t done, uint64_t due)> opening_progress{};

  // io_uring needs kernel 6.1 and a machine that allows it: otherwise Open fails with kUnsupported and
  // says why; it never falls back by itself. kThreads works everywhere.
  IoBackend io_backend = IoBackend::kUring;
};

struct TableOptions {
  Durability durability = Durability::kTableDefault;
  // PartitionKeys where the table is cut into ranges from the start, sorted, distinct; the ranges
  // are dealt to the shards in turn. Empty: one range, on one shard.
  std::vector<std::string> split_partition_keys{};
};

struct TableDescription {
  std::string name;  // As created.
  bool raw = false;
  Durability durability = Durability::kPower;
  uint64_t created_ticks = 0;  // 100 ns since 1601-01-01 UTC.
};

// An interval of a table's partitions. Each is served by one shard; a partition lies in one as a whole.
struct RangeDescription {
  std::string table;
  std::string first_partition_key;  // Inclusive; empty: from the table's beginning.
  std::string end_partition_key;    // Exclusive; empty: to its end.
  uint32_t shard = 0;
};

// What a write does and when it may.
enum class WriteAction : uint8_t {
  kInsert,           // kAlreadyExists when the entity exists.
  kReplace,          // Update: kNotFound when it does not; all properties are replaced.
  kMerge,            // kNotFound when it does not; given properties are set, others stay.
  kInsertOrReplace,  // Unconditional.
  kInsertOrMerge,    // Unconditional.
  kDelete,           // kNotFound when it does not exist; only the keys of the entity are used.
};

// One operation of a batch.
struct Write {
  WriteAction action = WriteAction::kInsert;
  Entity entity{};
  // An ETag as returned by a write or a read: the operation then needs the entity to have it, else
  // kPreconditionFailed. "*": any. Empty: no condition. Allowed with kReplace, kMerge and kDelete.
  std::string if_match{};
};

struct WriteOptions {
  Durability durability = Durability::kTableDefault;
};

// The answer to a single write or to a batch.
struct [[nodiscard]] WriteResult {
  Status status;
  uint32_t failed_operation = 0;  // Index in the batch of the operation that was refused.
  uint64_t timestamp_ticks = 0;   // Of every entity written: 100 ns since 1601-01-01 UTC.
  std::string etag;               // The same as ETag text.
  bool ok() const { return status.ok(); }
};
using WriteCallback = std::function<void(WriteResult)>;

// Limits of a batch; larger ones only when embedded, by option. The defaults are those of the
// table service (api/limits.h).
struct BatchOptions {
  Durability durability = Durability::kTableDefault;
  uint32_t operations_max = 100;
  // Sum of entity sizes by the service's formula, of deletes those of the keys; at most 64 MiB, and what is
  // encoded at most half of the memory for memtables (5/32 of memory_bytes); with some 120 bytes an operation
  // beside it at most all of it.
  uint64_t bytes_max = 4u << 20;
};

struct RawRow {
  std::string partition_key, row_key, value;
};
// A row as RawTable::ForEach shows it: valid during that call.
struct RawRowView {
  std::string_view partition_key, row_key, value;
};
struct RawPage {
  std::vector<RawRow> rows;
  std::string continuation;  // As Page's.
  QueryCost cost;
  std::vector<SkippedKeys> skipped;  // As Page's.
};

// A handle to an entity table; cheap to copy; valid until the database is destroyed. After the table
// was deleted every call that looks into it answers kNotFound, also when a table of the same name was made
// since: MissingOf(status) (engine/base/status.h) is then kTable, not kOther as for an entity that is absent.
class Table {
 public:
  const std::string& name() const;

  // ---- Writes. Durable at their level, and visible, when they return. Refused, with nothing changed:
  // kInvalidArgument, kAlreadyExists, kNotFound, kPreconditionFailed (as WriteAction says); kThrottled; kBusy
  // (4,096 writes wait for the shard; or, after 10 s, flushes have freed no memory, or the range is still on
  // its way to another shard: a write may block as long); kNoSpace (the disk is full: only deletes are
  // taken); kResourceExhausted (the log found no descriptor, and ends until there is one); kIoError,
  // kCorruption; kUnsupported (open for reading only); kClosed. Where a condition or a merge must read the
  // entity also kDeadlineExceeded (the disk did not answer) and kResourceExhausted (no memory to read into).
  // kUnknown: in doubt. Before any of that a write waits where flushes or compactions are behind: for
  // milliseconds, at most for 2 s.
  WriteResult Insert(const Entity& entity, WriteOptions options = {}) const;
  WriteResult Replace(const Entity& entity, std::string_view if_match = {}, WriteOptions options = {}) const;
  WriteResult Merge(const Entity& entity, std::string_view if_match = {}, WriteOptions options = {}) const;
  WriteResult InsertOrReplace(const Entity& entity, WriteOptions options = {}) const;
  WriteResult InsertOrMerge(const Entity& entity, WriteOptions options = {}) const;
  WriteResult Delete(std::string_view partition_key, std::string_view row_key, std::string_view if_match = {},
                     WriteOptions options = {}) const;

  // Entity group transaction: all or nothing. One partition, each RowKey once.
  WriteResult Transact(std::span<const Write> writes, BatchOptions options = {}) const;

  // Independent operations, each with its own answer, in any partitions. `results` is filled in
  // order. They have no order among them but are logged together, some thousand of them at the price of
  // little more than one flush.
  [[nodiscard]] std::vector<WriteResult> WriteMany(std::span<const Write> writes,
                                                   WriteOptions options = {}) const;

  // Starts the write and returns; `done` is called once, on a worker thread: it must not block.
  // Calls in flight together have no order. At most 65,536 of them may be, with 1/16 of memory_bytes and at
  // most 512 MiB: beyond it `done` gets kBusy at once, on the calling thread, as it gets what breaks a rule
  // of its own. REQUIRES: `done` is not empty.
  void WriteAsync(Write write, WriteOptions options, WriteCallback done) const;
  void TransactAsync(std::vector<Write> writes, BatchOptions options, WriteCallback done) const;

  // ---- Reads. What an asynchronous one reads into is in no budget: many of large rows at once take as much.
  // kNotFound; kInvalidArgument: no key of an entity; kCorruption: the bytes that would answer are damaged;
  // kUnknown: its last write is in doubt; kDeadlineExceeded: the disk did not answer; kBusy: the range keeps
  // moving; kThrottled; kResourceExhausted: no memory to read into; kIoError; kClosed.
  Result<Entity> Get(std::string_view partition_key, std::string_view row_key) const;

  // The same into a buffer that is reused: a cached read allocates nothing once it is large enough.
  // The record is read with EntityView (api/entity.h), which says how its text becomes UTF-8. Neither pointer
  // may be null; after an error what they point to is unspecified.
  Status GetRecord(std::string_view partition_key, std::string_view row_key, std::string* record,
                   uint64_t* timestamp_ticks) const;

  // Many keys at once: reads that miss memory go to the disk together. Answers in the order asked.
  struct Key {
    std::string partition_key{}, row_key{};
  };
  std::vector<Result<Entity>> GetMany(std::span<const Key> keys) const;

  // `done` is called once, as by WriteAsync.
  void GetAsync(std::string partition_key, std::string row_key,
                std::function<void(Result<Entity>)> done) const;

  // ---- Queries (api/query_options.h has the options and answers). What runs through many entities runs in
  // slices beside everything else, on the worker that has them; nothing is locked, no write waits.
  //
  // Errors of all: kInvalidArgument and kUnsupported for a filter or option that breaks a rule; where a
  // filter's text cannot be parsed the message says where. kNotFound; kCancelled; kThrottled (a page that got
  // on ends before, and the next one answers it; ForEach, Aggregate and Count answer it at their first page
  // alone, and wait within time_limit for what later ones need); kCorruption, kUnknown: at what is damaged or
  // in doubt, never a shorter answer; kDeadlineExceeded: time_limit (of ForEach and Aggregate), or the disk
  // did not answer; kBusy, kResourceExhausted, kIoError, kClosed as above.

  // One page, in the order of keys. Go on with its continuation while it is not empty: an entity that is
  // there throughout comes once, whatever happens to others meanwhile, also after the store was opened anew.
  // A page that has entities ends before what is damaged or in doubt; the next one says what it is.
  Result<Page> Query(const QueryOptions& options) const;

  // Starts it and returns; `done` is called once, as by WriteAsync, and may ask for the next page there.
  // `options` is copied; what its `cancelled` points to must outlive the call of `done`, this handle need
  // not. In flight a page counts with the stored bytes that it may hold, but for the entity that reaches its
  // bytes_limit: with that, or with its limit in entities of 1 MiB where that is less. (Decoded they take
  // more.) So tight limits let more be in flight; and while a page counts with all that may be
  // (memory_bytes / 16), as one of 4 MiB does where memory_bytes is 64 MiB, other calls get kBusy.
  void QueryAsync(const QueryOptions& options, std::function<void(Result<Page>)> done) const;

  // All pages of it: calls `visit` with each entity, in order, on this thread, until it answers false or
  // `top` is reached. Holds one page at a time. `options.continuation` says where to begin.
  Result<QueryCost> ForEach(const QueryOptions& options,
                            const std::function<bool(Entity entity)>& visit) const;

  // Several values over all entities that match, in one pass on all shards at once:
  //
  //   orders.Aggregate({{AggregateKind::kCount}, {AggregateKind::kSum, "Total"}}, {.filter = "Total gt
  //   100.0"})
  //
  // Of the options only filter, where, time_limit and cancelled count. Holds no entities. An entity that
  // changes meanwhile counts as it was or as it is. A count without condition reads keys only.
  Result<AggregateAnswer> Aggregate(const std::vector<AggregateOf>& wanted, const QueryOptions& options = {},
                                    const QueryProgress& progress = {}) const;

  // How it would be answered; asks memory only and reads nothing. What it took is in each page's cost.
  Result<Explanation> Explain(const QueryOptions& options) const;

  // The query for key bounds alone; its continuations are those of Query.
  Result<Page> Scan(const ScanOptions& options) const;
  // Entities within key bounds. limit, bytes_limit, order, continuation and skip_damage are ignored.
  Result<uint64_t> Count(const ScanOptions& options) const;

 private:
  friend class Database;
  struct State;
  explicit Table(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// A handle to a raw table: two byte-string keys without 0x00, together at most 4 KiB, and one value
// of up to 16 MiB (and 5/32 of memory_bytes). To delete what is not there is ok. Otherwise as Table.
class RawTable {
 public:
  const std::string& name() const;

  WriteResult Put(std::string_view partition_key, std::string_view row_key, std::string_view value,
                  WriteOptions options = {}) const;
  WriteResult Delete(std::string_view partition_key, std::string_view row_key,
                     WriteOptions options = {}) const;

  struct Operation {
    bool remove = false;
    std::string partition_key{}, row_key{}, value{};
  };
  // Atomic; one partition, each row key once, up to 10,000 operations and 64 MiB (and 5/32 of memory_bytes).
  WriteResult Apply(std::span<const Operation> operations, WriteOptions options = {}) const;
  void ApplyAsync(std::vector<Operation> operations, WriteOptions options, WriteCallback done) const;

  // After an error `value` is unspecified.
  Status Get(std::string_view partition_key, std::string_view row_key, std::string* value) const;
  void GetAsync(std::string partition_key, std::string row_key,
                std::function<void(Result<std::string>)> done) const;
  std::vector<Result<std::string>> GetMany(std::span<const Table::Key> keys) const;

  Result<RawPage> Scan(const ScanOptions& options) const;
  // As Table::QueryAsync; a row may have 16 MiB.
  void ScanAsync(const ScanOptions& options, std::function<void(Result<RawPage>)> done) const;

  // All rows within the bounds, from `options.continuation` on: calls `visit` with each, in order, on this
  // thread, until it answers false. Holds `limit` rows at a time, or as many as make 256 KiB and one more,
  // where they are cached by keeping their blocks there, and takes no memory for a single row: with a `limit`
  // of what is wanted, the fastest way to read a run of rows. Those held at a time are of one point in time
  // for each partition, as a page is; the cost counts them whether shown or not. Errors: as Scan, but
  // kThrottled before the first row alone (later it waits); kInvalidArgument with skip_damage, which is for
  // pages. Rows shown before one stand.
  Result<QueryCost> ForEach(const ScanOptions& options,
                            const std::function<bool(const RawRowView& row)>& visit) const;

 private:
  friend class Database;
  struct State;
  explicit RawTable(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

class Database {
 public:
  // Opens or creates the store and recovers it. kLocked names the process that holds it; kNotFound
  // when there is no store and create_if_missing is false; kInvalidArgument names the option and
  // its bounds, or says that the directory holds something else. A process that ends may hold the store for
  // up to 5 s more, which Open waits. kUnsupported: a newer version wrote it, or this machine lacks something
  // (UnmetOf(status) says which: IoBackend, allow_volatile_storage); kCorruption, kResourceExhausted,
  // kNoSpace, kIoError.
  static Result<std::unique_ptr<Database>> Open(const Options& options);

  // Flushes everything accepted at kPower and kProcess, seals the logs and stops (F7). Waits for asynchronous
  // calls that are under way, until each `done` has returned and its captures are destroyed, which is on a
  // worker; what a `done` begins is waited for likewise, so a chain of them must end. No other call may run
  // or start meanwhile. Neither this nor the destructor, which closes too, and drops the status, is for a
  // callback: so nothing that one captures may be the last to hold the Database.
  //
  // Errors: a log could not be flushed or sealed, so what was not durable may be lost: kUnknown, kNoSpace,
  // kResourceExhausted, kDeadlineExceeded, kIoError. The store is closed all the same, and to close it again
  // is ok. It is not closed after kInvalidArgument (a callback asked) and kClosed (a child of fork did).
  Status Close();
  ~Database();

  // Tables and ranges are changed one at a time, and durable when a call returns. Each may answer
  // kDeadlineExceeded: another change took 30 s, and this one did not begin; kUnknown: this one did, or one
  // of that name, and is in doubt; kIoError: it was not made; kNoSpace: the disk is full (deletions go on);
  // kUnsupported (open for reading only); kClosed.
  //
  // kAlreadyExists; kInvalidArgument for a bad name; kBusy while a table of that name is still being deleted;
  // kResourceExhausted: more than 4,096 splits of all tables, or 4,294,967,294 tables were made before.
  Result<Table> CreateTable(std::string_view name, const TableOptions& options = {});
  Result<RawTable> CreateRawTable(std::string_view name, const TableOptions& options = {});
  // kNotFound; kInvalidArgument when the table is of the other kind; kUnknown: whether one of that name was
  // made or deleted is in doubt, try again; kClosed.
  Result<Table> OpenTable(std::string_view name);
  Result<RawTable> OpenRawTable(std::string_view name);
  // Drops all entities at once, by metadata: the cost does not depend on the size. kNotFound.
  Status DeleteTable(std::string_view name);
  std::vector<TableDescription> ListTables() const;

  // ---- Ranges: how tables are divided among the shards. A table begins as one (TableOptions has more), and
  // is as fast as one shard is. All of these run beside reads and writes, and are wholly done or not at all
  // after a crash. kNotFound: no such table. One of another account (Options) is called ACCOUNT/TABLE. In the
  // order of keys; of one table, or of all, other accounts' too, when `table` is empty.
  Result<std::vector<RangeDescription>> ListRanges(std::string_view table = {}) const;
  // Cuts the range with this partition in two in front of it: both pieces stay with their shard, and no data
  // is touched. kAlreadyExists: one begins there; kInvalidArgument: the empty key; kResourceExhausted: 4,096
  // splits of all tables.
  Status SplitRange(std::string_view table, std::string_view partition_key);
  // Joins the range that begins with this partition to the one in front of it. kInvalidArgument: none begins
  // there; kPreconditionFailed: they are on two shards.
  Status MergeRanges(std::string_view table, std::string_view partition_key);
  struct RangeMove {
    uint32_t from = 0, to = 0;   // Shards; the same: there was nothing to do.
    double pause_ms = 0;         // How long writes of the range waited. Reads never do.
    uint64_t bytes_written = 0;  // Meanwhile, of what only memory held. What is in files stays where it is.
  };
  // Gives the range that holds this partition to another shard. kBusy: another one is on its way;
  // kInvalidArgument: there is no such shard.
  Result<RangeMove> MoveRange(std::string_view table, std::string_view partition_key, uint32_t shard);

  // ---- Heat: where the load lies (api/heat.h). These read memory only, and take up to some milliseconds.
  // The hottest first.
  std::vector<HotPartition> HotPartitions(HeatMetric metric, uint32_t count = 10) const;
  // Of the whole store, over the same time as HotPartitions.
  HeatValues LoadPerSecond() const;
  // kInvalidArgument names what is out of its bounds; kNotFound: no such table.
  Result<HeatPicture> Heat(const HeatWindow& window = {}) const;

  // Returns when everything acknowledged before is durable at kPower (F8). kUnknown: a log failed, and some
  // of it may not be.
  Status Barrier();
  // Writes every memtable to tables and waits for it. kBusy: for 30 s it was in doubt whether a range has
  // moved; kDeadlineExceeded: nothing was flushed for 30 s, but flushes go on; kUnsupported (open for reading
  // only); kNoSpace, kResourceExhausted, kIoError, kClosed.
  Status Flush();
  // Flushes, then compacts until nothing is due. As Flush; kCorruption.
  Status CompactAll();

  // Puts other throughput targets in force, at once and until the store is closed. kInvalidArgument
  // names the rule, also one for an account or table that cannot be; there need not be any such one yet.
  Status SetThroughputTargets(const ThroughputTargets& targets);
  ThroughputTargets throughput_targets() const;

  DatabaseStats Stats() const;
  // What kept the workers long (api/stalls.h).
  StallSummary Stalls() const;
  const OpenReport& open_report() const;
  // Reads every table file and checks each seal, checksum, order and count. `progress` as in TaskPace, after
  // each file; kCancelled when it returns false.
  Result<VerifyReport> Verify(std::function<bool(uint64_t done, uint64_t due)> progress = {});

  // Reads everything on disk that can change an answer, past all caches, and checks it: to be run regularly,
  // since what rots where nobody reads is found too late. Beside everything else; options.pace bounds it.
  // Damage is a finding in the report. Of an error that ends it the text has the first twenty, and how many
  // more there are: kCancelled by options.pace.progress; kResourceExhausted, where there was no memory for a
  // table, a log or a manifest, when all others were read, or to list the logs, before anything was.
  Result<ScrubReport> Scrub(const ScrubOptions& options = {});

  // Writes a backup to the new directory `directory`, beside everything else that happens: everything
  // acknowledged before the call, of each shard a prefix of what it did, batches whole. Every block, and what
  // says which there are, is read back from the medium before the directory gets its name; until then it is
  // called DIRECTORY.partial. kAlreadyExists; kCorruption: something in the store, or of what was written, is
  // damaged, so there is no backup; kBusy: another one is being made there, or for 30 s a range was on its
  // way; kUnsupported (open for reading only); kInvalidArgument: no name of a directory, or options.base is
  // unfinished; kNotFound: the directory above, or options.base, is not there; kNoSpace, kIoError; kCancelled
  // by options.pace.progress.
  Result<BackupReport> Backup(const std::string& directory, const BackupOptions& options = {});
  // Makes a store of a backup in a new or empty directory, or one where this was interrupted; verified when
  // it returns. It is opened with Open. No ETag that the original ever gave is given by it again.
  // kInvalidArgument: `backup` is no complete backup, or this machine's clock is behind it; kNotFound;
  // kAlreadyExists: something else is in the directory; kLocked: it is in use; kCorruption: the backup is
  // damaged, and what is sound of it can be had by opening it for reading only (Options::open_degraded,
  // QueryOptions::skip_damage); kUnsupported: a newer version wrote it; kNoSpace, kIoError; kCancelled by
  // options.pace.progress.
  static Result<BackupReport> Restore(const std::string& backup, const std::string& directory,
                                      const BackupOptions& options = {});

  // Lists what is damaged in the store in `directory`, which nobody has open, and what a repair would lose;
  // reads all of it. With options.apply it then repairs the store: everything that is not listed as lost is
  // kept, and the old bytes lie in RepairReport::kept_in, a directory within the store, until somebody
  // removes it. Killed anywhere it leaves the store as it was or repaired. kNotFound: no store; kLocked: in
  // use; kInvalidArgument: a backup, with options.apply, or an option that breaks a rule. Blocks.
  static Result<RepairReport> Repair(const std::string& directory, const RepairOptions& options = {});

  // For tests and tools inside this project: runs on a given world (the simulator).
  static Result<std::unique_ptr<Database>> OpenOn(Runtime& runtime, const Options& options);

  struct Impl;  // Private to the library.

 private:
  friend class AsyncDatabase;
  Database();
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita
