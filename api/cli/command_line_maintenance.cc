#include "api/cli/command_words.h"

// The commands that look after a store: scrub, backup, restore, repair, ranges, heat, stalls.
namespace partita {

namespace {

void AddRate(CLI::App* command, Words* words) {
  command
      ->add_option("--rate", words->rate,
                   "Bytes read and written a second at most, 64K or more, like 50M; default: any")
      ->check(NotEmpty())
      ->type_name("SIZE");
}

// Of commands for a store, or for the server that has it open.
void AddAdmin(CLI::App* command, std::string* admin) {
  command->add_option("--admin", *admin, "Of the server that runs with this --admin, not of --data")
      ->check(NotEmpty())
      ->type_name("ADDRESS");
}

void AddScrub(CLI::App& app, Words* words) {
  CLI::App* scrub = AddCommand(
      app, "scrub", "Read every file past the caches, at a bounded rate, and check every seal",
      "partita scrub --within 8h --data ./store\n"
      "  partita scrub --within 8h --admin 127.0.0.1:9090\n"
      "  partita scrub --read-only --data /mnt/backups/monday",
      [words] { words->run = [words](Console& c) { return RunScrub(words->store, words->scrub, c); }; });
  scrub->add_option("--within", words->scrub.within, "Spread the reading over this time: 90m, 12h, 7d")
      ->check(NotEmpty())
      ->type_name("TIME");
  AddRate(scrub, words);
  AddAdmin(scrub, &words->scrub.admin);
}

void AddBackupCommands(CLI::App& app, Words* words) {
  CLI::App* backup = AddCommand(
      app, "backup", "Write a backup of the store to a new directory, and read all of it back",
      "partita backup ./monday --data ./store\n"
      "  partita backup /mnt/other/tuesday --base /mnt/other/monday --data ./store\n"
      "  partita backup /mnt/other/monday --admin 127.0.0.1:9090\n\n"
      "On one file system the files are shared, which takes no time and no room, but is no second copy of\n"
      "their blocks; on another one only --base shares. What is not complete is called NAME.partial.\n"
      "Exit code 0: it is made; 1: it is made, but files of --base are damaged there; 2, 3: it is not",
      [words] { words->run = [words](Console& c) { return RunBackup(words->store, words->backup, c); }; });
  backup
      ->add_option("directory", words->backup.directory,
                   "Made by this in a directory that is there; must not exist")
      ->required();
  backup
      ->add_option(
          "--base", words->backup.base,
          "An earlier backup of this store: files it has are shared, but those that are damaged there")
      ->check(NotEmpty())
      ->type_name("DIR");
  AddAdmin(backup, &words->backup.admin);
  CLI::App* restore = AddCommand(
      app, "restore", "Make a store of a backup, and read all of it back",
      "partita restore ./backups/monday --data ./new-store",
      [words] { words->run = [words](Console& c) { return RunRestore(words->store, words->backup, c); }; });
  restore->add_option("directory", words->backup.directory, "The backup")->required();
  for (CLI::App* command : {backup, restore}) {
    command->add_flag("--copy", words->backup.copy,
                      "Copy each file, also where the original's could be shared");
    AddRate(command, words);
  }
}

void AddRepair(CLI::App& app, Words* words) {
  CLI::App* repair = AddCommand(
      app, "repair", "List what is damaged in a store that nobody has open, and repair it when told to",
      "partita repair --data ./store\n"
      "  partita repair --apply --data ./store\n\n"
      "Without --apply nothing is changed: every file is read, and what would be lost is listed, table by\n"
      "table, with the keys and why. Exit code 0: sound; 1: there is damage; 3: it could not be told.\n"
      "With --apply all that is not listed is kept, the store is opened and read back (0: it is sound now),\n"
      "and the old files stay in DIR/damaged-TIME with the list, FOUND.txt: remove that when nobody needs "
      "it.\n"
      "Tables of a lost catalog come back as those of one account, whosesoever they were: of 'partita\n"
      "--account NAME repair', else of the development account, whose key everybody knows. No command gives\n"
      "them to another one later.\n"
      "Where rows are lost an older state of them, or one that was deleted, may come to light. Killed at "
      "any\n"
      "moment it leaves the store as it was, or repaired. With a recent backup, compare: 'partita restore'\n"
      "loses what came after the backup, a repair what is damaged. Until then --degraded serves the rest",
      [words] { words->run = [words](Console& c) { return RunRepair(words->store, words->repair, c); }; });
  repair->add_flag("--apply", words->repair.apply, "Repair; else only list");
  AddRate(repair, words);
}

void AddRanges(CLI::App& app, Words* words) {
  CLI::App* ranges = AddCommand(app, "ranges", "Show and change how tables are divided among the shards",
                                "partita ranges list --data ./store\n"
                                "  partita ranges split Orders m --data ./store\n"
                                "  partita ranges move Orders m 1 --data ./store\n\n"
                                "A table begins as one range, which one shard serves. A split touches no "
                                "data, a move only what is not\n"
                                "in files yet. A partition always lies in one range",
                                [] {});
  ranges->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, const char* example, auto run) {
    CLI::App* command = AddCommand(*ranges, name, description, example, [words, run] {
      words->run = [words, run](Console& c) { return run(words->store, words->ranges, c); };
    });
    AddAdmin(command, &words->ranges.admin);
    CLI::Option* table =
        command->add_option("table", words->ranges.table, "The table; of another account: ACCOUNT/TABLE");
    if (run == &RunListRanges) return command;
    table->required();
    command->add_option("partition", words->ranges.partition_key, "A PartitionKey")->required();
    return command;
  };
  add("list", "The ranges of a table, or of all",
      "partita ranges list Orders --data ./store\n"
      "  partita ranges list --admin 127.0.0.1:9090",
      &RunListRanges);
  add("split", "Cut the range that holds a partition in two in front of it",
      "partita ranges split Orders m --data ./store\n"
      "  partita ranges split Orders m --admin 127.0.0.1:9090",
      &RunSplitRange);
  add("merge", "Join the range that begins with a partition to the one in front of it",
      "partita ranges merge Orders m --data ./store", &RunMergeRanges);
  CLI::App* move = add("move", "Give the range that holds a partition to another shard",
                       "partita ranges move Orders m 1 --data ./store", &RunMoveRange);
  move->add_option("shard", words->ranges.shard, "Its number, from 0")->required()->type_name("N");
}

void AddHeat(CLI::App& app, Words* words) {
  CLI::App* heat = AddCommand(
      app, "heat", "Show where the load of a running server lies, by keys and time",
      "partita heat --admin 127.0.0.1:9090 --by reads --last 1h\n"
      "  partita heat --admin 127.0.0.1:9090 --html heat.html\n"
      "  partita heat --admin 127.0.0.1:9090 --by cpu --last 1d --png heat.png\n\n"
      "Kept are 1 s for the last 5 minutes, 10 s for an hour, 1 min for a day and "
      "10 min for 14 days,\nsince the server was started (partita serve --admin). All of it is estimated "
      "from samples",
      [words] { words->run = [words](Console& c) { return RunHeat(words->store, words->heat, c); }; });
  HeatFlags& flags = words->heat;
  heat->add_option("--admin", flags.admin, "The server's admin address")->required()->type_name("ADDRESS");
  heat->add_option("--by", flags.metric, "What to show")
      ->check(CLI::IsMember({"reads", "writes", "scanned", "throttled", "bytes", "cpu"}))
      ->type_name("METRIC")
      ->capture_default_str();
  heat->add_option("--last", flags.last, "How far to go back: 90s, 5m, 1h, 14d")
      ->type_name("TIME")
      ->capture_default_str();
  heat->add_option("--table", flags.table, "Of one table only; of another account: ACCOUNT/TABLE");
  heat->add_option("--columns", flags.columns, "At most, 1 to 2048")
      ->check(CLI::Range(1, 2048))
      ->type_name("N")
      ->capture_default_str();
  heat->add_option("--rows", flags.rows, "At most, 1 to 64")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str();
  heat->add_option("--top", flags.top, "How many of the hottest partitions, 0 to 1000")
      ->check(CLI::Range(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* html =
      heat->add_option("--html", flags.html, "Write a page with all metrics to this file instead")
          ->check(NotEmpty())
          ->type_name("FILE");
  heat->add_option("--png", flags.png, "Write the picture to this file instead, as PNG")
      ->check(NotEmpty())
      ->type_name("FILE")
      ->excludes(html);
}

void AddStalls(CLI::App& app, Words* words) {
  CLI::App* stalls = AddCommand(
      app, "stalls", "Show what kept the workers of a running server for a millisecond or longer",
      "partita stalls --admin 127.0.0.1:9090\n\n"
      "Each slice of work of a shard's worker is timed, since all else that the worker serves waits for it.\n"
      "ran_ms is how long it had its core, of lasted_ms; a stall is the program's own when it ran for 1 ms,\n"
      "else the machine gave the core to others. Named are the places in the source before and after it",
      [words] {
        words->run = [words](Console& c) { return RunStalls(words->stalls, words->store.json, c); };
      });
  stalls->add_option("--admin", words->stalls.admin, "The server's admin address")
      ->required()
      ->type_name("ADDRESS");
}

}  // namespace

void AddMaintenanceCommands(CLI::App& app, Words* words) {
  AddScrub(app, words);
  AddRanges(app, words);
  AddHeat(app, words);
  AddStalls(app, words);
  AddBackupCommands(app, words);
  AddRepair(app, words);
}

}  // namespace partita
