#include "api/cli/commands.h"
#include "api/cli/open_store.h"

namespace partita {

ExitCode RunDelete(const StoreFlags& store, const KeyFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "delete");
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) -> Status {
    PARTITA_ASSIGN(Table table, OpenTableOf(database, flags.table));
    return table.Delete(flags.partition_key, flags.row_key, flags.if_match).status;
  });
}

}  // namespace partita
