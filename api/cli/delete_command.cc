#include "api/cli/commands.h"
#include "api/cli/open_store.h"

namespace partita {

ExitCode RunDelete(const StoreFlags& store, const KeyFlags& flags, Console& console) {
  Result<std::unique_ptr<Database>> database = OpenStore(store, IfNoStore::kFail);
  if (!database.ok()) return FailToStart(console, database.status());
  auto remove = [&]() -> Status {
    PARTITA_ASSIGN(Table table, OpenTableOf(**database, flags.table));
    return table.Delete(flags.partition_key, flags.row_key, flags.if_match).status;
  };
  const Status removed = remove();
  return CloseStore(**database, removed.ok() ? ExitCode::kOk : Fail(console, removed), console);
}

}  // namespace partita
