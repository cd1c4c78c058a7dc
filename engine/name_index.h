#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/catalog.h"

namespace partita {

// What the catalog has under each name, for the look-up at the head of every request: immutable, so that
// it is read without a lock (snapshot_publisher.h). A table is found ignoring the case of its name.
class NameIndex {
 public:
  // `in_doubt`: a table of which is not known whether it exists (F15), whatever the catalog says.
  explicit NameIndex(const Catalog& catalog, const TableDescriptor* in_doubt = nullptr);

  // Null when there is no such table, or IsInDoubt().
  std::shared_ptr<const TableDescriptor> FindTable(std::string_view account, std::string_view name) const;
  bool IsInDoubt(std::string_view account, std::string_view name) const;
  Attributes AccountAttributes(std::string_view account) const;

 private:
  struct Slot {
    uint64_t hash = 0;
    std::shared_ptr<const TableDescriptor> table;  // Null: free.
  };

  void Add(const TableDescriptor& table);

  std::vector<Slot> slots_;                  // Open addressing, at most half full; a power of two.
  std::vector<AccountDescriptor> accounts_;  // Few.
  std::optional<TableDescriptor> in_doubt_;  // Nearly never.
};

}  // namespace partita
