#include "api/cli/readiness.h"

#include <cmath>

namespace partita {

namespace {

// Beyond what the store follows while it is open (DESIGN 2).
constexpr double kClockAlarmSeconds = 300;

std::string NameOf(const ShardStats& shard) { return "shard " + std::to_string(shard.shard); }

std::string WhyNot(const DatabaseStats& stats) {
  if (stats.reads_overdue > 0)
    return "the disk has not answered " + std::to_string(stats.reads_overdue) + " reads of tables in time";
  for (const ShardStats& shard : stats.shards) {
    if (shard.stalled) return NameOf(shard) + " is stalled: its disk does not answer";
    if (shard.fenced) return NameOf(shard) + " is fenced after a failed write";
  }
  if (stats.catalog_in_doubt) return "how the last change of a table ended is not known yet";
  return "";
}

// The gravest of what goes on without being unready.
std::string Trouble(const DatabaseStats& stats) {
  // Taken out of service it could not be told what to delete.
  if (stats.out_of_space) return "the disk is full: only deletes are accepted";
  for (const ShardStats& shard : stats.shards) {
    if (shard.flush_error.empty()) continue;
    return NameOf(shard) +
           " cannot make tables of its writes, tries again, and takes no more when its memory " +
           "for them is full: " + shard.flush_error;
  }
  for (const ShardStats& shard : stats.shards) {
    if (shard.compaction_error.empty()) continue;
    return NameOf(shard) + " cannot merge its tables, tries again, and slows writes down as they pile up: " +
           shard.compaction_error;
  }
  for (const ShardStats& shard : stats.shards) {
    const double ahead = shard.clock_seconds_ahead;
    if (std::abs(ahead) <= kClockAlarmSeconds) continue;
    const std::string seconds = std::to_string(std::llround(std::abs(ahead))) + " s ";
    return "Timestamps of " + NameOf(shard) + " are " + seconds +
           (ahead > 0 ? "ahead of the system's clock, and go on so until it has come up to them"
                      : "behind the system's clock, which jumped: they follow it after a restart");
  }
  for (const ShardStats& shard : stats.shards) {
    if (shard.references_set_aside == 0) continue;
    return NameOf(shard) + " leaves " + std::to_string(shard.references_set_aside) +
           " damaged tables, or parts of them, out of its merges: 'partita scrub --admin' names them";
  }
  return "";
}

}  // namespace

Readiness ReadinessOf(const DatabaseStats& stats) {
  std::string why_not = WhyNot(stats);
  if (!why_not.empty()) return {false, std::move(why_not)};
  const std::string trouble = Trouble(stats);
  return {true, trouble.empty() ? "ready" : "ready, but " + trouble};
}

}  // namespace partita
