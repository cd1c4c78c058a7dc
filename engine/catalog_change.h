#pragma once
#include <atomic>
#include <optional>

#include "engine/base/async_mutex.h"
#include "engine/base/event.h"
#include "engine/store.h"

namespace partita {

// Who waits for a turn looks so often.
inline constexpr uint64_t kTurnPollNanos = 1'000'000;

// A range on its way from one shard to another; fenced where it was.
struct Store::RangeMove {
  AsyncMutex::Guard alone;  // No other move meanwhile.
  Shard* from = nullptr;
  Shard* to = nullptr;
  std::string lower;
  Shard::HandOver hand_over;
  uint64_t pause_ns = 0;  // Once it was made.
};

// A change of the catalog on its way. Shared by who asked for it, who makes it and who watches the deadline.
struct Store::CatalogChange {
  AsyncMutex::Guard turn;  // To change the catalog.
  Catalog next;
  // What of tables it changes, when it does; of a deletion the table as it was.
  std::optional<TableDescriptor> made, dropped;
  std::vector<RangeDescriptor> reshaped;  // Ranges of one owner, with no gap, in place of what it has there.
  AsyncMutex::Guard structure;            // That owner's.
  std::optional<RangeMove> moved;

  // Of a move: set once writes of the range may go on; also when that takes long, so that each of them looks
  // to its own time.
  const std::shared_ptr<Event> fence_end = std::make_shared<Event>();
  std::atomic<bool> is_fenced{false};  // Or about to be.

  bool watched = false;                 // Has a watcher. For whoever makes the change alone.
  std::atomic<bool> is_swapped{false};  // Its swap has begun; from then on its deadline runs.

  // Under names_mutex_.
  bool decided = false;          // In force, or surely not.
  std::optional<Status> answer;  // The first one given counts.
  Event answered;
};

}  // namespace partita
