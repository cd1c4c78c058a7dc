#pragma once
#include "api/database_impl.h"

namespace partita {

struct Table::State : TableCore {
  explicit State(TableCore core) : TableCore(std::move(core)) {}
};

struct RawTable::State : TableCore {
  explicit State(TableCore core) : TableCore(std::move(core)) {}
};

Task<Status> WaitForCalls(Database::Impl* impl);

WriteResult ResultOf(WriteOutcome outcome);
// Of a write that the engine was not asked for.
WriteResult Refused(Status status, size_t operation = 0);

}  // namespace partita
