// What faces keep beside the names of tables and accounts (catalog.h): decided by the same durable change
// of the catalog as the tables themselves (F19).
#include "engine/catalog_change.h"
#include "engine/store.h"

namespace partita {

namespace {

Status CheckSize(size_t size) {
  if (size <= kAttributesSizeMax) return Status();
  return Status::InvalidArgument("attributes have " + std::to_string(size) + " bytes; at most " +
                                 std::to_string(kAttributesSizeMax) + " are kept of a name");
}

Status CheckTotal(const Catalog& catalog) {
  if (catalog.AttributesSize() <= kAttributesTotalMax) return Status();
  return Status::ResourceExhausted("the attributes of all names exceed " +
                                   std::to_string(kAttributesTotalMax) + " bytes");
}

}  // namespace

Attributes Store::AccountAttributes(std::string_view account) const {
  return names_.With([&](const NameIndex& names) { return names.AccountAttributes(account); });
}

Task<Status> Store::SetTableAttributes(std::string account, std::string name, std::string bytes) {
  PARTITA_CO_TRY(CheckSize(bytes.size()));
  if (!bytes.empty()) PARTITA_CO_TRY(CheckSpace());
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  const TableDescriptor* table = change->next.FindTable(account, name);
  if (table == nullptr) co_return WhyNoTable(account, name);
  change->next.SetTableAttributes(table->id, std::move(bytes));
  PARTITA_CO_TRY(CheckTotal(change->next));
  co_return co_await MakeChange(std::move(change));
}

Task<Status> Store::SetAccountAttributes(std::string account, std::string bytes) {
  PARTITA_CO_TRY(CheckSize(bytes.size()));
  if (!bytes.empty()) PARTITA_CO_TRY(CheckSpace());
  PARTITA_CO_ASSIGN(ChangePtr change, co_await BeginChange());
  change->next.SetAccountAttributes(account, std::move(bytes));
  PARTITA_CO_TRY(CheckTotal(change->next));
  co_return co_await MakeChange(std::move(change));
}

}  // namespace partita
