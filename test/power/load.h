#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "engine/base/io_backend.h"
#include "engine/store.h"
#include "test/power/virtual_disk.h"

namespace partita {

// What is written while the disk records, and what the writing process says about it.
//
// Four writers, two in each of two tables, one of them at level power, the other at level process.
// Transaction n of a writer (n = 1, 2, ...) is an atomic batch in its own partition: it sets "count" and
// "copy" to n, inserts "row<n>" and deletes "row<n - kRowsKept>". So n alone says what the partition holds,
// and any state that is not exactly one of those is a torn batch. Beside them a keeper makes and drops small
// tables, flushes memtables, compacts, asks for barriers, and makes a backup or two.
inline constexpr uint32_t kWriters = 4;
inline constexpr uint32_t kRowsKept = 24;
inline constexpr const char* kLoadAccount = "power";

constexpr uint32_t TableOfWriter(uint32_t writer) { return writer / 2; }
constexpr bool IsPowerWriter(uint32_t writer) { return writer % 2 == 0; }
std::string LoadTableName(uint32_t table);
std::string KeeperTableName(uint32_t number);
std::string PartitionOf(uint32_t writer);
// The file beside the store that takes all space at times.
std::string BallastOf(const std::string& directory);
// A backup that the keeper makes, beside the store.
std::string BackupOf(const std::string& directory, uint32_t number);
std::string RowName(uint32_t n);
// The content that "row<n>" has, and "count" and "copy" after it.
std::string RowContent(uint32_t writer, uint32_t n);

// What the writing process says, in a pipe, in the order things happened to it.
struct Note {
  enum class Kind : uint32_t {
    kFound,  // The store was opened and holds what transaction `number` of `writer` left.
    kBegun,  // Transaction `number` of `writer` is about to be asked for.
    kAcknowledged,
    kBarrierBegun,  // Everything acknowledged in notes before it is at level power ...
    kBarrierDone,   // ... once this is said.
    kCreateBegun,   // Table `number` of the keeper.
    kCreateDone,
    kDropBegun,
    kDropDone,
    kBackupBegun,  // Number `number` of the keeper.
    kBackupDone,
    kRefused,  // An operation failed, as it may when the disk fails.
    kGivenUp,  // So often that nothing more is tried: a file system that gave up its journal, mostly.
  };
  Kind kind = Kind::kFound;
  uint32_t writer = 0;
  uint32_t number = 0;
  uint64_t entries = 0;  // What the disk had recorded then, or a little before it.
};

// One process at work.
struct LoadPlan {
  std::string directory;
  IoBackend backend = IoBackend::kUring;
  uint32_t shards = 1;
  uint64_t seed = 1;
  uint32_t life = 0;           // How many processes worked there before.
  bool disk_may_fail = false;  // Calls may fail, and are repeated for a while.
  bool fill_disk = false;      // Time and again the keeper takes all space, and gives it back.
  LogDefect planted = LogDefect::kNone;
  // From the notes of earlier processes: each writer finds at least so much, at most so much.
  std::array<uint32_t, kWriters> found_min{}, found_max{};
};

StoreOptions LoadStoreOptions(const LoadPlan& plan);

// Opens the store and writes until *stop, then closes. Called in a child process, which ends.
// Exit codes: 0; 3: the store does not open; 4: what it holds is wrong (printed); 5: a call failed.
[[noreturn]] void RunLoad(const LoadPlan& plan, const VirtualDisk& disk, int notes,
                          const std::atomic<bool>* stop);

// The state of a writer's partition as a store has it. `number` 0: empty. `error` is empty if it is exactly
// what transaction `number` leaves.
struct PartitionState {
  uint32_t number = 0;
  std::string error;
  bool refused = false;  // The error is the store's answer.
};
PartitionState ReadPartition(Store& store, uint32_t writer);

}  // namespace partita
