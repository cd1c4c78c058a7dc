
#include "api/cli/commands.h"
#include "api/cli/jsonl.h"
#include "api/cli/line_reader.h"
#include "api/cli/open_store.h"

namespace partita {

namespace {

// All of standard input, up to what one entity can take.
Result<std::string> ReadStandardInput() {
  FdSource source(0);
  std::string text;
  char buffer[65536];
  while (text.size() <= kRecordBytesMax) {
    PARTITA_ASSIGN(size_t size, source.Read(buffer, sizeof(buffer)));
    if (size == 0) return text;
    text.append(buffer, size);
  }
  return Status::InvalidArgument("standard input holds more than one entity can; use import");
}

WriteResult WriteEntity(const Table& table, const PutFlags& flags, WriteAction action, const Entity& entity) {
  if (action == WriteAction::kInsert) return table.Insert(entity);
  if (action == WriteAction::kReplace) return table.Replace(entity, flags.if_match);
  if (action == WriteAction::kInsertOrMerge) {
    return flags.if_match.empty() ? table.InsertOrMerge(entity) : table.Merge(entity, flags.if_match);
  }
  return flags.if_match.empty() ? table.InsertOrReplace(entity) : table.Replace(entity, flags.if_match);
}

}  // namespace

ExitCode RunPut(const StoreFlags& store, const PutFlags& flags, Console& console) {
  if (store.read_only) return RefuseReadOnly(console, "put");
  auto parse = [&]() -> Result<Entity> {
    std::string text = flags.entity_json;
    if (text == "-") {
      PARTITA_ASSIGN(text, ReadStandardInput());
    }
    return JsonEntityParser().Parse(text);
  };
  Result<WriteAction> action = ParseWriteMode(flags.mode);
  if (!action.ok()) return Fail(console, action.status());
  if (*action == WriteAction::kInsert && !flags.if_match.empty()) {
    return FailUsage(console, "--if-match is for entities that exist; it does not go with --mode insert");
  }
  Result<Entity> entity = parse();
  if (!entity.ok()) return Fail(console, entity.status());
  return WithStore(store, IfNoStore::kFail, console, [&](Database& database) -> Status {
    PARTITA_ASSIGN(Table table, OpenTableOf(database, flags.table));
    const WriteResult written = WriteEntity(table, flags, *action, *entity);
    if (!written.ok()) return written.status;
    console.out << written.etag << "\n";
    return Status();
  });
}

}  // namespace partita
