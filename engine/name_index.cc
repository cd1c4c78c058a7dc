#include "engine/name_index.h"

#include <algorithm>
#include <bit>

#include "engine/base/checksum.h"
#include "engine/catalog.h"

namespace partita {

namespace {

// The hash of the account and the folded name.
uint64_t HashOf(std::string_view account, std::string_view name) {
  // Room for every name of the table model; only raw tables can have a longer one.
  constexpr size_t kNameSizeMax = 128;
  const uint64_t seed = Hash64(account);
  if (name.size() > kNameSizeMax) return Hash64WithSeed(FoldCase(name), seed);
  char folded[kNameSizeMax];
  std::transform(name.begin(), name.end(), folded, [](char c) { return FoldCase(c); });
  return Hash64WithSeed(std::string_view(folded, name.size()), seed);
}

}  // namespace

NameIndex::NameIndex(const Catalog& catalog, const TableDescriptor* in_doubt)
    : tables_(catalog.tables),
      slots_(std::bit_ceil(2 * catalog.tables.size() + 1)),
      accounts_(catalog.accounts) {
  if (in_doubt != nullptr) in_doubt_ = *in_doubt;
  for (const TablePtr& table : catalog.tables) {
    if (!IsInDoubt(table->account, table->name)) Add(table);
  }
}

bool NameIndex::IsInDoubt(std::string_view account, std::string_view name) const {
  return in_doubt_ && in_doubt_->account == account && SameIgnoringCase(in_doubt_->name, name);
}

void NameIndex::Add(const TablePtr& table) {
  const uint64_t hash = HashOf(table->account, table->name);
  size_t at = hash & (slots_.size() - 1);
  while (slots_[at].table != nullptr) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {hash, table};
}

TablePtr NameIndex::FindTable(std::string_view account, std::string_view name) const {
  const uint64_t hash = HashOf(account, name);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].table != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && slot.table->account == account && SameIgnoringCase(slot.table->name, name)) {
      return slot.table;
    }
  }
  return nullptr;
}

std::vector<TablePtr> NameIndex::ListTables(std::string_view account, std::string_view from,
                                            size_t limit) const {
  auto at = FirstOf(tables_, account, from);
  std::vector<TablePtr> listed;
  for (; at != tables_.end() && (*at)->account == account && listed.size() < limit; ++at) {
    listed.push_back(*at);
  }
  return listed;
}

Attributes NameIndex::AccountAttributes(std::string_view account) const {
  for (const AccountDescriptor& known : accounts_) {
    if (known.name == account) return known.attributes;
  }
  return nullptr;
}

}  // namespace partita
