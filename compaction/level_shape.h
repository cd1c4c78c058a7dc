#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/user_key.h"
#include "sstable/level_set.h"

namespace partita {

// A level set as plain data: all that picking a compaction and pacing writers look at.

// A half-open span of user keys. An empty upper is no bound; lower == upper (not empty) is no key.
struct KeySpan {
  std::string lower;
  std::string upper;

  bool Overlaps(const KeySpan& other) const {
    return KeyRangesOverlap(lower, upper, other.lower, other.upper);
  }
  // Grows to hold `other` too.
  void Extend(const KeySpan& other);
  friend bool operator==(const KeySpan&, const KeySpan&) = default;
};

struct FileShape {
  ObjectId id;
  std::string reference_lower;  // With level and id, names the reference (LevelEdit::Removed).
  KeySpan span;                 // The keys that can really occur: bounds cut to the file's own.
  uint64_t size = 0;            // BytesWithin.
  uint64_t entries = 0;         // Of the whole file.
  uint64_t tombstones = 0;      // Of the whole file.
  Version version_max;
  uint64_t seek_bytes = 0;  // FileRef::seek_bytes.
  // Bytes outside the span that this reference keeps on disk, of those that no reference has any more: its
  // part of them, where other slices of the file are left.
  uint64_t foreign_bytes = 0;
  // Damaged, and set aside (F46). Neither it nor what it overlaps on the way of a job is touched.
  bool busy = false;
  // Compressed as its level wants it at the bottom: it may be moved there as it is.
  bool bottom_compression = false;
};

struct LevelShape {
  // Level 0: newest first. Levels 1..: by key, disjoint.
  std::array<std::vector<FileShape>, kLevels> levels;
  // Every tombstone below this version can be dropped where no deeper level holds its key: no
  // snapshot lies below it, nor anything that is in no table yet (MergeSpec::droppable_before).
  // 0: none. Higher than is true, a file would be rewritten for tombstones that stay, again and again.
  Version droppable_before;

  uint64_t LevelBytes(size_t level) const;
  uint64_t TotalBytes() const;
  uint64_t foreign_bytes() const;
};

// What the caller knows of each reference beyond the level set.
struct FileCondition {
  bool busy = false;
  uint64_t foreign_bytes = 0;
};

// The shape of `set`. Damaged files (no table) are busy: they are never compacted (F46).
// `condition_of` may be empty.
LevelShape ShapeOf(const LevelSet& set, Version droppable_before,
                   const std::function<FileCondition(uint32_t level, const FileRef&)>& condition_of);

// Bytes of the file within the reference's bounds; for a slice as the open table can tell, which of blocks of
// about one size is rather more than less, as room is left for them (F57).
uint64_t BytesWithin(const FileRef& file);

// The same as if its keys were spread evenly, and at least that share of it.
uint64_t GuessWithin(const FileRef& file, double share_min);

// The half-open span of keys that a reference can really hold.
KeySpan SpanOf(const FileRef& file);

// How many files of level 0 a key may have to be looked for in, at worst: each file lies one
// sublevel above the highest older file that it overlaps. Index as in the shape; from 1 on.
std::vector<uint32_t> SublevelsOf(const std::vector<FileShape>& level0_newest_first);

}  // namespace partita
