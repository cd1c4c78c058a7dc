#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/meta_store.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/write_request.h"

namespace partita {

inline constexpr uint32_t kShardCountMax = 256;  // Of a store, in any layout.
// Each change of the number of shards, and each repair, makes a layout: nobody comes to so many.
inline constexpr uint32_t kLayoutMax = 1u << 20;

// Opaque bytes that a face keeps beside a name; never changed in place. Null: none.
using Attributes = std::shared_ptr<const std::string>;
inline constexpr size_t kAttributesSizeMax = 64 << 10;  // Of one name.
// Of all names: every change of the catalog writes it whole.
inline constexpr size_t kAttributesTotalMax = 64 << 20;

// One table. Names keep the case of their creation and are unique ignoring case within an account.
struct TableDescriptor {
  TableId id;
  std::string account;
  std::string name;
  bool raw = false;  // Byte keys and opaque values instead of entities.
  DurabilityLevel durability = DurabilityLevel::kPower;
  uint64_t created_ticks = 0;  // Below every version in it (F17), so ahead of the wall clock at times.
  Attributes attributes;       // Gone with the table. The service: stored access policies.
};

// Shared by the catalogs of before and after a change, which may have many thousands.
using TablePtr = std::shared_ptr<const TableDescriptor>;

// What is kept of an account; one without attributes has none of these.
struct AccountDescriptor {
  std::string name;
  Attributes attributes;  // The service: its properties.
};

// An interval of user keys with one owner shard and one level set.
struct RangeDescriptor {
  std::string lower;  // Inclusive.
  std::string upper;  // Exclusive; empty: to the end.
  ShardId owner;
  RangeEpoch epoch;
  // The move that brought it to its owner (DESIGN 8): what that one's manifest lists as prepared by it is the
  // range's. 0: none.
  uint64_t move_attempt = 0;
  // Its lower bound was made because the load asked for it, and goes when no load does (range_balancer.h).
  bool made_by_load = false;
};

// Of ranges that splits make, beyond the one that each table has: every change of the catalog writes all of
// them, and every freeze and flush of a shard copies its own.
inline constexpr size_t kSplitsMax = 4096;

// The store-wide root: what exists and who owns it. A value; changed by copying, and replaced
// whole and atomically in the meta store (one durable record decides: F19).
//
// Encoded (little-endian, inside the sealed meta value of key "catalog"):
//   u16 format · u64 store id · u32 incarnation · u32 layout · u32 formed layout · u32 shard count · u32 next
//   table id · u64 epoch · varint tables { u32 id, bytes account, bytes name, u8 raw, u8 durability, u64
//   created, bytes attributes } · varint ranges { bytes lower, bytes upper, u32 owner, u64 epoch, u64 move
//   attempt, u8 made by load } · varint accounts { bytes name, bytes attributes }
//
// No attributes are the empty bytes. Format 1 has neither attributes nor accounts, format 2 no move attempts,
// format 3 no bounds made by load; all are still read, and the first change writes format 4.
struct Catalog {
  StoreId store;
  uint32_t incarnation = 0;    // Rises with every open; names logs and objects (F30).
  uint32_t layout = 1;         // Rises when the number of shards changes; names manifests and logs.
  uint32_t formed_layout = 0;  // The layout whose manifests are known to exist; else creation goes on.
  uint32_t shard_count = 1;
  uint32_t next_table_id = 1;               // Never reused (F19).
  uint64_t epoch = 0;                       // Rises with every change.
  std::vector<TablePtr> tables;             // By account, then name ignoring case: as they are listed.
  std::vector<RangeDescriptor> ranges;      // Sorted by lower, disjoint.
  std::vector<AccountDescriptor> accounts;  // Each name once.

  bool is_forming() const { return formed_layout != layout; }

  const TableDescriptor* FindTable(std::string_view account, std::string_view name) const;
  const TableDescriptor* FindTable(TableId id) const;

  // At its place, without ranges. REQUIRES: none has its name.
  void InsertTable(TableDescriptor table);
  // False: all ids were given once, and none is given again (F19).
  bool HasTableId() const { return next_table_id < UINT32_MAX; }
  // Adds a table and its ranges: one on shard (id mod shards), or one more for each of `splits`
  // (sorted user-key bounds inside the table). Returns its id. REQUIRES: HasTableId().
  TableId AddTable(TableDescriptor table, const std::vector<std::string>& splits);
  void RemoveTable(TableId id);

  // Empty bytes remove. REQUIRES: the table exists.
  void SetTableAttributes(TableId id, std::string bytes);
  void SetAccountAttributes(std::string_view account, std::string bytes);
  // Bytes of all attributes.
  size_t AttributesSize() const;
  // What the ranges take of memory, and the tables with their names and attributes.
  size_t RangesMemory() const;
  size_t TablesMemory() const;

  // Gives every range an owner below `shards` again, keeping ranges whole (F67).
  void AssignRanges(uint32_t shards);

  // The range that holds the key, or null.
  const RangeDescriptor* FindRange(std::string_view user_key) const;
  // How many ranges there are beyond one a table.
  size_t SplitCount() const { return ranges.size() - tables.size(); }
  // Cuts in two at `at`. REQUIRES: a range holds `at` and begins below it.
  void SplitRange(std::string_view at, bool by_load);
  // The bound is not taken away any more when no load asks for it. REQUIRES: a range begins at `at`.
  void KeepBound(std::string_view at);
  // Joins the range that begins at `at` to the one in front. REQUIRES: both touch and have one table and
  // owner.
  void MergeRanges(std::string_view at);
  // REQUIRES: a range begins at `lower`.
  void MoveRange(std::string_view lower, ShardId owner, uint64_t attempt);

 private:
  std::vector<RangeDescriptor>::iterator RangeAt(std::string_view lower);
};

// Where the tables of the account begin whose names are `name` or behind it, ignoring case.
// REQUIRES: `tables` are in the order of Catalog::tables.
std::vector<TablePtr>::const_iterator FirstOf(const std::vector<TablePtr>& tables, std::string_view account,
                                              std::string_view name);

inline constexpr uint16_t kCatalogFormat = 4;

std::string EncodeCatalog(const Catalog& catalog);
// kCorruption, or kUnsupported for a newer format; the message says which field.
Result<Catalog> DecodeCatalog(std::string_view bytes);

// ASCII lower case: how names are compared.
inline char FoldCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
std::string FoldCase(std::string_view name);
bool SameIgnoringCase(std::string_view a, std::string_view b);

}  // namespace partita
