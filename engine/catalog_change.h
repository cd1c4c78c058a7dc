#pragma once
#include <atomic>
#include <optional>

#include "engine/base/async_mutex.h"
#include "engine/base/event.h"
#include "engine/store.h"

namespace partita {

// Who waits for a turn looks so often.
inline constexpr uint64_t kTurnPollNanos = 1'000'000;

// How far a change is on its way. Of a move alone: until the fence, and from there to the swap.
enum class Store::ChangeStep : uint8_t { kPreparing, kFenced, kSwapped };

// A range on its way from one shard to another; fenced where it was.
struct Store::RangeMove {
  AsyncMutex::Guard alone;  // No other move meanwhile.
  Shard* from = nullptr;
  Shard* to = nullptr;
  std::string lower;
  LogPosition replay_from;  // The new owner's; what it had of the range before lies in front.
  Shard::HandOver hand_over;
  MoveReport report;
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
  WriteHold::Guard hold;  // Of changes of ranges, until they are in force.

  // Of a move: set once writes of the range may go on; also when that takes long, so that each of them looks
  // to its own time.
  const std::shared_ptr<Event> fence_end = std::make_shared<Event>();

  // Begun, or about to be; written under names_mutex_, and not any more once there is an answer.
  std::atomic<ChangeStep> step{ChangeStep::kPreparing};

  // Under names_mutex_.
  bool decided = false;          // In force, or surely not.
  std::optional<Status> answer;  // The first one given counts.
  Event answered;
};

}  // namespace partita
