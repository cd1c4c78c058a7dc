#include <algorithm>

#include "engine/base/checksum.h"
#include "engine/repair_survey.h"

// Whether the log of a shard whose manifest is lost is whole: the manifest said where it has to begin, and
// which segment is its newest.
//
// Its end: every opening begins a segment in each log, so one that has none of the store's last opening has
// lost it, or that opening was refused.
//
// Its beginning: a segment in front of those that are there was trimmed or is lost. It was trimmed if tables
// have as late a version as there was by then, or a record of the log: they are made in the order of the log,
// so they have all that came before. Only what the shard wrote itself, to ranges that were always its own,
// shows that: of a range that moved, another shard's tables have it as well.

namespace partita {

namespace {

uint64_t HashOfVersion(std::string_view user_key, Version version) {
  return Hash64(user_key) ^ version.value * 0x9e37'79b9'7f4a'7c15;
}

}  // namespace

void RepairSurvey::DoubtEnds() {
  Incarnation last(found_.catalog_lost ? 0 : found_.catalog.incarnation);
  for (const RepairFindings::Shard& shard : found_.shards) {
    if (!found_.catalog_lost) break;
    last = std::max({last, shard.log.incarnation_max, shard.log.tail_incarnation});
  }
  for (RepairFindings::Shard& shard : found_.shards) {
    if (!LogAlone(shard) || shard.log.incarnation_max >= last) continue;
    shard.end_doubt = "its newest segment is of opening " + std::to_string(shard.log.incarnation_max.value) +
                      " of the store, the last one was " + std::to_string(last.value) +
                      ": newer segments are missing, unless those openings failed (F35)";
  }
}

void RepairSurvey::NoteLogged(const RepairFindings::Shard& shard, const Entry& entry) {
  if (!found_.catalog_lost) {
    const RangeDescriptor* range = found_.catalog.FindRange(entry.user_key);
    if (range == nullptr || range->owner != shard.id || range->move_attempt != 0) return;
  }
  logged_[shard.id.value].insert(HashOfVersion(entry.user_key, entry.version));
}

Task<Status> RepairSurvey::NoteFlushed(const TableReader& table) {
  if (logged_.empty()) co_return Status();
  std::vector<SkippedSpan> unread;
  SpanList skipped(&unread);
  auto look = [this](const Entry& entry) {
    const uint64_t hash = HashOfVersion(entry.user_key, entry.version);
    for (RepairFindings::Shard& shard : found_.shards) {
      const auto logged = logged_.find(shard.id.value);
      if (logged == logged_.end() || !logged->second.contains(hash)) continue;
      shard.begin_flushed = true;
      logged_.erase(logged);
    }
    return Status();
  };
  co_return co_await ReadWhatThereIs(table, &skipped, std::move(look));
}

// Whether the shard wrote all of the table, or others did before it had a log.
bool RepairSurvey::IsItsOwn(const RepairFindings::Shard& shard, const TableInfo& table) const {
  for (const std::string& key : {table.smallest, table.largest}) {
    const RangeDescriptor* range = found_.catalog.FindRange(key);
    if (range == nullptr || range->owner != shard.id) return false;
  }
  const std::vector<RangeDescriptor>& ranges = found_.catalog.ranges;
  return std::none_of(ranges.begin(), ranges.end(), [&](const RangeDescriptor& range) {
    const bool above = table.largest < range.lower;
    const bool below = !range.upper.empty() && table.smallest >= range.upper;
    return !above && !below && range.move_attempt != 0;
  });
}

// As KeptTo, of a shard whose manifest is lost: by the tables that may be its own.
Version RepairSurvey::FlushedTo(const RepairFindings::Shard& shard) const {
  Version flushed_to;
  if (found_.catalog_lost || !shard.manifest_lost) return flushed_to;
  for (const auto& [id, table] : found_.tables) {
    if (table.named || table.reader == nullptr || !IsItsOwn(shard, table.reader->info())) continue;
    flushed_to = std::max(flushed_to, table.reader->info().version_max);
  }
  return flushed_to;
}

// With what is said of the lost manifest: the log itself may be sound.
void RepairSurvey::ListDoubts(const RepairFindings::Shard& shard, RepairDamage* damage) const {
  const Version flushed_to = FlushedTo(shard);
  const bool begin_in_doubt =
      !shard.log.begins_midway.empty() && !shard.begin_flushed && flushed_to < shard.log.begins_after;
  if (begin_in_doubt) damage->consequence += "; " + shard.log.begins_midway;
  if (!shard.end_doubt.empty()) damage->consequence += "; of its log " + shard.end_doubt;
  if (begin_in_doubt) {
    AddLostShard(shard, flushed_to, damage);
  } else if (!shard.end_doubt.empty()) {
    AddLostShard(shard, std::max(KeptTo(shard), flushed_to), damage);
  }
}

}  // namespace partita
