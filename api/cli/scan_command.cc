#include <algorithm>

#include "api/cli/commands.h"
#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "api/cli/open_store.h"

namespace partita {

namespace {

constexpr uint64_t kScanPage = 1000;

Status CountEntities(const Table& table, const ScanFlags& flags, Console& console) {
  PARTITA_ASSIGN(uint64_t count, table.Count(flags.options));
  console.out << count << "\n";
  return Status();
}

Status PrintEntities(const Table& table, const ScanFlags& flags, Console& console) {
  ScanOptions options = flags.options;
  uint64_t left = flags.limit == 0 ? UINT64_MAX : flags.limit;
  std::string text;
  console.interrupts.Arm();
  do {
    if (console.interrupts.Requested()) return Status::Cancelled("interrupted");
    options.limit = static_cast<uint32_t>(std::min(left, kScanPage));
    PARTITA_ASSIGN(Page page, table.Scan(options));
    text.clear();
    for (const Entity& entity : page.entities) AppendJsonLine(&text, entity);
    if (!(console.out << text)) return Status::IoError("cannot write to standard output");
    left -= page.entities.size();
    options.continuation = page.continuation;
  } while (!options.continuation.empty() && left > 0);
  console.out.flush();
  if (!options.continuation.empty()) {
    console.err << "partita: there is more; --limit N shows N entities, --limit 0 all\n";
  }
  return Status();
}

}  // namespace

ExitCode RunScan(const StoreFlags& store, const ScanFlags& flags, Console& console) {
  if ((flags.options.row_lower || flags.options.row_upper) && !flags.options.partition) {
    return FailUsage(console, "--from-row and --to-row are rows within one partition: add --partition PK");
  }
  if (flags.options.partition && (flags.options.partition_lower || flags.options.partition_upper)) {
    return FailUsage(console,
                     "--partition is one partition, --from-partition and --to-partition are several");
  }
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) -> Status {
    PARTITA_ASSIGN(Table table, OpenTableOf(database, flags.table));
    return flags.count ? CountEntities(table, flags, console) : PrintEntities(table, flags, console);
  });
}

}  // namespace partita
