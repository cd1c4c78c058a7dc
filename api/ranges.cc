#include <algorithm>
#include <iterator>
#include <set>

#include "api/async_database.h"
#include "api/database_impl.h"
#include "api/names.h"
#include "engine/base/user_key.h"

// How tables are divided among the shards.

namespace partita {

Result<TableDescriptor> FindTableOfAny(const Database::Impl& impl, std::string_view name) {
  std::string_view account = impl.options.account;
  if (const size_t slash = name.find('/'); slash != name.npos) {
    account = name.substr(0, slash);
    name.remove_prefix(slash + 1);
    PARTITA_TRY(CheckAccountName(account));
  }
  PARTITA_TRY(CheckTableName(name));
  return impl.store->FindTable(account, name);
}

std::string NameForAny(const Database::Impl& impl, const TableDescriptor& table) {
  return table.account == impl.options.account ? table.name : table.account + "/" + table.name;
}

namespace {

// Of all accounts, the own one's first.
std::vector<TablePtr> AllTables(const Database::Impl& impl) {
  std::set<std::string> others;
  for (const TablePtr& table : impl.store->CatalogCopy().tables) others.insert(table->account);
  others.erase(impl.options.account);
  std::vector<TablePtr> tables = impl.store->ListTables(impl.options.account);
  for (const std::string& account : others) {
    std::vector<TablePtr> its = impl.store->ListTables(account);
    std::move(its.begin(), its.end(), std::back_inserter(tables));
  }
  return tables;
}

// Where the partition begins; of an empty key, which is the first there can be, as well.
Result<std::string> PartitionBound(const Database::Impl& impl, std::string_view table, std::string_view key) {
  PARTITA_ASSIGN(const TableDescriptor found, FindTableOfAny(impl, table));
  if (!found.raw) PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, key));
  if (key.find('\0') != std::string::npos)
    return Status::InvalidArgument("a partition key holds a zero byte");
  if (found.raw && key.size() > KeyBuffer::kRawKeysMax)
    return Status::InvalidArgument("a partition key has " + std::to_string(key.size()) +
                                   " bytes; at most 4,096 are allowed");
  return EncodeUserKey(found.id, found.raw ? std::string(key) : OrderedText(key), "");
}

// Of a bound (table id, partition, zero byte), or of the table's own.
std::string PartitionOfBound(const TableDescriptor& table, std::string_view bound) {
  const bool is_its = bound.size() > kTableIdSize && bound.starts_with(TableLowerBound(table.id));
  if (!is_its) return std::string();
  const std::string_view partition = bound.substr(kTableIdSize, bound.size() - kTableIdSize - 1);
  return table.raw ? std::string(partition) : Utf8FromOrdered(partition);
}

}  // namespace

Result<std::vector<RangeDescription>> Database::ListRanges(std::string_view table) const {
  PARTITA_TRY(impl_->CheckUse());
  std::vector<TablePtr> tables;
  if (table.empty()) {
    tables = AllTables(*impl_);
  } else {
    PARTITA_ASSIGN(TableDescriptor found, FindTableOfAny(*impl_, table));
    tables.push_back(std::make_shared<const TableDescriptor>(std::move(found)));
  }
  std::vector<RangeDescription> ranges;
  for (const TablePtr& each : tables) {
    for (const RangeDescriptor& range : impl_->store->RangesOf(each->id)) {
      ranges.push_back({NameForAny(*impl_, *each), PartitionOfBound(*each, range.lower),
                        PartitionOfBound(*each, range.upper), range.owner.value});
    }
  }
  return ranges;
}

Status Database::SplitRange(std::string_view table, std::string_view partition_key) {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(AsyncDatabase(*this).SplitRange(std::string(table), std::string(partition_key)));
}

Status Database::MergeRanges(std::string_view table, std::string_view partition_key) {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(AsyncDatabase(*this).MergeRanges(std::string(table), std::string(partition_key)));
}

Result<Database::RangeMove> Database::MoveRange(std::string_view table, std::string_view partition_key,
                                                uint32_t shard) {
  PARTITA_TRY(impl_->CheckUse());
  return impl_->RunChange(
      AsyncDatabase(*this).MoveRange(std::string(table), std::string(partition_key), shard));
}

Task<Status> AsyncDatabase::SplitRange(std::string table, std::string partition_key) const {
  if (partition_key.empty()) {
    co_return Status::InvalidArgument(
        "a range cannot be split in front of the empty partition key, which is the first");
  }
  PARTITA_CO_ASSIGN(std::string bound, PartitionBound(*impl_, table, partition_key));
  co_return co_await impl_->store->SplitRange(std::move(bound));
}

Task<Status> AsyncDatabase::MergeRanges(std::string table, std::string partition_key) const {
  PARTITA_CO_ASSIGN(std::string bound, PartitionBound(*impl_, table, partition_key));
  co_return co_await impl_->store->MergeRanges(std::move(bound));
}

Task<Result<Database::RangeMove>> AsyncDatabase::MoveRange(std::string table, std::string partition_key,
                                                           uint32_t shard) const {
  PARTITA_CO_ASSIGN(std::string bound, PartitionBound(*impl_, table, partition_key));
  PARTITA_CO_ASSIGN(const Store::MoveReport moved,
                    co_await impl_->store->MoveRange(std::move(bound), ShardId(shard)));
  co_return Database::RangeMove{moved.from.value, moved.to.value, static_cast<double>(moved.pause_ns) / 1e6,
                                moved.rest_bytes};
}

}  // namespace partita
