#include "api/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>

#include "api/cli/command_words.h"
#include "api/cli/figures.h"
#include "api/cli/version.h"

// CLI11's exceptions end here.

namespace partita {

// Its help: what it does, and an example.
CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example, std::function<void()> chosen) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer("Example:\n  " + example +
                  "\n\nOptions for the store (--data, --memory, ...): partita --help");
  command->callback(std::move(chosen));
  return command;
}

CLI::Validator NotEmpty() {
  return {[](std::string& value) { return std::string(value.empty() ? "is empty" : ""); }, ""};
}

namespace {

// Of any size, and told as such: the parser's own checks speak of doubles.
CLI::Validator WholeNumber() {
  return {[](std::string& value) {
            uint64_t number = 0;
            const char* end = value.data() + value.size();
            const auto [read, error] = std::from_chars(value.data(), end, number);
            if (error == std::errc() && read == end) return std::string();
            return "takes a whole number, 0 or more, not '" + value + "'";
          },
          ""};
}

constexpr const char* kDescription =
    "partita keeps tables of typed entities on this machine's disk.\n"
    "A store is a directory; name it with --data DIR or the variable PARTITA_DATA.\n";
constexpr const char* kFooter =
    "Begin with:\n"
    "  partita create-table Orders --data ./store\n"
    "  partita put Orders '{\"PartitionKey\":\"anna\",\"RowKey\":\"0001\",\"Total\":12.5}' --data ./store\n"
    "  partita scan Orders --data ./store\n"
    "  partita serve --data ./store\n\n"
    "Exit codes: 0 done; 1 bad records, damage, or a table or entity that does not exist, exists already, "
    "or\n"
    "has another ETag; 2 usage, or a name or value that breaks a rule; 3 the command could not finish, or\n"
    "there is no store. 'partita COMMAND --help' explains a command.";

constexpr const char* kModeHelp =
    "What happens where an entity exists: put replaces it, insert refuses the record, merge keeps its other "
    "properties, replace refuses the record where none exists";

constexpr const char* kSkipDamageHelp =
    "Go on behind what is damaged, and list the keys that may be missing for it (exit code 1 then); what is "
    "given is certain";

void AddStoreOptions(CLI::App& app, Words* words) {
  app.add_option("--data", words->store.directory, "The store's directory")
      ->envname("PARTITA_DATA")
      ->type_name("DIR");
  app.add_option("--memory", words->memory, "Memory budget, 64M to 1T")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option(
         "--shards", words->shards,
         "Worker threads, 1 to 256; default: as the store has; a new one gets one a core that the command "
         "may use, as far as --memory is enough (16M each). Another number re-divides the store")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  app.add_option(
         "--durability", words->durability,
         "For tables that are made now, and for what import writes: what a write survives: loss of power "
         "(power), death of the process (process), or nothing (memory). Tables that exist keep what "
         "they were made with ('partita tables' shows it). Default: power")
      ->check(CLI::IsMember({"power", "process", "memory"}))
      ->type_name("LEVEL");
  app.add_option("--io", words->io, "How the disk is reached; threads where io_uring is forbidden")
      ->check(CLI::IsMember({"uring", "threads"}))
      ->type_name("BACKEND")
      ->capture_default_str();
  app.add_option("--account", words->store.account,
                 "Whose tables, in a store that 'partita serve' keeps for several accounts; default: "
                 "devstoreaccount1")
      ->check(NotEmpty())
      ->type_name("NAME");
  app.add_flag("--json", words->store.json, "Answers as JSON, where there is a choice");
  app.add_flag(
      "--degraded", words->store.degraded,
      "Open also when the log or manifest of a shard is damaged: its keys answer with what is wrong, "
      "the others are served; 'partita repair' lists what can be kept");
  app.add_flag(
         "--allow-volatile-storage", words->store.allow_volatile_storage,
         "Open a store also where nothing survives a loss of power, such as a file system in memory; the "
         "durability 'power' is no more than 'process' there")
      ->envname("PARTITA_ALLOW_VOLATILE_STORAGE");
  app.add_flag("--read-only", words->store.read_only,
               "Change nothing on disk: for commands that read a snapshot, a backup or a read-only medium; "
               "several at once, none beside a process that writes");
}

void AddTransferCommands(CLI::App& app, Words* words) {
  CLI::App* import = AddCommand(
      app, "import", "Write the records of a file to a table",
      "partita import people.csv --table People --create --data ./store",
      [words] { words->run = [words](Console& c) { return RunImport(words->store, words->import, c); }; });
  import
      ->add_option("file", words->import.file,
                   "JSON lines, CSV or a Debian package index; - is standard input")
      ->required()
      ->type_name("FILE");
  import->add_option("--table", words->import.table, "Where to")->required()->type_name("T");
  import->add_option("--format", words->import.format, "Default: by the file's ending (.jsonl, .csv)")
      ->check(CLI::IsMember({"jsonl", "csv", "debian"}))
      ->type_name("FORMAT");
  import->add_option("--mode", words->import.mode, kModeHelp)
      ->check(CLI::IsMember({"put", "insert", "replace", "merge"}))
      ->type_name("MODE")
      ->capture_default_str();
  import->add_flag("--create", words->import.create, "Make the store and the table when they are missing");
  import->add_flag("--strict", words->import.strict, "Stop at the first bad record; else good ones are kept");
  import->add_flag("--resume", words->import.resume,
                   "Go on where an interrupted import stopped (FILE.partita-resume)");
  import->add_option("--errors", words->import.errors_max, "Bad records listed; all are counted")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();

  CLI::App* export_ = AddCommand(
      app, "export", "Write a table to a file",
      "partita export --table People -o people.jsonl --data ./store",
      [words] { words->run = [words](Console& c) { return RunExport(words->store, words->export_, c); }; });
  export_->add_option("--table", words->export_.table, "Which")->required()->type_name("T");
  export_
      ->add_option("--format", words->export_.format,
                   "Default: by the file's ending (.jsonl, .csv), else jsonl")
      ->check(CLI::IsMember({"jsonl", "csv"}))
      ->type_name("FORMAT");
  export_
      ->add_option("-o,--output", words->export_.file,
                   "Where to, as FILE.partita-partial until it is whole; default: standard output")
      ->check(NotEmpty())
      ->type_name("FILE");
  export_->add_flag("--skip-damage", words->export_.skip_damage, kSkipDamageHelp);
}

void AddKeys(CLI::App* command, KeyFlags* key) {
  command->add_option("table", key->table, "The table")->required();
  command->add_option("partition_key", key->partition_key, "Its PartitionKey")->required();
  command->add_option("row_key", key->row_key, "Its RowKey")->required();
}

void AddReadCommands(CLI::App& app, Words* words) {
  CLI::App* get = AddCommand(
      app, "get", "Show one entity", "partita get Orders anna 0001 --data ./store",
      [words] { words->run = [words](Console& c) { return RunGet(words->store, words->key, c); }; });
  AddKeys(get, &words->key);

  CLI::App* scan = AddCommand(
      app, "scan", "Show entities in order of their keys, as JSON lines",
      "partita scan Orders --partition anna --from-row 0001 --to-row 0100 --data ./store",
      [words] { words->run = [words](Console& c) { return RunScan(words->store, words->scan, c); }; });
  ScanOptions& options = words->scan.options;
  scan->add_option("table", words->scan.table, "The table")->required();
  scan->add_option("--partition", options.partition, "Only this partition")->type_name("PK");
  scan->add_option("--from-row", options.row_lower, "From this RowKey on (with --partition)")
      ->type_name("RK");
  scan->add_option("--to-row", options.row_upper, "Up to, without, this RowKey (with --partition)")
      ->type_name("RK");
  scan->add_option("--from-partition", options.partition_lower, "From this PartitionKey on")->type_name("PK");
  scan->add_option("--to-partition", options.partition_upper, "Up to, without, this PartitionKey")
      ->type_name("PK");
  scan->add_option("--limit", words->scan.limit, "Entities shown; 0: all")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();
  scan->add_flag_callback(
      "--descending,--reverse", [words] { words->scan.options.order = ScanOrder::kDescending; },
      "Last key first");
  scan->add_flag("--count", words->scan.count, "Only how many there are, of all: --limit does not count");
}

void AddQuery(CLI::App& app, Words* words) {
  CLI::App* query = AddCommand(
      app, "query", "Show the entities that match a filter, or count, min, max, sum over them",
      "partita query Orders \"PartitionKey eq 'anna' and Total gt 100.0\" --select Total,Note --data "
      "./store\n"
      "  partita query Orders \"PartitionKey eq 'anna'\" --reverse --top 10 --format table --data ./store\n"
      "  partita query Orders \"Total gt 100.0\" --count --sum Total --max Timestamp --data ./store\n"
      "  partita query Orders \"Total gt 100.0\" --explain-only --data ./store\n\n"
      "A filter compares properties with constants: eq ne gt ge lt le, joined by and, or, not, (). "
      "Constants:\n"
      "'text' ('' is a quote in it), 5, 5L, 5.0, INF, true, datetime'2026-01-31T00:00:00Z', guid'...', "
      "X'0a'.\n"
      "5 compares with properties of type Int32, Int64 and Double; 5L with Int64 and Double, 5.0 with "
      "Double.\n"
      "Conditions on PartitionKey and RowKey decide how much is read: --explain tells.\n"
      "--count, --min, --max and --sum are of all that match: they go with none of --select, --top, "
      "--reverse\n"
      "and --skip-damage. A printed table (--format table) holds up to 10,000 entities",
      [words] {
        words->run = [words](Console& c) { return RunQueryCommand(words->store, words->query, c); };
      });
  QueryFlags& flags = words->query;
  query->add_option("table", flags.table, "The table")->required();
  query->add_option("filter", flags.filter, "Which entities; default: all")->type_name("FILTER");
  query->add_option("--select", flags.select, "Only these properties, besides the keys")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  query->add_option("--top", flags.top, "Entities shown; 0: all")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();
  query->add_flag("--reverse,--descending", flags.reverse, "Last key first");
  query->add_option("--format", flags.format, "JSON lines, CSV, or a table for people")
      ->check(CLI::IsMember({"jsonl", "csv", "table"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  query->add_flag("--explain", flags.explain, "Tell also the plan, and what it took (on the error stream)");
  query->add_flag("--explain-only", flags.explain_only, "Tell the plan, and read nothing");
  query->add_flag("--skip-damage", flags.skip_damage, kSkipDamageHelp);
  query->add_flag("--count", flags.count, "How many match");
  // One name each: what stands behind it is the table, or the filter.
  query->add_option("--min", flags.min, "The least value of a property")
      ->allow_extra_args(false)
      ->type_name("NAME");
  query->add_option("--max", flags.max, "The greatest; RowKey, Timestamp can be asked for, too")
      ->allow_extra_args(false)
      ->type_name("NAME");
  query->add_option("--sum", flags.sum, "The sum of its numbers")->allow_extra_args(false)->type_name("NAME");
}

void AddWriteCommands(CLI::App& app, Words* words) {
  CLI::App* put = AddCommand(
      app, "put", "Write one entity; prints its ETag",
      "partita put Orders '{\"PartitionKey\":\"anna\",\"RowKey\":\"0001\",\"Total\":12.5}' --data ./store",
      [words] { words->run = [words](Console& c) { return RunPut(words->store, words->put, c); }; });
  put->add_option("table", words->put.table, "The table")->required();
  put->add_option("entity", words->put.entity_json, "A JSON object; - is standard input")
      ->required()
      ->type_name("JSON");
  put->add_option("--mode", words->put.mode, kModeHelp)
      ->check(CLI::IsMember({"put", "insert", "replace", "merge"}))
      ->type_name("MODE")
      ->capture_default_str();
  put->add_option("--if-match", words->put.if_match, "Only if the entity has this ETag")
      ->check(NotEmpty())
      ->type_name("ETAG");

  CLI::App* remove = AddCommand(
      app, "delete", "Delete one entity", "partita delete Orders anna 0001 --data ./store",
      [words] { words->run = [words](Console& c) { return RunDelete(words->store, words->key, c); }; });
  AddKeys(remove, &words->key);
  remove->add_option("--if-match", words->key.if_match, "Only if the entity has this ETag")
      ->check(NotEmpty())
      ->type_name("ETAG");
}

void AddTableCommands(CLI::App& app, Words* words) {
  AddCommand(app, "tables", "List the tables", "partita tables --data ./store",
             [words] { words->run = [words](Console& c) { return RunTables(words->store, c); }; });
  CLI::App* create = AddCommand(app, "create-table", "Make a table, and the store when it is missing",
                                "partita create-table Orders --data ./store", [words] {
                                  words->run = [words](Console& c) {
                                    return RunCreateTable(words->store, words->create_table, c);
                                  };
                                });
  create->add_option("table", words->create_table.table, "3 to 63 letters and digits, a letter first")
      ->required();
  create->add_flag("--raw", words->create_table.raw, "Opaque bytes under two keys instead of entities");
  create
      ->add_option(
          "--split", words->create_table.split_partition_keys,
          "A PartitionKey at which the table is divided among the shards; may be given several times, "
          "in their order")
      // One key each: what stands behind it is the table. And else the parser would take the value [de] for a
      // list of its own, of de.
      ->allow_extra_args(false)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("PK");
  CLI::App* remove = AddCommand(app, "delete-table", "Delete a table with all its entities",
                                "partita delete-table Orders --data ./store", [words] {
                                  words->run = [words](Console& c) {
                                    return RunDeleteTable(words->store, words->delete_table, c);
                                  };
                                });
  remove->add_option("table", words->delete_table, "The table")->required();
}

void AddToolCommands(CLI::App& app, Words* words) {
  AddCommand(app, "stats", "Levels, files, bytes, amplification, memory", "partita stats --data ./store",
             [words] { words->run = [words](Console& c) { return RunStats(words->store, c); }; });
  AddCommand(
      app, "verify",
      "Read every table file and check every seal, order and count (scrub reads logs and manifests, too)",
      "partita verify --data ./store\n\n"
      "Exit code 0: sound; 1: there is damage, or writes are lost at the end of a log; 3: it could not be "
      "told",
      [words] { words->run = [words](Console& c) { return RunVerify(words->store, c); }; });
  CLI::App* inspect = AddCommand(
      app, "inspect", "Show one file of a store, also beside the process that has it open",
      "partita inspect manifest ./store/meta/shard-1-0",
      [words] { words->run = [words](Console& c) { return RunInspect(words->store, words->inspect, c); }; });
  inspect
      ->add_option("kind", words->inspect.kind,
                   "wal: STORE/log-*/*; table: STORE/tables/*.sst; manifest: STORE/meta/shard-*; catalog: "
                   "STORE/meta/catalog")
      ->required()
      ->check(CLI::IsMember({"wal", "table", "manifest", "catalog"}))
      ->type_name("KIND");
  inspect->add_option("file", words->inspect.file, "The file")->required()->type_name("FILE");
  inspect->add_option("--rows", words->inspect.rows_max, "Frames or entries listed")
      ->check(WholeNumber())
      ->type_name("N")
      ->capture_default_str();
  AddCommand(app, "doctor", "Show machine, disk and limits, what is derived from them and why",
             "partita doctor --data ./store",
             [words] { words->run = [words](Console& c) { return RunDoctor(words->store, c); }; });
  CLI::App* demo = AddCommand(
      app, "demo", "Import this machine's package index, read, update and check every property of it",
      "partita demo --smoke --data ./new-directory",
      [words] { words->run = [words](Console& c) { return RunDemo(words->store, words->demo, c); }; });
  demo->add_option("--index", words->demo.index,
                   "A Debian package index of " + FormatCount(kDemoRecordsMin) +
                       " records or more; - is standard input; default: what apt-cache dumpavail prints")
      ->check(NotEmpty())
      ->type_name("FILE");
  demo->add_flag("--smoke", words->demo.smoke, "Bounded to less than a minute");
}

// The parser would take 010 for eight.
void TakeDecimals(CLI::App& app) {
  const CLI::Validator decimal(
      [](std::string& value) {
        const size_t digit = value.find_first_not_of('0');
        if (digit != value.npos && digit > 0 && value[digit] >= '1' && value[digit] <= '9') {
          value.erase(0, digit);
        }
        return std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();  // And, behind a colon, what is checked.
    if (type.substr(0, type.find(':')) == "N") option->transform(decimal);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) TakeDecimals(*command);
}

void AddCommands(CLI::App& app, Words* words) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("partita ") + kPartitaVersion);
  app.fallthrough();  // Options of the store may stand before and behind the command.
  app.footer(kFooter);
  AddStoreOptions(app, words);
  AddServiceCommands(app, words);
  AddTransferCommands(app, words);
  AddReadCommands(app, words);
  AddQuery(app, words);
  AddWriteCommands(app, words);
  AddTableCommands(app, words);
  AddToolCommands(app, words);
  AddMaintenanceCommands(app, words);
  TakeDecimals(app);
}

Status FillStoreFlags(Words* words) {
  Result<uint64_t> memory = ParseBytes(words->memory);
  if (!memory.ok()) return memory.status().WithContext("--memory");
  words->store.memory_bytes = *memory;
  if (!words->rate.empty()) {
    Result<uint64_t> rate = ParseBytes(words->rate);
    if (!rate.ok()) return rate.status().WithContext("--rate");
    PARTITA_TRY(CheckTaskRate(*rate).WithContext("--rate " + words->rate));
    words->backup.bytes_per_second = words->scrub.bytes_per_second = words->repair.bytes_per_second = *rate;
  }
  words->store.shards = words->shards;
  if (words->durability == "power") words->store.durability = Durability::kPower;
  if (words->durability == "process") words->store.durability = Durability::kProcess;
  if (words->durability == "memory") words->store.durability = Durability::kMemory;
  words->store.io_backend = words->io == "threads" ? IoBackend::kThreads : IoBackend::kUring;
  return Status();
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& words, Console& console,
                        const std::vector<OtherCommand>& others) {
  for (const std::string& word : words) {
    if (word == "--") break;
    // The parser would take the next word for its value. A value may end so itself: keys in base64 do.
    const size_t name_size = word.find('=');
    if (word.starts_with("--") && name_size == word.size() - 1)
      return FailUsage(console, word.substr(0, name_size) + " has an empty value");
  }
  Words flags;
  CLI::App app(kDescription, "partita");
  AddCommands(app, &flags);
  for (const OtherCommand& other : others) {
    if (!words.empty() && words[0] == other.name) return other.run({words.begin() + 1, words.end()}, console);
    app.add_subcommand(other.name, other.description);  // For the list of --help, and near names.
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return Explain(app, error, console);
  }
  flags.serve.memory_given = app.get_option("--memory")->count() > 0;
  flags.serve.io_given = app.get_option("--io")->count() > 0;
  flags.query.top_given = app.get_subcommand("query")->get_option("--top")->count() > 0;
  const Status filled = FillStoreFlags(&flags);
  if (!filled.ok()) return Fail(console, filled);
  if (!flags.run) return FailUsage(console, "options of the store stand behind this command, if it has any");
  return flags.run(console);
}

std::vector<std::string> CommandNames() {
  Words flags;
  CLI::App app(kDescription, "partita");
  AddCommands(app, &flags);
  return CommandNamesOf(app);
}

}  // namespace partita
