#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/base/executor.h"
#include "engine/base/ids.h"
#include "engine/base/object_store.h"
#include "sstable/block_cache.h"
#include "sstable/level_set.h"
#include "sstable/table_writer.h"
#include "sstable/zone_map.h"

namespace partita {

class Overlapped;
class ReadAheadPool;

// What flush and merge jobs have in common: the world they work in and what they report.

// Everything referred to outlives the job.
struct JobContext {
  ObjectStore& store;
  BlockCache& cache;
  StoreId store_id;
  // A fresh, never used id; called once for each output, on the job's thread.
  std::function<ObjectId()> next_object_id;
  // True for tables that were deleted: their entries are dropped. May be empty.
  std::function<bool(TableId)> is_dead_table;
  ZoneExtractor zones;  // Empty: versions only.
  uint64_t target_file_bytes = 32ull << 20;
  uint64_t flushed_file_bytes_max = 0;  // Of a flush's outputs; 0: 5/4 of the target.
  // What an entry counts as at least in the size of an output that is cut: while the filter is built, tiny
  // rows take more memory than on the disk. 0: what it takes there alone counts.
  uint64_t entry_bytes_min = 0;
  size_t block_size = kBlockSizeDefault;
  Version counts_as{};  // As TableWriterOptions.
  // Puts blocks into the cache for a job whose thread must not take its locks (WarmEntries). May be null.
  Executor* cache_executor = nullptr;
  // Where the job has read what it comes to next while it works; null: it waits for each read.
  ReadAheadPool* read_ahead = nullptr;
  // Begins what goes on beside the job (Overlapped::Start). It may be performed, or held unbegun, by others
  // when the job has ended. Empty: the job does all by itself.
  std::function<void(std::shared_ptr<Overlapped>)> start_beside{};
  // Called now and then by who works for the job, as its thread alone knows what CPU time that takes; and
  // where the reading back of a table begins and where it ends, with the bytes read since. May be empty.
  std::function<void(uint64_t bytes)> note_work{};
  // Set from any thread to end the job with kCancelled at its next slice. May be null.
  const std::atomic<bool>* cancel = nullptr;
};

// in = out + dropped, for each entry and a counted reason (F47); checked before a job succeeds.
struct JobStatistics {
  uint64_t entries_in = 0;
  uint64_t entries_out = 0;
  uint64_t dropped_shadowed = 0;
  uint64_t dropped_tombstones = 0;
  uint64_t dropped_dead_table = 0;
  uint64_t raw_bytes_in = 0;  // User keys and stored values.
  uint64_t bytes_in = 0;      // Of input files, as far as their references reach.
  uint64_t bytes_written = 0;
  uint64_t bytes_verified = 0;  // Read back from the outputs.
  uint64_t blocks_passed = 0;   // Input blocks copied as they were.
  uint64_t blocks_merged = 0;   // Input blocks taken apart.
  uint64_t files_moved = 0;

  bool Accounted() const {
    return entries_in == entries_out + dropped_shadowed + dropped_tombstones + dropped_dead_table;
  }
};

// What a job that succeeded has made. Every added file is durable (F25) and was read back (F47); the
// removed references may go once the edit is durable.
struct JobResult {
  LevelEdit edit;
  JobStatistics statistics;
  // Blocks of the inputs that the cache held, for BlockCache::Drop once nobody refers to their objects.
  std::vector<BlockKey> replaced;
};

}  // namespace partita
