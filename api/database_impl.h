#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "api/partita.h"
#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/store.h"
#include "engine/world.h"

namespace partita {

// What Database, Table and RawTable share behind the public header.
struct Database::Impl {
  std::unique_ptr<Runtime> own_runtime;  // Null when opened on a given world.
  Runtime* runtime = nullptr;
  std::unique_ptr<Store> store;
  Options options;
  OpenReport report;
  TaskGroup calls;                       // Asynchronous calls under way.
  std::atomic<uint32_t> calls_waiting{0};

  // Asynchronous calls beyond this answer kBusy at once: about a second of work for one core.
  static constexpr uint32_t kCallsMax = 65'536;

  template <typename T>
  T Run(Task<T> task) {
    return runtime->RunToEnd(std::move(task));
  }

  // Starts `call` on the worker of `user_key`; false when too many are under way.
  bool Start(std::string_view user_key, Task<void> call) {
    if (calls_waiting.fetch_add(1, std::memory_order_relaxed) >= kCallsMax) {
      calls_waiting.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    calls.Spawn(store->ExecutorFor(user_key), Counted(this, std::move(call)));
    return true;
  }

 private:
  static Task<void> Counted(Impl* impl, Task<void> call) {
    co_await std::move(call);
    impl->calls_waiting.fetch_sub(1, std::memory_order_relaxed);
  }
};

// What a table handle holds.
struct TableCore {
  Database::Impl* impl = nullptr;
  TableId id;
  std::string name;
  Durability durability = Durability::kPower;
};

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

DurabilityLevel LevelOf(Durability asked, Durability table_default);

// Keys [lower, upper) of a scan, and its direction; the continuation is already applied.
struct ScanBounds {
  std::string lower;
  std::string upper;
};
Result<ScanBounds> BoundsOf(const ScanOptions& options, TableId table, bool ordered_text);
// Where a page that ended at `next_key` goes on.
std::string ContinuationOf(const ScanOptions& options, TableId table, const std::string& next_key);

}  // namespace partita
