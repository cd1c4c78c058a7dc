#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/entry_run.h"
#include "engine/base/lookup.h"
#include "engine/base/prefetch.h"
#include "engine/base/status.h"
#include "engine/base/user_key.h"

namespace partita {

// The content of a data block, and of an index block (whose values are index records): entries in
// internal order, keys apart from values, so that a search touches the key area only.
//
//   offset  size      field
//        0     4      entry_count n, at least 1
//        4     4      prefix_size p     common prefix of all keys, stored once
//        8     4      suffixes_size s
//       12     4      values_size v
//       16     8      version_min
//       24     1      version_width w   0..8 bytes that hold every (version - version_min)
//       25     7      reserved          zero, checked on read
//       32   8*n      heads             key bytes [p, p+8) of each entry, zero-padded: big-endian numbers
//      ...   6*n      slots             begin u32 in the suffixes, rest u16 = key size - p;
//                                     a key has at most kUserKeySizeMax bytes
//      ...     p      prefix
//      ...     s      suffixes          key bytes from p+8 on, one after the other
//      ...   w*n      versions
//      ...   4*n      value_ends        end of each value in the values
//      ...     n      kinds             EntryKind; bit 7: same user key as the entry before
//      ...     v      values            stored values
//
// The sizes add up to the block's exactly. Versions of one key share suffix bytes and never lie in
// two blocks. Why heads: one 8-byte compare decides nearly every step of a search; ties (heads
// equal) compare the rest. Why `rest` beside the zero-padded head: "a" and "a\0" have equal heads.
inline constexpr size_t kDataBlockHeaderSize = 32;
inline constexpr size_t kSlotSize = 4 + 2;
static_assert(kUserKeySizeMax <= UINT16_MAX);

// Builds block contents. Reusable: Finish leaves it empty.
class DataBlockBuilder {
 public:
  // REQUIRES: internal order, and a user key of at most kUserKeySizeMax bytes.
  void Add(const Entry& entry);

  bool empty() const { return entries_.empty(); }
  size_t entry_count() const { return entries_.size(); }
  // Size of the content if finished now; an estimate when keys are shorter than prefix + 8 bytes.
  size_t content_size() const;
  // What Add of a new key would make of it, about.
  size_t content_size_with(size_t key_size, size_t value_size) const;
  std::string_view first_key() const { return KeyAt(0); }
  std::string_view last_key() const { return KeyAt(entries_.size() - 1); }

  // Appends the content to `out` and empties the builder. REQUIRES: !empty().
  void Finish(std::string* out);

 private:
  struct Item {
    uint32_t key_begin;  // In keys_.
    uint32_t key_size;
    uint32_t value_end;
    uint8_t kind;
    Version version;
  };
  std::string_view KeyAt(size_t i) const {
    return std::string_view(keys_).substr(entries_[i].key_begin, entries_[i].key_size);
  }
  static unsigned VersionWidth(uint64_t span);

  std::vector<Item> entries_;
  std::string keys_;  // Whole user keys; the prefix is known at the end.
  std::string values_;
  size_t distinct_keys_ = 0;
  size_t prefix_size_ = 0;  // Common prefix of all keys so far.
  uint64_t version_min_ = 0;
  uint64_t version_max_ = 0;
};

// Reads a block's content. A view: the content must outlive it. Cheap to make from content that
// was validated once when it was loaded.
class DataBlock {
 public:
  DataBlock() = default;
  // REQUIRES: Validate(content) was ok for these bytes.
  explicit DataBlock(std::string_view content);

  // Checks everything that reading relies on: sizes, slots, order of keys and versions, kinds. After
  // ok no method reads outside `content`, whatever the bytes are (F77). kCorruption says what. The values are
  // not looked at: they need not be there yet.
  static Status Validate(std::string_view content);

  // Where its values begin. REQUIRES: content.size() >= kDataBlockHeaderSize; nothing else is known of it.
  static uint64_t ValuesBegin(std::string_view content);

  // Checks what is asked of all entries but those of an index (F77): that keys are user keys, with a table
  // and a zero byte behind the PartitionKey, and values stored values, with a checksum. kCorruption says
  // what.
  Status ValidateEntities() const;

  // Asks for the lines that a search reads first, all at once: in a block out of cache each step of
  // the search would otherwise wait for memory by itself.
  static void Prefetch(std::string_view content) { PrefetchLines(content, 1024); }

  // Asks for the lines that say where the values are: of one entry among hundreds, as in an index, they lie
  // far from what Prefetch asks for.
  void PrefetchValueEnds() const { columns_.PrefetchValueEnds(count_); }

  uint32_t size() const { return count_; }
  EntryKind kind(uint32_t i) const { return columns_.kind(i); }
  bool same_key_as_before(uint32_t i) const { return columns_.same_key_as_before(i); }
  Version version(uint32_t i) const { return columns_.version(i); }
  std::string_view value(uint32_t i) const { return columns_.value(i); }
  const EntryColumns& columns() const { return columns_; }
  size_t key_size(uint32_t i) const { return prefix_size_ + LoadLe16(slots_ + kSlotSize * i + 4); }
  // Writes the user key into `out`, replacing it.
  void KeyTo(uint32_t i, std::string* out) const;
  std::string Key(uint32_t i) const {
    std::string key;
    KeyTo(i, &key);
    return key;
  }

  // The content of a block of this one entry alone, as DataBlockBuilder makes it, replacing `out`.
  void AloneTo(uint32_t i, std::string* out) const;

  // First entry with user key >= `user_key`; size() when there is none.
  uint32_t LowerBound(std::string_view user_key) const;
  // <0, 0, >0 as entry i's key is below, equal, above.
  int CompareKey(uint32_t i, std::string_view user_key) const;

  // The newest entry of `user_key` with version <= `at_most`, and its place, written to `at` when there is
  // one and it is not null.
  Lookup Find(std::string_view user_key, Version at_most, uint32_t* at = nullptr) const {
    return FindFrom(LowerBound(user_key), user_key, at_most, at);
  }
  // The same without the search. REQUIRES: first == LowerBound(user_key).
  Lookup FindFrom(uint32_t first, std::string_view user_key, Version at_most, uint32_t* at) const;

 private:
  uint64_t Head(uint32_t i) const { return LoadBe64(heads_ + 8 * i); }
  std::string_view Suffix(uint32_t i) const;
  bool IsUserKey(uint32_t i) const;
  int CompareEntries(uint32_t a, uint32_t b) const;
  int CompareTail(uint32_t i, uint64_t head, std::string_view tail) const;
  // How `user_key` compares to every key that starts with the prefix; 0 when it starts with it too.
  int CompareToPrefix(std::string_view user_key) const;

  uint32_t count_ = 0;
  uint32_t prefix_size_ = 0;
  const char* heads_ = nullptr;
  const char* slots_ = nullptr;
  const char* prefix_ = nullptr;
  const char* suffixes_ = nullptr;
  EntryColumns columns_;
};

}  // namespace partita
