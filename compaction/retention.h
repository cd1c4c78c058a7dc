#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// Which versions of a key somebody may still ask for: every version above `visible`, and the newest
// at or below `visible` and each snapshot. Taken when a job begins: later readers ask at or above it.
struct RetentionPolicy {
  Version visible;
  std::vector<Version> snapshots;  // Nobody can register one yet: empty outside tests.
};

// What became of an entry. Everything but kKeep is a counted reason (F47).
enum class Fate : uint8_t {
  kKeep,
  kShadowed,          // A newer version serves every reader that this one could.
  kTombstoneDropped,  // Says "deleted" where nothing older is left to be hidden.
  kDeadTable,         // Its table was deleted.
};

// Decides entry by entry, in internal order of all inputs merged.
//
// Versions between two neighbouring points of {visible, snapshots} form a *stripe*: of each key
// and stripe only the newest is kept.
//
//   versions of a key     15   11    9    7    4    3        visible 10, snapshots 5
//   stripe               above above  10   10    5    5
//   fate                  keep keep keep  drop keep drop
//
// A tombstone goes only as the newest of the *oldest* stripe (then all older versions among the
// inputs are shadowed by it and go too), and only when `droppable` says that nothing older exists
// elsewhere. It goes on shadowing after it was dropped.
class RetentionFilter {
 public:
  // Either function may be empty: no table is dead; no tombstone is droppable.
  RetentionFilter(RetentionPolicy policy, std::function<bool(TableId)> is_dead_table,
                  std::function<bool(const Entry&)> droppable);

  // kCorruption for a key too short to hold its table, or an entry out of order.
  Result<Fate> Judge(const Entry& entry);

  // True when every entry with a key in [first, last] would be kept, given that none of them is a
  // version of the last judged key, each has another key, and no tombstone is among them.
  bool KeepsAll(std::string_view first, std::string_view last);
  // Tells the filter that all entries up to this key, its every version included, went out unjudged.
  void Passed(std::string_view last_key);

  // The key judged last; empty at first.
  std::string_view last_key() const { return last_key_; }

 private:
  static constexpr size_t kNoStripe = SIZE_MAX;

  bool IsDead(std::string_view user_key);
  size_t StripeOf(Version version) const;

  std::vector<Version> points_;  // Ascending, distinct.
  std::function<bool(TableId)> is_dead_table_;
  std::function<bool(const Entry&)> droppable_;
  std::string last_key_;
  Version last_version_;
  bool started_ = false;
  size_t served_stripe_ = kNoStripe;  // Of last_key_: the lowest stripe that has its newest version.
  std::optional<TableId> known_table_;
  bool known_dead_ = false;
};

}  // namespace partita
