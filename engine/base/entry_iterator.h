#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/assert.h"
#include "engine/base/entry.h"
#include "engine/base/entry_run.h"
#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

class BlockPin;  // sstable/block_cache.h

enum class Direction : uint8_t { kForward, kBackward };

// A cursor over entries, in one direction fixed at creation.
//
// Forward order: user key ascending, versions of a key newest first. Backward order: user key
// *descending*, versions of a key still newest first, so that whoever merges sees the deciding
// version of each key before the older ones in both directions.
//
// Moving is a plain function: as long as the next entry lies in memory no coroutine is paid for.
// When bytes must be read it returns kNeedsIo, and the caller awaits Fetch(), after which the
// cursor stands on that entry or at the end:
//
//   IterState state = it->SeekToFirst();
//   while (true) {
//     if (state == IterState::kNeedsIo) { PARTITA_CO_TRY(co_await it->Fetch()); state = it->state(); }
//     if (state == IterState::kEnd) break;
//     ... it->entry() ...
//     state = it->Next();
//   }
//
// A source that verifies returns kCorruption from Fetch; it never skips what it could not read
// (F43, F44). Used by one thread at a time; what it reads from is pinned by its owner.
enum class IterState : uint8_t { kEntry, kEnd, kNeedsIo };

class EntryIterator {
 public:
  virtual ~EntryIterator() = default;

  // Positions at the first entry in iteration order.
  virtual IterState SeekToFirst() = 0;

  // Forward: the first entry with user key >= `user_key`. Backward: the first entry, in backward
  // order, with user key < `user_key` (so bounds are [lower, upper) in both directions).
  virtual IterState Seek(std::string_view user_key) = 0;

  // REQUIRES: state() == kEntry.
  virtual IterState Next() = 0;

  virtual IterState state() const = 0;

  // Performs the pending read. After ok, state() is kEntry, kEnd, or kNeedsIo again.
  // REQUIRES: state() == kNeedsIo.
  virtual Task<Status> Fetch() = 0;

  // Valid until the next move. REQUIRES: state() == kEntry.
  virtual const Entry& entry() const = 0;

  // What keeps the block that entry() and the run behind it lie in; null: they lie in none, as in memtables.
  // Valid until the next move. REQUIRES: state() == kEntry.
  virtual const BlockPin* pin() const { return nullptr; }

  // ---- Many entries at once, for who scans: nothing is moved and no key is built for each.

  // The entries from entry() on that lie in one block and come out of this cursor one after the other, in
  // iteration order before the key `before` (nothing: no bound). Empty when the source has none to show, as
  // memtables do not, or cannot part them from here: then entry() alone is it. Valid until the next move.
  // REQUIRES: state() == kEntry.
  virtual EntryRun Run(std::optional<std::string_view> before) const { return {}; }

  // Writes the user key of entry `i` of the run into `out`, replacing it.
  // REQUIRES: `i` lies in what Run() gave, and the cursor did not move since.
  virtual void RunKeyTo(uint32_t i, std::string* out) const { out->assign(entry().user_key); }

  // Moves to the first entry behind the run. REQUIRES: Run() gave it, not empty, since the last move.
  virtual IterState SkipRun(const EntryRun& run) {
    PARTITA_ASSERT(run.empty());  // Who shows runs can skip them.
    return Next();
  }
};

}  // namespace partita
