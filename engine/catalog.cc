#include "engine/catalog.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "engine/base/assert.h"
#include "engine/base/coding.h"
#include "engine/base/heap_bytes.h"
#include "engine/base/user_key.h"
#include "engine/range_search.h"

namespace partita {

namespace {

constexpr uint16_t kFormatWithAttributes = 2;
constexpr uint16_t kFormatWithMoves = 3;
constexpr uint16_t kFormatWithMakers = 4;

Attributes MakeAttributes(std::string bytes) {
  return bytes.empty() ? nullptr : std::make_shared<const std::string>(std::move(bytes));
}

void AppendAttributes(std::string* out, const Attributes& attributes) {
  AppendBytes(out, attributes == nullptr ? std::string_view() : std::string_view(*attributes));
}

Result<TableDescriptor> ReadTable(ByteReader* in, uint16_t format) {
  TableDescriptor table;
  table.id = TableId(in->ReadLe32());
  table.account = std::string(in->ReadBytes());
  table.name = std::string(in->ReadBytes());
  table.raw = in->ReadU8() != 0;
  uint8_t durability = in->ReadU8();
  table.created_ticks = in->ReadLe64();
  if (format >= kFormatWithAttributes) table.attributes = MakeAttributes(std::string(in->ReadBytes()));
  if (!in->ok()) return Status::Corruption("catalog: table list is cut short");
  if (durability < 1 || durability > 3) {
    return Status::Corruption("catalog: table " + table.name + " has unknown durability " +
                              std::to_string(durability));
  }
  table.durability = static_cast<DurabilityLevel>(durability);
  return table;
}

Result<RangeDescriptor> ReadRange(ByteReader* in, uint16_t format) {
  RangeDescriptor range;
  range.lower = std::string(in->ReadBytes());
  range.upper = std::string(in->ReadBytes());
  range.owner = ShardId(in->ReadLe32());
  range.epoch = RangeEpoch(in->ReadLe64());
  if (format >= kFormatWithMoves) range.move_attempt = in->ReadLe64();
  if (format >= kFormatWithMakers) range.made_by_load = in->ReadU8() != 0;
  if (!in->ok()) return Status::Corruption("catalog: range list is cut short");
  return range;
}

Result<AccountDescriptor> ReadAccount(ByteReader* in) {
  AccountDescriptor account;
  account.name = std::string(in->ReadBytes());
  account.attributes = MakeAttributes(std::string(in->ReadBytes()));
  if (!in->ok()) return Status::Corruption("catalog: account list is cut short");
  return account;
}

Status ReadAccounts(ByteReader* in, Catalog* catalog) {
  uint64_t accounts = in->ReadVarint();
  if (accounts > in->remaining()) return Status::Corruption("catalog: account count is beyond its size");
  std::unordered_set<std::string> names;
  for (uint64_t i = 0; i < accounts; ++i) {
    PARTITA_ASSIGN(AccountDescriptor account, ReadAccount(in));
    // Without attributes there is no reason to name it: such an entry is never written.
    if (account.attributes == nullptr) return Status::Corruption("catalog: account without attributes");
    if (!names.insert(account.name).second) return Status::Corruption("catalog: account listed twice");
    catalog->accounts.push_back(std::move(account));
  }
  return Status();
}

// Of the tables sorted by name.
Status CheckTables(const Catalog& catalog) {
  std::unordered_set<uint32_t> ids;
  const TableDescriptor* before = nullptr;
  for (const TablePtr& table : catalog.tables) {
    if (!ids.insert(table->id.value).second) {
      return Status::Corruption("catalog: table id " + std::to_string(table->id.value) +
                                " is given twice (F19)");
    }
    if (table->id.value >= catalog.next_table_id && catalog.HasTableId()) {
      return Status::Corruption("catalog: table id " + std::to_string(table->id.value) +
                                " is yet to be given, from " + std::to_string(catalog.next_table_id) +
                                " on (F19)");
    }
    if (before != nullptr && before->account == table->account && SameIgnoringCase(before->name, table->name))
      return Status::Corruption("catalog: table " + table->name + " is listed twice");
    before = table.get();
  }
  return Status();
}

Status CheckRanges(const Catalog& catalog) {
  for (size_t i = 0; i < catalog.ranges.size(); ++i) {
    const RangeDescriptor& range = catalog.ranges[i];
    if (range.owner.value >= catalog.shard_count) {
      return Status::Corruption("catalog: range " + std::to_string(i) + " is owned by shard " +
                                std::to_string(range.owner.value) + " of " +
                                std::to_string(catalog.shard_count));
    }
    if (!range.upper.empty() && range.upper <= range.lower) {
      return Status::Corruption("catalog: range " + std::to_string(i) + " ends before it begins");
    }
    if (i > 0 && (catalog.ranges[i - 1].upper.empty() || catalog.ranges[i - 1].upper > range.lower)) {
      return Status::Corruption("catalog: ranges " + std::to_string(i - 1) + " and " + std::to_string(i) +
                                " overlap");
    }
  }
  return Status();
}

}  // namespace

std::string FoldCase(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = FoldCase(c);
  return folded;
}

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return FoldCase(x) == FoldCase(y); });
}

namespace {

// Whether the table is listed before the name of the account.
bool IsBefore(const TableDescriptor& table, std::string_view account, std::string_view name) {
  if (const int order = std::string_view(table.account).compare(account); order != 0) return order < 0;
  return std::lexicographical_compare(
      table.name.begin(), table.name.end(), name.begin(), name.end(),
      [](char x, char y) { return static_cast<uint8_t>(FoldCase(x)) < static_cast<uint8_t>(FoldCase(y)); });
}

auto Has(TableId id) {
  return [id](const TablePtr& table) { return table->id == id; };
}

}  // namespace

std::vector<TablePtr>::const_iterator FirstOf(const std::vector<TablePtr>& tables, std::string_view account,
                                              std::string_view name) {
  return std::partition_point(tables.begin(), tables.end(),
                              [&](const TablePtr& table) { return IsBefore(*table, account, name); });
}

const TableDescriptor* Catalog::FindTable(std::string_view account, std::string_view name) const {
  const auto at = FirstOf(tables, account, name);
  const bool found = at != tables.end() && (*at)->account == account && SameIgnoringCase((*at)->name, name);
  return found ? at->get() : nullptr;
}

const TableDescriptor* Catalog::FindTable(TableId id) const {
  const auto at = std::find_if(tables.begin(), tables.end(), Has(id));
  return at == tables.end() ? nullptr : at->get();
}

void Catalog::InsertTable(TableDescriptor table) {
  PARTITA_DEBUG_ASSERT(FindTable(table.account, table.name) == nullptr);
  const auto at = FirstOf(tables, table.account, table.name);
  tables.insert(at, std::make_shared<const TableDescriptor>(std::move(table)));
}

TableId Catalog::AddTable(TableDescriptor table, const std::vector<std::string>& splits) {
  PARTITA_ASSERT(HasTableId());
  table.id = TableId(next_table_id++);
  TableId id = table.id;
  InsertTable(std::move(table));
  ++epoch;
  std::string lower = TableLowerBound(id);
  for (size_t i = 0; i <= splits.size(); ++i) {
    RangeDescriptor range;
    range.lower = lower;
    range.upper = i < splits.size() ? splits[i] : TableUpperBound(id);
    range.owner = ShardId(static_cast<uint32_t>((id.value + i) % shard_count));
    range.epoch = RangeEpoch(epoch);
    lower = range.upper;
    ranges.push_back(std::move(range));
  }
  // Behind all others nearly always, as ids rise; a catalog that was made anew may have higher ones.
  const auto rises = [](const auto& a, const auto& b) { return a.lower < b.lower; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), rises)) std::sort(ranges.begin(), ranges.end(), rises);
  return id;
}

void Catalog::RemoveTable(TableId id) {
  ++epoch;
  std::erase_if(tables, Has(id));
  std::string lower = TableLowerBound(id);
  std::string upper = TableUpperBound(id);
  std::erase_if(ranges,
                [&](const RangeDescriptor& range) { return IsInKeyRange(range.lower, lower, upper); });
}

void Catalog::SetTableAttributes(TableId id, std::string bytes) {
  const auto at = std::find_if(tables.begin(), tables.end(), Has(id));
  PARTITA_ASSERT(at != tables.end());
  ++epoch;
  TableDescriptor changed = **at;
  changed.attributes = MakeAttributes(std::move(bytes));
  *at = std::make_shared<const TableDescriptor>(std::move(changed));
}

void Catalog::SetAccountAttributes(std::string_view account, std::string bytes) {
  ++epoch;
  std::erase_if(accounts, [account](const AccountDescriptor& known) { return known.name == account; });
  if (!bytes.empty()) accounts.push_back({std::string(account), MakeAttributes(std::move(bytes))});
}

size_t Catalog::AttributesSize() const {
  size_t size = 0;
  for (const TablePtr& table : tables) size += table->attributes ? table->attributes->size() : 0;
  for (const AccountDescriptor& account : accounts) size += account.attributes->size();
  return size;
}

size_t Catalog::RangesMemory() const {
  size_t bytes = HeapBytes(ranges);
  for (const RangeDescriptor& range : ranges) bytes += HeapBytes(range.lower) + HeapBytes(range.upper);
  return bytes;
}

size_t Catalog::TablesMemory() const {
  constexpr size_t kDescriptor = HeapBytes(kSharedCounts + sizeof(TableDescriptor));
  constexpr size_t kAttributes = HeapBytes(kSharedCounts + sizeof(std::string));
  size_t bytes = HeapBytes(tables);
  for (const TablePtr& table : tables) {
    bytes += kDescriptor + HeapBytes(table->account) + HeapBytes(table->name);
    if (table->attributes != nullptr) bytes += kAttributes + HeapBytes(*table->attributes);
  }
  return bytes;
}

void Catalog::AssignRanges(uint32_t shards) {
  ++epoch;
  shard_count = shards;
  uint32_t within_table = 0;
  std::string previous_table;
  for (RangeDescriptor& range : ranges) {
    std::string table = range.lower.substr(0, kTableIdSize);
    within_table = table == previous_table ? within_table + 1 : 0;
    previous_table = table;
    range.owner = ShardId((LoadBe32(table.data()) + within_table) % shards);
    range.epoch = RangeEpoch(epoch);
    range.move_attempt = 0;
  }
}

const RangeDescriptor* Catalog::FindRange(std::string_view user_key) const {
  return RangeHolding(user_key, ranges);
}

std::vector<RangeDescriptor>::iterator Catalog::RangeAt(std::string_view lower) {
  const RangeDescriptor* found = FindRange(lower);
  PARTITA_ASSERT(found != nullptr && found->lower == lower);
  return ranges.begin() + (found - ranges.data());
}

void Catalog::SplitRange(std::string_view at, bool by_load) {
  const RangeDescriptor* found = FindRange(at);
  PARTITA_ASSERT(found != nullptr && found->lower < at);
  const auto left = ranges.begin() + (found - ranges.data());
  left->epoch = RangeEpoch(++epoch);
  RangeDescriptor right = *left;
  left->upper = right.lower = at;
  right.made_by_load = by_load;
  ranges.insert(std::next(left), std::move(right));
}

void Catalog::KeepBound(std::string_view at) { RangeAt(at)->made_by_load = false; }

void Catalog::MergeRanges(std::string_view at) {
  const auto right = RangeAt(at);
  PARTITA_ASSERT(right != ranges.begin());
  RangeDescriptor& left = *std::prev(right);
  PARTITA_ASSERT(left.upper == right->lower && left.owner == right->owner);
  left.epoch = RangeEpoch(++epoch);
  left.upper = right->upper;
  // Only of the later one its owner's manifest may yet say that files are prepared.
  left.move_attempt = std::max(left.move_attempt, right->move_attempt);
  ranges.erase(right);
}

void Catalog::MoveRange(std::string_view lower, ShardId owner, uint64_t attempt) {
  const auto range = RangeAt(lower);
  range->owner = owner;
  range->move_attempt = attempt;
  range->epoch = RangeEpoch(++epoch);
}

std::string EncodeCatalog(const Catalog& catalog) {
  std::string out;
  AppendLe16(&out, kCatalogFormat);
  AppendLe64(&out, catalog.store.value);
  AppendLe32(&out, catalog.incarnation);
  AppendLe32(&out, catalog.layout);
  AppendLe32(&out, catalog.formed_layout);
  AppendLe32(&out, catalog.shard_count);
  AppendLe32(&out, catalog.next_table_id);
  AppendLe64(&out, catalog.epoch);
  AppendVarint(&out, catalog.tables.size());
  for (const TablePtr& table : catalog.tables) {
    AppendLe32(&out, table->id.value);
    AppendBytes(&out, table->account);
    AppendBytes(&out, table->name);
    out.push_back(table->raw ? 1 : 0);
    // Bytes that could not be read again would take all tables along.
    PARTITA_ASSERT(table->durability >= DurabilityLevel::kPower &&
                   table->durability <= DurabilityLevel::kMemory);
    out.push_back(static_cast<char>(table->durability));
    AppendLe64(&out, table->created_ticks);
    AppendAttributes(&out, table->attributes);
  }
  AppendVarint(&out, catalog.ranges.size());
  for (const RangeDescriptor& range : catalog.ranges) {
    AppendBytes(&out, range.lower);
    AppendBytes(&out, range.upper);
    AppendLe32(&out, range.owner.value);
    AppendLe64(&out, range.epoch.value);
    AppendLe64(&out, range.move_attempt);
    out.push_back(range.made_by_load ? 1 : 0);
  }
  AppendVarint(&out, catalog.accounts.size());
  for (const AccountDescriptor& account : catalog.accounts) {
    AppendBytes(&out, account.name);
    AppendAttributes(&out, account.attributes);
  }
  return out;
}

Result<Catalog> DecodeCatalog(std::string_view bytes) {
  ByteReader in(bytes);
  uint16_t format = in.ReadLe16();
  if (!in.ok()) return Status::Corruption("catalog: empty");
  if (format > kCatalogFormat) {
    return Status::Unsupported("catalog: format " + std::to_string(format) + " is newer than " +
                               std::to_string(kCatalogFormat) + ", which this version reads (F66)");
  }
  Catalog catalog;
  catalog.store = StoreId(in.ReadLe64());
  catalog.incarnation = in.ReadLe32();
  catalog.layout = in.ReadLe32();
  catalog.formed_layout = in.ReadLe32();
  catalog.shard_count = in.ReadLe32();
  catalog.next_table_id = in.ReadLe32();
  catalog.epoch = in.ReadLe64();
  if (!in.ok() || catalog.shard_count == 0) return Status::Corruption("catalog: header is cut short");
  if (catalog.shard_count > kShardCountMax) {
    return Status::Corruption("catalog: " + std::to_string(catalog.shard_count) +
                              " shards, of which there are " + std::to_string(kShardCountMax) + " at most");
  }
  // Every table and range takes several bytes, so a count beyond what is left is not believed (F77).
  uint64_t tables = in.ReadVarint();
  if (tables > in.remaining()) return Status::Corruption("catalog: table count is beyond its size");
  for (uint64_t i = 0; i < tables; ++i) {
    PARTITA_ASSIGN(TableDescriptor table, ReadTable(&in, format));
    catalog.tables.push_back(std::make_shared<const TableDescriptor>(std::move(table)));
  }
  // Earlier versions wrote them in the order of their creation.
  std::sort(catalog.tables.begin(), catalog.tables.end(),
            [](const TablePtr& a, const TablePtr& b) { return IsBefore(*a, b->account, b->name); });
  uint64_t ranges = in.ReadVarint();
  if (ranges > in.remaining()) return Status::Corruption("catalog: range count is beyond its size");
  for (uint64_t i = 0; i < ranges; ++i) {
    PARTITA_ASSIGN(RangeDescriptor range, ReadRange(&in, format));
    catalog.ranges.push_back(std::move(range));
  }
  if (format >= kFormatWithAttributes) PARTITA_TRY(ReadAccounts(&in, &catalog));
  if (!in.AtCleanEnd()) return Status::Corruption("catalog: bytes left over at the end");
  PARTITA_TRY(CheckTables(catalog));
  PARTITA_TRY(CheckRanges(catalog));
  return catalog;
}

}  // namespace partita
