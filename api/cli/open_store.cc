#include "api/cli/open_store.h"

#include <sys/resource.h>

#include <map>
#include <set>

#include "api/cli/opening_watcher.h"
#include "api/http/accounts.h"
#include "api/names.h"
#include "engine/inspect.h"

namespace partita {

namespace {

Status WithAdvice(const Status& status, const StoreFlags& flags, bool would_create) {
  if (status.code() == Code::kNotFound && would_create) {
    return Status::NotFound(status.message() + "; check --data, or make the directory above it first");
  }
  if (status.code() == Code::kNotFound) {
    if (ShardCountOfStore(flags.directory).has_value()) return status;  // It lacks something else.
    return Status::NotFound("there is no store in '" + flags.directory +
                            "'; check --data, or make a store with 'partita create-table' or "
                            "'import --create'");
  }
  if (UnmetOf(status) == Unmet::kIoUring) {
    return Status::Unsupported(status.message() +
                               "; --io threads works without io_uring, 'partita doctor' tells more");
  }
  return status;
}

// What no later opening finds again: it is told by the one that saw it, whichever command that is.
void TellWhatIsVoid(const OpenReport& report, Console& console) {
  for (const std::string& torn : report.torn_logs) console.err << "partita: " << torn << "\n";
  for (const std::string& stranded : report.stranded_logs) console.err << "partita: " << stranded << "\n";
  if (report.leftovers_kept.empty()) return;
  console.err << "partita: files of no use are still there: " << report.leftovers_kept << "\n";
}

}  // namespace

uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

Result<std::unique_ptr<Database>> OpenStore(const StoreFlags& flags, IfNoStore if_no_store,
                                            Console& console) {
  if (flags.directory.empty()) {
    return Status::InvalidArgument("which store? Name its directory with --data DIR, or set PARTITA_DATA");
  }
  RaiseDescriptorLimit();
  Options options;
  options.directory = flags.directory;
  options.create_if_missing = if_no_store == IfNoStore::kCreate && !flags.read_only;
  options.read_only = flags.read_only;
  options.open_degraded = flags.degraded;
  options.memory_bytes = flags.memory_bytes;
  options.host_memory_bytes = flags.host_memory_bytes;
  // Another number of shards would have the store re-divided, which only who asks for it wants.
  options.shards = flags.shards.value_or(ShardCountOfStore(flags.directory).value_or(0));
  options.durability = flags.durability.value_or(Durability::kPower);
  options.io_backend = flags.io_backend;
  options.allow_volatile_storage = flags.allow_volatile_storage;
  if (!flags.account.empty()) options.account = flags.account;
  OpeningWatcher watcher(console);
  options.opening_progress = [&watcher](uint64_t done, uint64_t due) { watcher.Watch(done, due); };
  Result<std::unique_ptr<Database>> database = Database::Open(options);
  watcher.Finish();
  if (!database.ok()) return WithAdvice(database.status(), flags, options.create_if_missing);
  TellWhatIsVoid((*database)->open_report(), console);
  return database;
}

Status AdviseAdmin(const Status& status, const std::string& command) {
  if (status.code() != Code::kLocked) return status;
  return Status::Locked(status.message() + "; of a store that 'partita serve --admin ADDRESS' has open: '" +
                        command + " --admin ADDRESS'");
}

std::string AdviceForDamagedBackup(const std::string& directory) {
  return "'partita export --skip-damage --read-only --degraded --data " + directory +
         " --table T' writes what is sound of a table";
}

ExitCode RefuseReadOnly(Console& console, const std::string& command) {
  return FailUsage(console, command + " changes the store, which --read-only forbids");
}

std::string TableOnServer(const StoreFlags& flags, const std::string& table) {
  return flags.account.empty() || table.empty() ? table : flags.account + "/" + table;
}

std::string AccountOf(const StoreFlags& flags) {
  return flags.account.empty() ? std::string(http::kDevelopmentAccount) : flags.account;
}

std::string TablesOfOthers(const Database& database) {
  const Result<std::vector<RangeDescription>> ranges = database.ListRanges();
  if (!ranges.ok()) return "";
  std::map<std::string, std::set<std::string>> tables_by_account;
  for (const RangeDescription& range : *ranges) {
    if (const size_t slash = range.table.find('/'); slash != std::string::npos)
      tables_by_account[range.table.substr(0, slash)].insert(range.table);
  }
  if (tables_by_account.empty()) return "";
  std::string text;
  for (const auto& [account, tables] : tables_by_account) {
    text += text.empty() ? "" : ", ";
    text += std::to_string(tables.size()) + (tables.size() == 1 ? " table" : " tables") + " of account " +
            account;
  }
  return text + ": --account " + (tables_by_account.size() == 1 ? tables_by_account.begin()->first : "NAME");
}

Status NoSuchTable(const Database& database, const std::string& name) {
  std::string known;
  for (const TableDescription& other : database.ListTables())
    known += (known.empty() ? "" : ", ") + other.name;
  const std::string others = TablesOfOthers(database);
  const std::string has = known.empty() ? "has none" : "has: " + known;
  return Status::NotFound(
      "there is no table '" + name + "'; " +
      (others.empty() ? "the store " + has : "this account " + has + "; the store also has " + others));
}

void TellOfNewAccount(const Database& database, const StoreFlags& flags, Console& console) {
  const std::string others = TablesOfOthers(database);
  if (others.empty()) return;
  console.err << "partita: this is the first table of account " << AccountOf(flags) << "; the store has "
              << others << "\n";
}

Result<Table> OpenTableOf(Database& database, const std::string& name) {
  Result<Table> table = database.OpenTable(name);
  if (table.code() == Code::kInvalidArgument && CheckTableName(name).ok()) {
    return Status::InvalidArgument(
        "'" + name + "' is a raw table: only programs read and write its bytes, by the C++ API");
  }
  return table.code() == Code::kNotFound ? NoSuchTable(database, name) : table;
}

Result<WriteAction> ParseWriteMode(std::string_view mode) {
  if (mode == "put") return WriteAction::kInsertOrReplace;
  if (mode == "insert") return WriteAction::kInsert;
  if (mode == "replace") return WriteAction::kReplace;
  if (mode == "merge") return WriteAction::kInsertOrMerge;
  return Status::InvalidArgument("mode '" + std::string(mode) + "' is none of put, insert, replace, merge");
}

std::string_view DurabilityName(Durability durability) {
  switch (durability) {
    case Durability::kTableDefault:
      return "table default";
    case Durability::kPower:
      return "power";
    case Durability::kProcess:
      return "process";
    case Durability::kMemory:
      return "memory";
  }
  return "unknown";
}

ExitCode CloseStore(Database& database, ExitCode so_far, Console& console) {
  const Status closed = database.Close();
  if (closed.ok()) return so_far;
  const ExitCode failed = Fail(console, closed.WithContext("closing the store"));
  return so_far == ExitCode::kOk ? failed : so_far;
}

ExitCode WithStore(const StoreFlags& flags, IfNoStore if_no_store, Console& console,
                   const std::function<Status(Database&)>& command, const std::string& on_admin) {
  const Result<std::unique_ptr<Database>> database = OpenStore(flags, if_no_store, console);
  if (!database.ok()) {
    return FailToStart(console,
                       on_admin.empty() ? database.status() : AdviseAdmin(database.status(), on_admin));
  }
  const Status done = command(**database);
  return CloseStore(**database, done.ok() ? ExitCode::kOk : Fail(console, done), console);
}

}  // namespace partita
