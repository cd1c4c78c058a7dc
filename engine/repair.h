#pragma once
#include <string>

#include "engine/base/clock.h"
#include "engine/base/io_backend.h"
#include "engine/base/maintenance.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/file.h"
#include "sstable/zone_map.h"

namespace partita {

// Repairs of stores that are damaged (F53): lists first, and keeps the old bytes.
//
// What is found (repair_survey.h) and what becomes of it:
//
//   a log         its dense prefix is kept, from where the tables end up to the damage (wal/log_salvage.h);
//                 what its shard wrote behind that is lost, and of the prefix what fails its checksum (F51)
//   a table file  one that opens keeps every entry that can be read; of the blocks that cannot, the keys are
//                 lost. One that does not open, or is another than its manifest names, is lost, with the
//                 keys that its manifest says it had
//   a manifest    the shard's table files are found again by what is in them, among all that no other shard
//                 has. Where a compaction was interrupted, another range still uses a file that this shard
//                 had let go, or a range had moved away and back, what had been deleted may be back. Of the
//                 log all that runs without a gap up to its end is kept; where nothing shows that it is whole
//                 (repair_doubts.cc), what may be missing is listed as lost. One that is older than its log
//                 is as good as lost
//   the catalog   is made anew from the manifests and the keys in tables and logs. Tables that have entities
//                 come back under names like "recovered000007" (their id), in the account that is asked for,
//                 without what faces kept beside them (access policies, service properties).
//                 Of a range that had moved, or was about to, what had been deleted may be back: whose its
//                 files were by then, and which log counts, the catalog said. One of another store than the
//                 manifests, or without them the logs, is as good as lost
//
// What is found is told before anything is written, and until the commit the watcher of options.pace can stop
// it. Applying it writes a new layout, as a store that is opened with another number of shards does
// (store_open.cc), in this order, each step durable before the next:
//
//   1. New table files: what the logs hold, and what could be read of damaged or lost tables; each read back.
//      No manifest names them yet, so a crash leaves them as leftovers (F37).
//   2. A copy (a link where the file system has them) of every file that the new store does not name, in the
//      directory damaged-TIME of the store: catalog, manifests, logs, tables; with a list of what was found.
//   3. Manifests of the new layout. Their version ceilings are above everything seen, lost or not, above the
//      wall clock, and above what a lease in the lost part may have allowed, so no ETag is given twice (F17).
//   4. The catalog is swapped: the commit. Before it the store is the old one, byte for byte; after it the
//      new one. The next opening removes the old layout's files, of which step 2 has kept the bytes.
//
// Killed anywhere, it can be run again. Nothing else may use the store meanwhile, but for other listings.

struct RepairWorld {
  FileSystem& files;
  Clock& clock;
  uint64_t random = 0;  // Any number.
  std::string account;  // Whose the tables are whose catalog is lost.
  ZoneExtractor zones;  // As StoreOptions::zones.
};

// Everything outlives the task. kNotFound: there is no store. kInvalidArgument: to be applied to a backup,
// which is not repaired but made again. kLocked: it is in use. kUnsupported: a newer version wrote it.
// kResourceExhausted, kNoSpace, kIoError, kCancelled: nothing was changed, but for leftovers and an
// unfinished directory of step 2. kUnknown: a swap failed midway, maybe that of step 4: it is
// the old store or the new one.
Task<Result<RepairReport>> RepairStore(RepairWorld world, RepairOptions options);

// The same for a real directory. Blocks.
Result<RepairReport> RepairStoreIn(const std::string& directory, std::string account, ZoneExtractor zones,
                                   const RepairOptions& options);

}  // namespace partita
