#pragma once
#include <optional>

#include "engine/base/async_mutex.h"
#include "engine/base/event.h"
#include "engine/store.h"

namespace partita {

// A change of the catalog on its way. Shared by who asked for it, who makes it and who watches the deadline.
struct Store::CatalogChange {
  AsyncMutex::Guard turn;  // To change the catalog.
  Catalog next;
  // What of tables it changes, when it does; of a deletion the table as it was.
  std::optional<TableDescriptor> made, dropped;

  // Under names_mutex_.
  bool decided = false;          // In force, or surely not.
  std::optional<Status> answer;  // The first one given counts.
  Event answered;
};

}  // namespace partita
