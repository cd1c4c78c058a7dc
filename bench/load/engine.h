#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "bench/load/row_generator.h"
#include "engine/base/result.h"

namespace partita::bench {

// How long an acknowledged write lasts, in the words of Partita (DESIGN 2); adapters say what they
// take for it.
enum class DurabilityLevel : uint8_t { kPower, kProcess, kMemory };

// What every engine is opened with, so that a comparison gives both the same.
struct EngineConfig {
  std::string directory;
  uint64_t memory_bytes = uint64_t{1} << 30;
  DurabilityLevel durability = DurabilityLevel::kProcess;
  // Partitions of the data set: where an engine with several shards cuts its key space.
  uint64_t partition_count = 1;
  // Lets a peer read through the page cache, outside its memory budget.
  bool page_cache = false;
};

struct Row {
  RowKeys keys;
  std::string value;
};

// Receives the rows of a scan; return false to stop.
using RowVisitor = std::function<bool(std::string_view row_key, std::string_view value)>;

// Partitions that conditional overwrites are of, at most: to make them ready takes a while.
inline constexpr uint64_t kReplacedPartitionsMax = 1000;

// The operations that the load needs, as one engine offers them. Every method but Close may be
// called from any thread. Closing is the destructor's work when Close was not called.
class Engine {
 public:
  virtual ~Engine() = default;

  // Durable at `level` when it returns.
  virtual Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) = 0;

  // All or nothing; the rows are of one partition.
  virtual Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) = 0;

  // All or nothing; the rows are of one partition and need not exist.
  virtual Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) = 0;

  // Overwrites rows of one partition on condition that each exists: kNotFound, and nothing is written,
  // when one does not. Where an engine has no conditions this is what its user would do: a lock of his
  // own for the partition, a read of each row (CheckExist), then PutAtomically.
  virtual Status ReplaceAtomically(std::span<const Row> rows, DurabilityLevel level);

  // Puts rows of one partition where ReplaceAtomically looks for them. Not from several threads at once, and
  // for no more than the first kReplacedPartitionsMax partitions.
  virtual Status InsertForReplacing(std::span<const Row> rows);

  // Drops all rows in the way that is meant for it; afterwards only Settle and Close are of use.
  // kUnsupported: there is no such way.
  virtual Status Drop();

  // kNotFound when there is no such row. `value` is reused from call to call.
  virtual Status Get(const RowKeys& keys, std::string* value) = 0;

  // Visits up to `limit` rows in key order, from `from` on, across partitions.
  virtual Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) = 0;

  // True when PutAsync and GetAsync work; else many outstanding operations need a thread each.
  virtual bool has_async() const { return false; }

  // Starts the write and returns; `done` is called on a thread of the engine.
  virtual void PutAsync(const RowKeys& keys, std::string value, DurabilityLevel level,
                        std::function<void(Status)> done);
  // Starts the read and returns; as PutAsync.
  virtual void GetAsync(const RowKeys& keys, std::function<void(Result<std::string>)> done);

  // Writes everything to tables and waits until no compaction is due.
  virtual Status Settle() = 0;

  virtual Status Close() = 0;

 protected:
  // Reads rows that are in the order of their keys: kNotFound when one of them is not there.
  virtual Status CheckExist(std::span<const Row> rows);

 private:
  static constexpr size_t kPartitionLocks = 256;
  std::array<std::mutex, kPartitionLocks> partition_locks_;  // Of ReplaceAtomically.
};

// The engines this program was built with.
std::span<const std::string_view> EngineNames();
bool IsEngine(std::string_view name);
// "a, b, c"
std::string KnownEngines();

// kUnsupported for an engine it was not built with.
Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineConfig& config);

}  // namespace partita::bench
