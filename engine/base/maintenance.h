#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace partita {

// How a long task on a store's files goes on: how fast, and under whose eyes.
struct TaskPace {
  // Bytes read, and bytes written, per second on the average of the task; 0: as fast as it goes.
  uint64_t bytes_per_second = 0;
  // Called now and then, by the thread that does the work, with what is done and what there is to do in
  // bytes. False stops the task: kCancelled. Null: nobody is told.
  std::function<bool(uint64_t done, uint64_t due)> progress;
};

enum class FileSharing : uint8_t {
  // A hard link or a reflink where the file system has them: table files never change, so both sides keep
  // theirs whatever happens to the other. But they are the same blocks of the same device.
  kWherePossible,
  kNever,  // Bytes of their own.
};

struct BackupOptions {
  TaskPace pace;
  FileSharing sharing = FileSharing::kWherePossible;
  // The directory of an earlier backup of the same store: files that it has too are shared with it, or else
  // copied. Empty: none. Restoring has no use for it.
  std::string base;
};

struct ScrubOptions {
  TaskPace pace;
  // Spreads the reading over so many seconds; 0: as the pace says. With both the slower one holds.
  uint64_t period_seconds = 0;
};

struct ScrubReport {
  uint64_t tables = 0;        // Table files, whole.
  uint64_t entries = 0;       // In them.
  uint64_t log_segments = 0;  // Those in use, up to where they end.
  uint64_t meta_values = 0;   // Catalog and manifests.
  uint64_t bytes = 0;
  std::vector<std::string> damages;  // File, offset, rule; empty: clean.
};

struct BackupReport {
  uint64_t files = 0;          // Table files.
  uint64_t bytes = 0;          // Of them all.
  uint64_t bytes_shared = 0;   // Of those that are links.
  uint64_t entries = 0;        // Read back and verified.
  uint64_t created_ticks = 0;  // When the backup was taken: 100 ns since 1601-01-01 UTC.
};

}  // namespace partita
