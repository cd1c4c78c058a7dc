#pragma once
#include "bench/load/load_loop.h"

namespace partita::bench {

// Which keys a read asks for.
enum class ReadOf : uint8_t { kExisting, kMissingRow, kMissingPartition };

// Reads random ones of the first `keys` rows, or keys beside them that no row has.
Status RunReads(ReadOf of, uint64_t keys, const LoadContext& context, Measurement* measurement);

// Scans the 100 rows of a random partition of the first `keys` rows.
Status RunScans(uint64_t keys, const LoadContext& context, Measurement* measurement);

// Scans the first `keys` rows, from the first to the last, again and again until the time is over; once
// at least.
Status RunFullScans(uint64_t keys, double seconds, const LoadContext& context, Measurement* measurement);

// Overwrites random rows.
Status RunOverwrites(DurabilityLevel level, const LoadContext& context, Measurement* measurement);

}  // namespace partita::bench
