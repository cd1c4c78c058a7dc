#include "api/async_database.h"

#include <utility>

#include "api/database_impl.h"
#include "api/names.h"

namespace partita {

const std::string& AsyncTable::name() const { return core_->name(); }
TableId AsyncTable::id() const { return core_->id; }
Store& AsyncTable::store() const { return *core_->impl->store; }

AsyncDatabase::AsyncDatabase(Database& database) : impl_(database.impl_.get()) {}

Runtime& AsyncDatabase::runtime() const { return *impl_->runtime; }
Store& AsyncDatabase::store() const { return *impl_->store; }

Result<AsyncTable> AsyncDatabase::FindTable(std::string_view account, std::string_view name) const {
  std::shared_ptr<const TableDescriptor> table = impl_->store->LookUpTable(account, name);
  if (table == nullptr) return impl_->store->WhyNoTable(account, name);
  if (table->raw) return Status::NotFound("table '" + table->name + "' is a raw table");
  return AsyncTable(std::make_shared<const TableCore>(impl_, std::move(table)));
}

std::vector<TablePtr> AsyncDatabase::ListTables(std::string_view account, std::string_view from,
                                                size_t limit) const {
  return impl_->store->ListTables(account, from, limit);
}

Task<Status> AsyncDatabase::CreateTable(std::string_view account, std::string_view name) const {
  Status checked = CheckTableName(name);
  if (!checked.ok()) co_return checked;
  Store::TableSpec spec;
  spec.account = std::string(account);
  spec.name = std::string(name);
  spec.durability = LevelOf(Durability::kTableDefault, impl_->options.durability);
  PARTITA_CO_ASSIGN([[maybe_unused]] TableDescriptor table,
                    co_await impl_->store->CreateTable(std::move(spec)));
  co_return Status();
}

Task<Status> AsyncDatabase::DeleteTable(std::string_view account, std::string_view name) const {
  std::string account_copy(account);
  std::string name_copy(name);
  co_return co_await impl_->store->DeleteTable(std::move(account_copy), std::move(name_copy));
}

Attributes AsyncDatabase::TableAttributes(std::string_view account, std::string_view name) const {
  std::shared_ptr<const TableDescriptor> table = impl_->store->LookUpTable(account, name);
  return table == nullptr || table->raw ? nullptr : table->attributes;
}

Attributes AsyncDatabase::AccountAttributes(std::string_view account) const {
  return impl_->store->AccountAttributes(account);
}

Task<Status> AsyncDatabase::SetTableAttributes(std::string account, std::string name,
                                               std::string bytes) const {
  Result<AsyncTable> table = FindTable(account, name);  // A raw table has none.
  if (!table.ok()) co_return table.status();
  co_return co_await impl_->store->SetTableAttributes(std::move(account), std::move(name), std::move(bytes));
}

Task<Status> AsyncDatabase::SetAccountAttributes(std::string account, std::string bytes) const {
  co_return co_await impl_->store->SetAccountAttributes(std::move(account), std::move(bytes));
}

}  // namespace partita
