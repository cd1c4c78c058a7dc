#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/date_time.h"
#include "api/names.h"

// partita tables, create-table, delete-table.

namespace partita {

ExitCode RunTables(const StoreFlags& store, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return FailToStart(console, database.status());
  Report report;
  report.title = "tables of " + store.directory;
  ReportTable tables{"tables", {"name", "kind", "durability", "created"}, {}};
  for (const TableDescription& table : (*database)->ListTables()) {
    tables.rows.push_back({table.name, std::string(table.raw ? "raw" : "entities"),
                           std::string(DurabilityName(table.durability)),
                           FormatDateTime({table.created_ticks})});
  }
  report.tables.push_back(std::move(tables));
  if (store.json) {
    PrintReportJson(console.out, report);
  } else {
    PrintReport(console.out, report);
  }
  return CloseStore(**database, ExitCode::kOk, console);
}

ExitCode RunCreateTable(const StoreFlags& store, const CreateTableFlags& flags, Console& console) {
  // Before a store is made for it.
  const Status checked = CheckTableName(flags.table);
  if (!checked.ok()) return Fail(console, checked);
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kCreate);
  if (!database.ok()) return FailToStart(console, database.status());
  TableOptions options;
  options.durability = store.durability.value_or(Durability::kTableDefault);
  options.split_partition_keys = flags.split_partition_keys;
  const Status created = flags.raw ? (*database)->CreateRawTable(flags.table, options).status()
                                   : (*database)->CreateTable(flags.table, options).status();
  return CloseStore(**database, created.ok() ? ExitCode::kOk : Fail(console, created), console);
}

ExitCode RunDeleteTable(const StoreFlags& store, const std::string& table, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return FailToStart(console, database.status());
  const Status deleted = (*database)->DeleteTable(table);
  return CloseStore(**database, deleted.ok() ? ExitCode::kOk : Fail(console, deleted), console);
}

}  // namespace partita
