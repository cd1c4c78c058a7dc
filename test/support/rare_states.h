#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "engine/io/sim_disk.h"

namespace partita {

// States that only chance brings about, and that a simulation must have been in to mean anything.
enum class RareState : uint8_t {
  kCrashInLogWrite,       // Written and not flushed.
  kCrashAfterRotation,    // The log went on in another segment, which the manifest does not know yet.
  kCrashInTableFile,      // Amid writing one.
  kCrashBeforeReference,  // A table file is flushed, and no manifest names it.
  kCrashInManifestSwap,   // The new value is begun, and not durably in place.
  kCrashInCatalogSwap,
  kCrashInReshard,  // Manifests of the next layout are there, the catalog has the old one.
  kCrashInMove,     // While a range went to another shard.
  kCrashInRecovery,
  kCrashInRecoveryTwice,  // One after the other.
  kCrashInBackup,
  kCrashInRestore,
  kCrashInTableChange,     // While a table was made or dropped.
  kLogFailedThenWorked,    // A failed log write or flush, then one that succeeded in another file (F21).
  kLogFailedTwice,         // Another failure before that success.
  kTableFailedThenWorked,  // F22.
  kMetaFailedThenWorked,   // F23.
  kNoSpaceThenWorked,      // F54, F56.
  kStalled,                // A shard's log was not answered by the deadline (F26).
  kReadOverdue,            // A table's bytes did not come by then.
  kOpenFailedThenWorked,   // A fault during recovery, and then a recovery.
  kTornTail,               // F31, F33.
  kLeftoversRemoved,       // F37.
  kDoubtHappened,          // A write in doubt was seen to have happened.
  kDoubtLeftNothing,       // Or nothing of it was ever seen.
  kScanContinuedLater,     // In another life than it began.
  kCopyRestoredLater,
  kUnfinishedCopyRefused,
  kDamagedRange,        // Some keys answered corruption, and all else was right (F43, F48).
  kDamagedOpen,         // The store did not open, as more than table files were damaged (F39).
  kDamagedShard,        // It was opened without the damaged shards.
  kDamageRepaired,      // And lived on (F53).
  kDamageWithoutTrace,  // Lost or misplaced writes, or flipped bits, that nobody needed any more.
  kCount,
};
inline constexpr size_t kRareStateCount = static_cast<size_t>(RareState::kCount);
std::string_view RareStateName(RareState state);

// How often each was reached. A value.
class RareStates {
 public:
  void Note(RareState state, uint64_t times = 1) { counts_[static_cast<size_t>(state)] += times; }
  uint64_t count(RareState state) const { return counts_[static_cast<size_t>(state)]; }
  void Add(const RareStates& other);

 private:
  std::array<uint64_t, kRareStateCount> counts_{};
};

// Sees rare states in the disk operations of one process: product code knows nothing of it.
class DiskWatch {
 public:
  explicit DiskWatch(RareStates* states) : states_(states) {}

  // A completed operation.
  void Saw(const SimOperationRecord& operation);
  // Whether a crash now would be that one; of those that are seen in disk operations (kCrashInLogWrite to
  // kCrashInReshard).
  bool Within(RareState crash) const;
  // The process ended there: what was half done counts.
  void Crashed();

 private:
  enum class Kind : uint8_t { kOther, kLog, kTable, kManifest, kCatalog };
  // A kind of file in which something failed, until it works again.
  struct Trouble {
    bool failed = false;
    bool no_space = false;
    std::string path;  // Of what failed.
  };

  static Kind KindOf(std::string_view path);
  void SawLog(const SimOperationRecord& operation);
  void SawTable(const SimOperationRecord& operation);
  void SawMeta(const SimOperationRecord& operation, Kind kind);
  void SawTrouble(const SimOperationRecord& operation, Kind kind);

  RareStates* states_;
  std::set<std::string, std::less<>> zeroed_;                // Log segments that become ready.
  std::set<std::string, std::less<>> rotated_;               // "L-N" of shards whose manifest is behind.
  std::set<std::string, std::less<>> swapping_;              // Meta keys whose new value is begun.
  std::set<std::string, std::less<>> writing_, unreferred_;  // Table files.
  uint32_t layout_ = 0;
  bool resharding_ = false;
  bool log_written_ = false;
  std::map<Kind, Trouble> troubles_;
};

}  // namespace partita
