#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/entry_iterator.h"
#include "engine/base/lookup.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/base/user_key.h"
#include "sstable/key_fences.h"
#include "sstable/key_hash.h"
#include "sstable/level0_intervals.h"
#include "sstable/table_info.h"
#include "sstable/table_iterator.h"
#include "sstable/table_reader.h"

namespace partita {

inline constexpr size_t kLevels = 7;

// A reference to a table file as plain data: what manifests write.
//
//   varint level
//   bytes  lower, upper         only keys in [lower, upper); empty upper: no bound
//   ...    table info           see table_info.h
struct FileMeta {
  uint32_t level = 0;
  std::string lower;
  std::string upper;
  SharedTableInfo info;

  friend bool operator==(const FileMeta&, const FileMeta&) = default;
};
void AppendFileMeta(std::string* out, const FileMeta& meta);
// reader->ok() is false afterwards when the bytes were short or the level is out of bounds.
FileMeta ReadFileMeta(ByteReader* reader);

// A *virtual* reference: of the file's entries only those with keys in [lower, upper) count; an
// empty `upper` is no bound. One file may be referred to by several level sets.
struct FileRef {
  std::shared_ptr<TableReader> table;  // Null when the file could not be opened; see `damage`.
  SharedTableInfo info;
  std::string lower;
  std::string upper;
  // Why `table` is null: what every read of these keys answers (F39, F43).
  std::shared_ptr<const Status> damage;
  // On level 0: bytes of the blocks that scans read from the device only to begin in this file. Of n such
  // blocks of n files that overlap, all but one would not be read were the files merged. Counted for this
  // reference, since it was added and in all sets that have it, by any thread. Null on other levels.
  std::shared_ptr<std::atomic<uint64_t>> seek_bytes;

  // The keys that can really occur: [first, end).
  std::string_view first() const;  // max(lower, smallest)
  std::string end() const;         // Least key behind them all: min(upper, largest and a zero).
  // It has every key of its file.
  bool IsWhole() const;
  // True when `user_key` is within both bounds and file.
  bool MayHold(std::string_view user_key) const;
  bool OverlapsBounds(std::string_view lower_bound, std::string_view upper_bound) const;
};

// Cuts a FileRef or FileMeta at [lower, upper), an empty upper being no bound; false when it holds no key
// then.
template <typename File>
bool CutTo(std::string_view lower, std::string_view upper, File* file) {
  if (file->lower < lower) file->lower = lower;
  file->upper = NearerEnd(file->upper, upper);
  if (file->info->largest < file->lower) return false;
  return file->upper.empty() || std::max(file->lower, file->info->smallest) < file->upper;
}

// The difference between two level sets. Removed first, then added.
struct LevelEdit {
  struct Added {
    uint32_t level = 0;
    FileRef file;
  };
  struct Removed {
    uint32_t level = 0;
    ObjectId id;
    std::string lower;  // Tells apart several references to one file.
  };
  std::vector<Added> added;
  std::vector<Removed> removed;
};

// One of several keys that are looked up together, and what is known of it.
struct SoughtTogether {
  SoughtKey key;
  size_t index = 0;  // Whose it is: for who asks.

  Lookup found;                        // Its value is kept by `pin`.
  BlockPin pin;                        // May be empty.
  bool needs_io = false;               // As TableLookup's.
  const TableReader* reads = nullptr;  // Then: whose block is not in memory; null where that is damaged.
};

// Where LevelSet::Get has data blocks from. kDevice is for who found a bad value: the cache loses what it has
// of them where that is not the same (TableReader::GetAnew).
enum class BlocksFrom : uint8_t { kCache, kDevice };

// An immutable picture of a range's table files. Thread-safe; shared by read views.
//
// Level 0: possibly overlapping, newest first: by version_max, then version_min, then id, all
// descending. Which entry is newest is decided by versions, never by file numbers (M20).
// Levels 1..: sorted by key, disjoint within [lower, upper). What a level holds of a key is newer
// than what any deeper level holds.
class LevelSet {
 public:
  LevelSet() { levels_.fill(NoFiles()); }

  // The one without files, that all ranges without any have in common: also what an edit or Join without any
  // comes to.
  static const std::shared_ptr<const LevelSet>& Empty();

  // The set after `edit`. kInvalidArgument when a removed reference is not there or an added one
  // overlaps its level: then nothing was changed.
  Result<std::shared_ptr<const LevelSet>> Apply(const LevelEdit& edit) const;

  const std::vector<FileRef>& level(size_t level) const { return levels_[level]->files; }
  bool empty() const;
  size_t file_count() const;
  uint64_t LevelBytes(size_t level) const;

  // The newest entry with version <= `at_most`; see TableReader::TryGet. needs_io: some file that
  // decides is not in memory (or damaged: Get then says so).
  TableLookup TryGet(std::string_view user_key, const KeyHash& hash, Version at_most, BlockPin* pin) const;
  // REQUIRES: the caller keeps this set and `user_key` alive.
  Task<Result<Lookup>> Get(std::string_view user_key, KeyHash hash, Version at_most, BlockPin* pin,
                           BlocksFrom from = BlocksFrom::kCache) const;

  // TryGet of each key, into what is known of it: where they lie side by side, at a fraction of the price.
  // REQUIRES: they do not fall.
  void TryGetTogether(std::span<SoughtTogether> keys, Version at_most) const;
  // Has the cache read together what TryGetTogether found missing, which Get would read one by one: of each
  // key one block. What fails, and what is older, is left to Get, but for kDeadlineExceeded. REQUIRES: as for
  // Get.
  Task<Status> ReadTogether(std::span<const SoughtTogether> keys) const;

  // False when surely no file has an entry of the partition of `user_key`, whose hash is `hash`: one probe
  // for each file whose keys span it, where a lookup of each of a transaction's rows would take as many for
  // every row. A damaged file may have one.
  bool MayHoldPartition(std::string_view user_key, const KeyHash& hash) const;

  // Appends iterators that together yield every entry with key in [options.lower, options.upper):
  // one for each file of level 0, one for each deeper level, which opens its files lazily.
  // The caller keeps this set alive while they are used.
  void AddIterators(Direction direction, const IterOptions& options,
                    std::vector<std::unique_ptr<EntryIterator>>* out) const;

  // The files of `level` with keys in [lower, upper), in their order; an empty upper is no bound.
  std::vector<const FileRef*> Overlapping(size_t level, std::string_view lower, std::string_view upper) const;

  // What `parts` hold of [lower, upper) as one set: references are cut at the bounds, and what two parts
  // refer to of one file becomes one reference where both touch. REQUIRES: the parts are of disjoint ranges,
  // in their order.
  static Result<std::shared_ptr<const LevelSet>> Join(
      const std::vector<std::shared_ptr<const LevelSet>>& parts, std::string_view lower,
      std::string_view upper);

  // What it takes of the heap; of what references to a file have in common, nothing.
  size_t memory_bytes() const;

  // Every invariant above; kCorruption says which is broken. For tests, recovery and debug builds.
  Status CheckInvariants() const;

 private:
  // One level's files, which stay where they are. Shared by the sets before and after an edit of other
  // levels.
  struct Level {
    Level();  // Without files.
    Level(std::vector<FileRef> of_level, size_t level);
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

    std::vector<FileRef> files;
    uint64_t entries = 0;                              // Of all files.
    KeyFences firsts;                                  // Of the files, but for level 0.
    std::unique_ptr<const Level0Intervals> intervals;  // On level 0, and where there are no files.
  };
  using LevelPtr = std::shared_ptr<const Level>;

  static const LevelPtr& NoFiles();
  const Level0Intervals& level0_intervals() const { return *levels_[0]->intervals; }
  const FileRef* FindFile(size_t level, std::string_view user_key) const;

  std::array<LevelPtr, kLevels> levels_;
};

// One file within its virtual bounds and those of `options`. REQUIRES: it is not damaged.
std::unique_ptr<TableIterator> NewTableIterator(const FileRef& file, Direction direction,
                                                const IterOptions& options);

// As NewTableIterator. Works for damaged files too: their
// Fetch returns the damage.
std::unique_ptr<EntryIterator> NewFileIterator(const FileRef& file, Direction direction,
                                               const IterOptions& options);

}  // namespace partita
