#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/heap_bytes.h"
#include "engine/catalog.h"

namespace partita {

// What the catalog has under each name, for the look-up at the head of every request: immutable, so that
// it is read without a lock (snapshot_publisher.h). A table is found ignoring the case of its name.
class NameIndex {
 public:
  // `in_doubt`: a table of which is not known whether it exists (F15), whatever the catalog says.
  explicit NameIndex(const Catalog& catalog, const TableDescriptor* in_doubt = nullptr);

  // Null when there is no such table, or IsInDoubt().
  TablePtr FindTable(std::string_view account, std::string_view name) const;
  bool IsInDoubt(std::string_view account, std::string_view name) const;
  Attributes AccountAttributes(std::string_view account) const;
  // Beside the tables themselves, which the catalog has.
  size_t memory_bytes() const { return HeapBytes(tables_) + HeapBytes(slots_); }
  // At most `limit` tables of the account, by name ignoring case, from `from` on. Also what is in doubt, as
  // it was.
  std::vector<TablePtr> ListTables(std::string_view account, std::string_view from, size_t limit) const;

 private:
  struct Slot {
    uint64_t hash = 0;
    TablePtr table;  // Null: free.
  };

  void Add(const TablePtr& table);

  const std::vector<TablePtr> tables_;       // As the catalog has them.
  std::vector<Slot> slots_;                  // Open addressing, at most half full; a power of two.
  std::vector<AccountDescriptor> accounts_;  // Few.
  std::optional<TableDescriptor> in_doubt_;  // Nearly never.
};

}  // namespace partita
