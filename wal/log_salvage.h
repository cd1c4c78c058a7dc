#pragma once
#include <string>
#include <vector>

#include "engine/base/log_store.h"
#include "engine/io/file.h"
#include "wal/local_log_store.h"

namespace partita {

// What a damaged log still holds: for repairs (F53). Nothing is changed on disk, but for flushes (F29).
//
//  1. A log that recovery can read is read as recovery does, and nothing is lost.
//  2. Else the chain of segments is walked from the oldest one that may count, as far as positions run
//     without a gap from `from` on: the *dense prefix*, which is what F12 allows a shard to be. What a
//     later segment begins with again is void in the earlier ones. Where it ends, the tail may go on.
//  3. Damage that lies wholly in front of `from` loses nothing: the walk goes on at a later frame that
//     begins at or before `from`. A segment whose header is bad but whose first frame is good says in that
//     frame what the header said. Where a segment is missing, the next older one stands in. When `from` is 0,
//     either counts only if it reaches to where its successor begins, for what lies further back is of no
//     dense log; so must each in front of it.
//  4. What follows the prefix is not delivered, only looked at: for the versions in it, above which the
//     clock must go on, and for how far the log is known to have reached. What any frame says was flushed
//     behind the prefix is lost, however well the prefix ends.
//  5. The newest segment may have been cut: what it held behind its last good frame is lost, unless that
//     frame closed the log.
struct SalvagedLog {
  LogPosition first;  // Delivered; 0: none.
  LogPosition last;
  uint64_t records = 0;
  Version version_last;          // Of the last record delivered.
  Version version_max;           // Of anything in the log, leased ceilings and what is lost included (F18).
  Incarnation incarnation_max;   // Of segments.
  Incarnation tail_incarnation;  // 0: the tail has no records.
  std::vector<std::string> damages;  // File, offset, rule; empty: sound, and nothing is lost.
  // Records at or above `from` are missing behind `last`, or may be.
  bool lost = false;
  LogPosition lost_to;  // The log is known to have reached it; 0: not known.
  // All that is left of the log lies behind `from`: this is the first segment of it. 0: not so.
  SegmentId begins_behind;
  // In words, when `from` was 0: a segment in front of all that are read is not there. It was trimmed, or it
  // is lost; only who knows what tables have can tell. Empty: nothing was in front.
  std::string begins_midway;
  Version begins_after;  // Then: no version above it was exposed before.
};

// Reads the log `options` names, from `from` on (0: all it holds), and calls `sink` with each record of the
// dense prefix; a sink that answers kCorruption or kIoError ends the prefix in front of that record, another
// error of it ends the call. `options.read_only` is taken for set and `options.incarnation` is not looked at.
// A log that is absent is empty, and damage when it must exist.
Task<Result<SalvagedLog>> SalvageLog(FileSystem& files, LocalLogOptions options, LogPosition from,
                                     LogReplaySink sink);

}  // namespace partita
