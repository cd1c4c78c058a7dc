#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/entry.h"
#include "engine/base/ids.h"
#include "engine/base/object_store.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "sstable/data_block.h"
#include "sstable/part_format.h"
#include "sstable/table_info.h"
#include "sstable/zone_map.h"

namespace partita {

// Content size that a data block is closed at. A row that is not cached costs reading and decompressing a
// whole block; scans and compactions pay for each block. LZ4 on bench/load's rows of 1 KiB with their keys,
// in microseconds of a slow core (liblz4 1.9.4), and for the block of one row:
//
//   block    compress a KiB   decompress a KiB   ratio   decompress one block   on disk, about
//   16 KiB              2.3               0.41   1.319                    6.5   3 to 4 pages
//   12 KiB              2.3               0.40   1.294                    4.8   3 pages
//    8 KiB              1.9               0.41   1.262                    3.3   2 pages
//    4 KiB              2.5               0.46   1.214                    1.8   1 page
//
// From 12 to 8 KiB a cold read takes 0.8 of the time; hot scans lose 4 %, and the disk gains as much.
inline constexpr size_t kBlockSizeDefault = 8 * 1024;
inline constexpr size_t kBlockSizeMin = 1024;
inline constexpr size_t kBlockSizeMax = 64 * 1024;

struct TableWriterOptions {
  StoreId store;
  ObjectId id;
  Codec codec = Codec::kStored;
  // Not 0: the file is compressed only if its first block of some size, compressed, is at least so many times
  // smaller, and not mostly tombstones. Not with AddBlock, whose blocks come as they are.
  uint32_t shrink_min = 0;
  size_t block_size = kBlockSizeDefault;  // kBlockSizeMin..kBlockSizeMax.
  ZoneExtractor zones;                    // Empty: versions only.
  // The table counts as of this version at least, though its entries may be older: on level 0 what was
  // flushed later is newer (level_set.h), also where it was written elsewhere and came along with a range.
  Version counts_as{};
  // Filters may have 18 bits a key, where rows are large enough for that; else 9.
  bool long_filters = true;
};

// A data block of another table, for pass-through: checked and decoded, to be written again as it
// is under a new seal (DESIGN 7). Views into what the source iterator keeps; valid until it moves.
struct PassThroughBlock {
  std::string_view stored;    // The sealed part as it lies on disk, header included.
  uint64_t content_hash = 0;  // What its old seal proved (see part_format.h).
  const DataBlock* decoded = nullptr;
};

// Writes one table file, front to back.
//
// Use: Create, then Add and AddBlock in internal order with Drain whenever NeedsDrain, then Finish
// or Abandon; one of the two must be awaited before destruction. One user at a time. After any
// error only Abandon is useful: the output is discarded, the inputs kept, and the job is retried
// into a new file (F22).
class TableWriter {
 public:
  // kAlreadyExists, kNoSpace, kIoError from the store; kInvalidArgument for options out of bounds.
  static Task<Result<std::unique_ptr<TableWriter>>> Create(ObjectStore& store, TableWriterOptions options);
  ~TableWriter();

  // Adds the next entry. Plain: finished blocks are compressed and gathered in memory.
  // The stored value is verified here (F51), so that no flush or compaction can forget to:
  // kCorruption when it is not what its writer gave. kInvalidArgument for keys above kUserKeySizeMax.
  // REQUIRES: entries arrive in internal order (key ascending, versions of a key descending).
  Status Add(const Entry& entry);

  // True when enough is gathered (64 KiB) to be worth handing on.
  bool NeedsDrain() const;

  // Hands on what was gathered.
  Task<Status> Drain();

  // Adds all entries of `block` by copying its compressed bytes under a new seal. Its keys feed
  // filters, counts and zone maps, its stored values are verified. Plain, like Add.
  // REQUIRES: internal order; the block's first key is above the last key added.
  Status AddBlock(const PassThroughBlock& block);

  // Content of the data block that is not closed yet. Bytes; 0: the next key begins one.
  size_t block_fill() const;
  // Has that block, or the next one if there is none, closed before it has more content than so many bytes
  // rather than TableWriterOptions::block_size.
  void LimitBlock(size_t content_size);

  // Bytes that the file would have if finished now, roughly.
  uint64_t estimated_size() const;
  uint64_t entry_count() const;
  // The last key added; empty at first.
  std::string_view last_key() const;

  // Writes index, filters, properties and footer, and begins to make the file durable, which goes on while
  // the caller does other things; Finish, or Abandon, is awaited all the same. REQUIRES: at least one entry
  // was added, and none is any more.
  Task<Status> BeginFinish();
  // BeginFinish, where it was not awaited before; then the file is durable (F25).
  Task<Result<TableInfo>> Finish();

  // Removes what was written.
  Task<void> Abandon();

 private:
  struct State;
  explicit TableWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace partita
