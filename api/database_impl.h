#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "api/partita.h"
#include "engine/base/event.h"
#include "engine/base/fork_watch.h"
#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/own_thread.h"
#include "engine/store.h"
#include "engine/world.h"

namespace partita {

// Zones of entities; raw values, which are no records, have none. A ZoneExtractor.
void ExtractZones(std::string_view content, ZoneSink& sink);

// What is to say when too much is under way to begin a call.
Status TooManyCalls();
// kInvalidArgument: a call that waits, of a callback, which runs on a worker.
Status WaitsInCallback();

// What Database, Table and RawTable share behind the public header.
struct Database::Impl {
  std::unique_ptr<Runtime> own_runtime;  // Null when opened on a given world.
  Runtime* runtime = nullptr;
  std::unique_ptr<Store> store;
  Options options;
  OpenReport report;
  TaskGroup calls;  // Asynchronous calls under way.
  std::atomic<uint32_t> calls_waiting{0};
  std::atomic<uint64_t> call_bytes{0};

  // Asynchronous calls beyond this answer kBusy at once: about a second of work for one core.
  static constexpr uint32_t kCallsMax = 65'536;

  // Ok; kClosed after Close, and in a child of fork, which has none of the store's threads and would write to
  // its parent's log. What calls do first.
  Status CheckUse() const {
    if (is_usable()) return Status();
    return Status::Closed(store == nullptr
                              ? "the store is closed"
                              : "the store was opened by the parent of this process, which alone "
                                "can use it: open it after fork");
  }
  bool is_usable() const { return store != nullptr && !is_of_parent(); }
  bool is_of_parent() const { return fork_generation != ForkGeneration(); }

  // Runs `task` to its end. A worker must not wait: called from a callback it answers that instead.
  template <typename T>
  T Run(Task<T> task) {
    if (Executor::Current() == nullptr || own_runtime == nullptr) return runtime->RunToEnd(std::move(task));
    if constexpr (std::is_same_v<T, WriteOutcome>) {
      return WriteOutcome{WaitsInCallback(), 0, Version()};
    } else {
      return WaitsInCallback();
    }
  }

  // A thread that the kernel keeps from a core while others want it must hold none of the tokens that these
  // wait for (DESIGN 2): its write is made by the shard's worker, which costs a round trip.
  WriteOutcome RunWrite(const WriteRequest& request) {
    const bool hops = Executor::Current() == nullptr && own_runtime != nullptr && IsCallerBelowWorkers();
    if (!hops) return Run(store->Write(request));
    WriteOutcome outcome;
    Waiter waiter;  // No mutex between the two: the worker would wait for this thread's core.
    calls.Spawn(store->ExecutorFor(request.ops[0].user_key),
                WriteInto(store.get(), &request, &outcome, &waiter));
    waiter.BlockUntilWoken();
    return outcome;
  }

  // The same for what else takes them, and the locks of those who flush, compact or move ranges: `call`,
  // which may wait, is made by a thread of the workers' rank that is started for it. kResourceExhausted:
  // there is none.
  template <typename Call>
  std::invoke_result_t<Call&> RunAtWorkersRank(Call call) {
    const bool hops =
        Executor::Current() == nullptr && own_runtime != nullptr && RankOfThisThread().IsBelow(workers_rank);
    if (!hops) return call();
    std::optional<std::invoke_result_t<Call&>> answer;
    Waiter waiter;
    // A worker starts it: who is started by this thread has this thread's rank.
    calls.Spawn(runtime->shard_executor(ShardId(0)), CallInto(&call, &answer, &waiter));
    waiter.BlockUntilWoken();
    return std::move(*answer);
  }
  // Runs a task that changes more than rows.
  template <typename T>
  T RunChange(Task<T> task) {
    return RunAtWorkersRank([&]() -> T { return Run(std::move(task)); });
  }

  // Starts `call`, which holds `bytes` of memory, on `worker`, and takes `*done` for its answer; false when
  // too much is under way (F58).
  template <typename T>
  bool Start(Executor& worker, size_t bytes, Task<T> call, std::function<void(T)>* done) {
    if (!Admit(bytes)) return false;
    calls.Spawn(worker, RunThenCall(this, bytes, std::move(call), std::move(*done)));
    return true;
  }
  // The same for a call that reads: where a callback makes it, the device has it before other callbacks run.
  template <typename T>
  bool StartRead(Executor& worker, size_t bytes, Task<T> call, std::function<void(T)>* done) {
    if (!Admit(bytes)) return false;
    calls.SpawnAhead(worker, RunThenCall(this, bytes, std::move(call), std::move(*done)));
    return true;
  }

  const uint32_t fork_generation = WatchForks();
  // Workers have the rank of who opened the store.
  const ThreadRank workers_rank = RankOfThisThread();

 private:
  // Asks the kernel now and then: it costs as much as a cached read.
  bool IsCallerBelowWorkers() const {
    constexpr uint32_t kCallsALook = 256;
    static constinit thread_local uint32_t calls = 0;
    static constinit thread_local ThreadRank rank;
    if (calls++ % kCallsALook == 0) rank = RankOfThisThread();
    return rank.IsBelow(workers_rank);
  }
  static Task<void> WriteInto(Store* store, const WriteRequest* request, WriteOutcome* outcome,
                              Waiter* waiter) {
    *outcome = co_await store->Write(*request);
    waiter->Wake();  // The last access to any of them.
  }
  template <typename Call>
  static Task<void> CallInto(Call* call, std::optional<std::invoke_result_t<Call&>>* answer, Waiter* waiter) {
    const auto run = [call] { return (*call)(); };
    answer->emplace(co_await OnOwnThread(run));
    waiter->Wake();  // The last access to any of them.
  }
  bool Admit(size_t bytes) {
    const uint64_t held = call_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const uint32_t waiting = calls_waiting.fetch_add(1, std::memory_order_relaxed);
    // A call too large for the share goes alone.
    const bool fits = held == 0 || held + bytes <= store->memory_plan().request_bytes;
    if (fits && waiting < kCallsMax) return true;
    Finished(this, bytes);
    return false;
  }
  static void Finished(Impl* impl, size_t bytes) {
    impl->calls_waiting.fetch_sub(1, std::memory_order_relaxed);
    impl->call_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }
  template <typename T>
  static Task<void> RunThenCall(Impl* impl, size_t bytes, Task<T> call, std::function<void(T)> done) {
    T answer = co_await std::move(call);
    call = Task<T>();
    Finished(impl, bytes);  // Before `done`, which may start the next one.
    done(std::move(answer));
  }
};

// What a table handle holds.
struct TableCore {
  Database::Impl* impl = nullptr;
  TableId id;
  std::shared_ptr<const TableDescriptor> descriptor;  // As it was when the handle was made.
  Durability durability = Durability::kPower;

  TableCore(Database::Impl* owner, std::shared_ptr<const TableDescriptor> table)
      : impl(owner),
        id(table->id),
        descriptor(std::move(table)),
        durability(static_cast<Durability>(descriptor->durability)) {}
  const std::string& name() const { return descriptor->name; }  // As created.
};

// kInvalidArgument in a callback, which runs on a worker: it must not wait for one.
Status CheckMayWait();

// A key that memory cannot answer, of many that were asked for.
struct MissingKey {
  size_t index = 0;
  std::string user_key;
};
// Reads them, so many at a time, neighbours together; in any order.
Task<Status> ReadTogether(Store* store, std::vector<MissingKey> missing,
                          std::function<Task<void>(const MissingKey&)> read);
// The same to the end, each by `read(store, user_key, &result)`; what keeps them from being read is the
// result of all.
template <typename T>
void ReadMissing(Database::Impl* impl, const std::vector<MissingKey>& missing,
                 Task<void> (*read)(Store*, std::string, Result<T>*), std::vector<Result<T>>* results) {
  if (missing.empty()) return;
  Store* store = impl->store.get();
  const auto read_one = [&](const MissingKey& key) {
    return read(store, key.user_key, &(*results)[key.index]);
  };
  const Status ran = impl->Run(ReadTogether(store, missing, read_one));
  if (ran.ok()) return;
  for (const MissingKey& key : missing) (*results)[key.index] = ran;
}

// The user key of one entity in a fixed buffer, so that a cached read allocates nothing.
// REQUIRES: keys that passed their checks: two keys of 512 UTF-16 units take at most 3,072 bytes of
// UTF-8, raw ones 4,096.
class KeyBuffer {
 public:
  static constexpr size_t kRawKeysMax = 4096;

  KeyBuffer(TableId table, std::string_view partition_key, std::string_view row_key, bool ordered_text);
  std::string_view key() const { return {bytes_, size_}; }

 private:
  void Append(std::string_view text, bool ordered_text);

  size_t size_ = 0;
  char bytes_[kTableIdSize + kRawKeysMax + 1];
};

// kInvalidArgument: a number that no durability has, as a cast may give.
Status CheckDurability(Durability durability);
// REQUIRES: both passed it.
DurabilityLevel LevelOf(Durability asked, Durability table_default);

// kInvalidArgument: no order, as a cast may give.
Status CheckScanOrder(ScanOrder order);
Direction DirectionOf(ScanOrder order);
ScanOrder OrderOf(Direction direction);

// What a page in flight is counted with (Database::Impl::Start): what it may hold, and its frames.
size_t PageBytesMax(uint64_t rows_max, size_t row_bytes_max, uint64_t bytes_limit);

// A table of any account, which may be called ACCOUNT/TABLE; and how one is called. kNotFound, as FindTable.
Result<TableDescriptor> FindTableOfAny(const Database::Impl& impl, std::string_view name);
std::string NameForAny(const Database::Impl& impl, const TableDescriptor& table);

// Keys [lower, upper) of a scan; the continuation is already applied.
struct ScanBounds {
  std::string lower;
  std::string upper;
};
Result<ScanBounds> BoundsOf(const ScanOptions& options, TableId table, bool ordered_text);
// Where a page that ended at the user key `next_key` goes on (api/continuation.h), and back.
std::string ContinuationOf(ScanOrder order, TableId table, std::string next_key);
// kInvalidArgument: it is not one of this table and order.
Result<std::string> KeyOfContinuation(std::string_view continuation, ScanOrder order, TableId table);

}  // namespace partita
