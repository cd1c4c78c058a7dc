#include "api/cli/commands.h"
#include "api/cli/open_store.h"
#include "api/cli/report_printer.h"
#include "api/date_time.h"
#include "api/names.h"
#include "engine/base/user_key.h"

// partita tables, create-table, delete-table.

namespace partita {

ExitCode RunTables(const StoreFlags& store, Console& console) {
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) {
    Report report;
    report.title = "tables of " + store.directory;
    ReportTable tables{"tables", {"name", "kind", "durability", "created"}, {}};
    for (const TableDescription& table : database.ListTables()) {
      tables.rows.push_back({table.name, std::string(table.raw ? "raw" : "entities"),
                             std::string(DurabilityName(table.durability)),
                             FormatDateTime({table.created_ticks})});
    }
    const bool is_empty = tables.rows.empty();
    report.tables.push_back(std::move(tables));
    PrintAsAsked(store, report, console);
    const std::string others = is_empty ? TablesOfOthers(database) : "";
    if (!others.empty()) {
      console.out.flush();
      console.err << "partita: account " << AccountOf(store) << " has no table; the store has " << others
                  << "\n";
    }
    return Status();
  });
}

namespace {

// That they rise as the table's partitions do, each once.
Status CheckSplits(const CreateTableFlags& flags) {
  const std::vector<std::string>& keys = flags.split_partition_keys;
  const auto stored = [&flags](const std::string& key) { return flags.raw ? key : OrderedText(key); };
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!flags.raw) PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, keys[i]).WithContext("--split"));
    if (i == 0 || stored(keys[i - 1]) < stored(keys[i])) continue;
    return Status::InvalidArgument(
        "--split takes the keys in their order, each once: " + QuotedForMessage(keys[i]) +
        " does not come behind " + QuotedForMessage(keys[i - 1]));
  }
  return Status();
}

}  // namespace

ExitCode RunCreateTable(const StoreFlags& store, const CreateTableFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "create-table");
  // Before a store is made for it.
  Status checked = CheckTableName(flags.table);
  if (checked.ok()) checked = CheckSplits(flags);
  if (!checked.ok()) return Fail(console, checked);
  return WithStore(store, IfNoStore::kCreate, console, [&](Database& database) -> Status {
    TableOptions options;
    options.durability = store.durability.value_or(Durability::kTableDefault);
    options.split_partition_keys = flags.split_partition_keys;
    const bool is_first = database.ListTables().empty();
    PARTITA_TRY(flags.raw ? database.CreateRawTable(flags.table, options).status()
                          : database.CreateTable(flags.table, options).status());
    if (is_first) TellOfNewAccount(database, store, console);
    return Status();
  });
}

ExitCode RunDeleteTable(const StoreFlags& store, const std::string& table, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "delete-table");
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) {
    const Status deleted = database.DeleteTable(table);
    return deleted.code() == Code::kNotFound ? NoSuchTable(database, table) : deleted;
  });
}

}  // namespace partita
