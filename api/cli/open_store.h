#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/cli/commands.h"
#include "api/partita.h"

namespace partita {

enum class IfNoStore : uint8_t { kFail, kCreate };

// Lets the process open as many descriptors as it may: a table file takes one, and the usual limit of 1,024
// is less than a store of 20 GiB has. Returns how many that are; 0 when it cannot be known.
uint64_t RaiseDescriptorLimit();

// Opens the store that the flags name, after RaiseDescriptorLimit; where that takes long, shows how far it
// is. What was cut off or lost at the ends of logs is told on the error stream, as it is told once (F33,
// F80). Errors say what to do about them on the command line.
Result<std::unique_ptr<Database>> OpenStore(const StoreFlags& flags, IfNoStore if_no_store, Console& console);

// For a command that writes, before it opens or reads anything: why --read-only does not go with it. kUsage.
ExitCode RefuseReadOnly(Console& console, const std::string& command);

// The account whose tables commands see.
std::string AccountOf(const StoreFlags& flags);

// What `database` does not show, and how to see it, as "2 tables of account contoso: --account contoso";
// empty: all tables of the store are this account's.
std::string TablesOfOthers(const Database& database);

// kNotFound, which names the tables there are.
Status NoSuchTable(const Database& database, const std::string& name);

// After the first table of an account was made: says so where the store has those of others, since it may
// have been meant for one of them.
void TellOfNewAccount(const Database& database, const StoreFlags& flags, Console& console);

// Opens one table; errors as NoSuchTable, and kInvalidArgument for a raw one.
Result<Table> OpenTableOf(Database& database, const std::string& name);

// Of a store that could not be opened for `command`, which knows --admin: with that as advice when somebody
// has it open.
Status AdviseAdmin(const Status& status, const std::string& command);

// How to get what is sound out of a backup that is damaged: it can be neither restored nor repaired.
std::string AdviceForDamagedBackup(const std::string& directory);

// What a server's admin address calls the table: it has those of several accounts.
std::string TableOnServer(const StoreFlags& flags, const std::string& table);

// "put", "insert", "replace", "merge" as actions; "insert-or-..." is what put and merge mean.
// kInvalidArgument names the choices.
Result<WriteAction> ParseWriteMode(std::string_view mode);

std::string_view DurabilityName(Durability durability);

// Closes the store when a command is done: its failure counts when the command itself was fine.
ExitCode CloseStore(Database& database, ExitCode so_far, Console& console);

// Opens the store, runs `command` on it, and closes it; tells what failed. `on_admin`: as AdviseAdmin's
// command; empty: it knows no --admin.
ExitCode WithStore(const StoreFlags& flags, IfNoStore if_no_store, Console& console,
                   const std::function<Status(Database&)>& command, const std::string& on_admin = "");

}  // namespace partita
