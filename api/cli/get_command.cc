#include "api/cli/commands.h"
#include "api/cli/jsonl.h"
#include "api/cli/open_store.h"
#include "api/date_time.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/inspect_text.h"

namespace partita {

namespace {

void PrintEntity(std::ostream& out, const Entity& entity) {
  out << "PartitionKey  " << entity.partition_key() << "\nRowKey        " << entity.row_key()
      << "\nTimestamp     " << FormatDateTime({entity.timestamp_ticks()}) << "\nETag          "
      << entity.etag() << "\n";
  for (const Property& property : entity.properties()) {
    std::string text;
    AppendValueText(&text, property.value);
    out << property.name << "  (" << EdmTypeName(property.value.type()) << ")  " << SafeText(text) << "\n";
  }
}

}  // namespace

ExitCode RunGet(const StoreFlags& store, const KeyFlags& flags, Console& console) {
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) -> Status {
    PARTITA_ASSIGN(Table table, OpenTableOf(database, flags.table));
    Result<Entity> entity = table.Get(flags.partition_key, flags.row_key);
    if (!entity.ok() && entity.code() == Code::kNotFound) {
      return Status::NotFound("table '" + table.name() + "' has no entity " +
                              QuotedForMessage(flags.partition_key) + " " + QuotedForMessage(flags.row_key));
    }
    if (!entity.ok()) return entity.status();
    if (store.json) {
      std::string line;
      AppendJsonLine(&line, *entity);
      console.out << line;
    } else {
      PrintEntity(console.out, *entity);
    }
    return Status();
  });
}

}  // namespace partita
