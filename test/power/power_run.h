#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "test/power/ledger.h"
#include "test/power/mounted_disk.h"

namespace partita {

struct PowerOptions {
  FileSystemKind file_system = FileSystemKind::kExt4;
  uint64_t images = 300;
  uint64_t seed = 1;
  bool disk_fails = false;  // EIO on writes and flushes while recording.
  bool reads_fail = false;  // EIO on reads, while recording and while an image is looked at a first time.
  bool disk_fills = false;  // The file system is full time and again while recording.
  LogDefect planted = LogDefect::kNone;
  std::string directory;  // Empty; for mount points.
  std::string keep;       // Where a failing image is kept.
};

struct PowerTotals {
  uint64_t images = 0;
  uint64_t second_cuts = 0;  // Of the images: power lost again during recovery.
  uint64_t recordings = 0, entries = 0, flushes = 0, bytes = 0;
  uint64_t transactions = 0;  // Acknowledged while recording.
  uint64_t backups = 0;       // Made meanwhile,
  uint64_t restored = 0;      // and restored from images.
  uint64_t kills = 0;
  uint64_t refused = 0;        // Calls that failed on a failing or full disk.
  uint64_t reads_refused = 0;  // Of them: openings, reads and checks of images on a disk whose reads fail.
  uint64_t given_up = 0;       // Loads that gave up on a disk that failed for good, which they may.
  uint64_t failures = 0;
  void Add(const PowerTotals& other);
};

// Records loads on a file system and looks at what losses of power at drawn moments leave of them.
//
// A load is nondeterministic (real threads), so a seed does not repeat a recording. What fails is kept
// instead, as it was: Replay looks at it again, bit by bit the same.
class PowerRun {
 public:
  // kUnsupported: what this needs is forbidden or missing here; the message says what.
  static Result<std::unique_ptr<PowerRun>> Start(const PowerOptions& options);

  // Ends early at the first failure, which is printed.
  Status Run(PowerTotals* totals);

  // Looks at the image kept in `directory` again. Ok: it is sound.
  Status Replay(const std::string& directory);

 private:
  PowerRun(const PowerOptions& options, std::unique_ptr<MountedDisk> mounted)
      : options_(options), mounted_(std::move(mounted)) {}
  Status Record(uint64_t seed, Ledger* ledger, PowerTotals* totals);
  Status LoadOnce(const LoadPlan& plan, uint64_t notes_max, bool kill_it, Ledger* ledger);
  Status CheckImages(uint64_t seed, uint64_t first_cut, uint64_t count, const Ledger& ledger,
                     PowerTotals* totals);
  Status CheckShown(uint64_t cut, uint64_t seed, const Ledger& ledger, PowerTotals* totals);
  Status CheckWithFailingReads(const LoadPlan& plan, uint64_t cut, uint64_t seed, const Ledger& ledger,
                               PowerTotals* totals);
  Status Failed(const Status& failure, uint64_t cut, uint64_t seed, const Ledger& ledger);

  const PowerOptions options_;
  std::unique_ptr<MountedDisk> mounted_;
  uint64_t first_cut_ = 0;  // Of the present recording: from here on the file system is mounted.
};

}  // namespace partita
