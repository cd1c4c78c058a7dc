#pragma once
#include "bench/load/load_loop.h"

namespace partita::bench {

// Deletes the first 100,000 rows (half of all, where there are fewer), partition by partition, and then
// seeks the first row twenty times. Only the seeks count as operations, and only they are timed.
Status RunDeleteThenSeek(const LoadContext& context, Measurement* measurement);

// Drops the table with all its rows: one operation, over when the call has returned.
Status RunDrop(const LoadContext& context, Measurement* measurement);

}  // namespace partita::bench
