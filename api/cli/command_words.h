#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/cli/commands.h"

// What the files of the command line share (command_line*.cc): the only ones that know CLI11.
namespace partita {

// All flags of all commands, filled by CLI11, and the command that was chosen.
struct Words {
  StoreFlags store;
  std::string memory = "1G", durability, io = "uring";
  std::optional<uint32_t> shards;
  ImportFlags import;
  ExportFlags export_;
  KeyFlags key;
  RangesFlags ranges;
  HeatFlags heat;
  StallsFlags stalls;
  ScanFlags scan;
  QueryFlags query;
  PutFlags put;
  CreateTableFlags create_table;
  std::string delete_table;
  InspectFlags inspect;
  ScrubFlags scrub;
  BackupFlags backup;
  RepairFlags repair;
  std::string rate;  // Of long tasks, per second.
  DemoFlags demo;
  ServeFlags serve;
  SasFlags sas;
  std::function<ExitCode(Console&)> run;
};

CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example, std::function<void()> chosen);

// For what would do more if it were not there: a variable of a script that is not set is no choice.
CLI::Validator NotEmpty();

// Of the commands that `app` has, chosen or not.
std::vector<std::string> CommandNamesOf(const CLI::App& app);
// Prints what the parser threw: help, or what is wrong with the words, with advice.
ExitCode Explain(CLI::App& app, const CLI::ParseError& error, Console& console);

// serve, sas.
void AddServiceCommands(CLI::App& app, Words* words);
// scrub, backup, restore, repair, ranges, heat, stalls.
void AddMaintenanceCommands(CLI::App& app, Words* words);

}  // namespace partita
