#include <algorithm>
#include <optional>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/inspect_text.h"
#include "engine/io/local_meta_store.h"
#include "engine/repair_survey.h"

// What a repair tells of its findings: each damage, what becomes of it, and which keys it may have cost.

namespace partita {

namespace {

std::string Number(uint64_t value) { return std::to_string(value); }

std::string JoinedDamages(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace

void RepairSurvey::ListDamages() {
  RepairReport& report = found_.report;
  report.shards = found_.shards.size();
  if (found_.catalog_lost) {
    RepairDamage damage{.file = "meta/catalog", .reason = catalog_damage_.ToString()};
    damage.consequence =
        "made anew from what is left: " + Number(found_.catalog.tables.size()) +
        " tables come back, whosesoever they were, as tables of account " + world_.account +
        " (RepairOptions::account, --account), under names like recovered000007, without their access "
        "policies "
        "and service properties; one that was deleted just before may be among them, one "
        "of whose entities nothing is left is not; of a range that had moved to another shard, or was about "
        "to, what had been deleted may be back";
    report.damages.push_back(std::move(damage));
  }
  for (const RepairFindings::Shard& shard : found_.shards) {
    const auto why = manifest_damages_.find(shard.id.value);
    if (why != manifest_damages_.end()) ListManifest(shard, why->second);
    if (!shard.log.damages.empty()) ListLog(shard);
    if (!shard.rotted.empty()) ListRotted(shard);
  }
  if (objects_missing_) {
    report.damages.push_back({.file = kObjectDirectory,
                              .reason = "the directory is missing (F35)",
                              .consequence = "made anew; what was in it is lost, as far as manifests name it "
                                             "with its keys"});
  }
  for (const auto& [id, table] : found_.tables) {
    if (!table.damage.ok()) ListTable(table);
  }
}

void RepairSurvey::ListManifest(const RepairFindings::Shard& shard, const Status& why) {
  RepairDamage damage{.file = "meta/" + ManifestKey(found_.catalog.layout, shard.id),
                      .shard = shard.id.value,
                      .reason = why.ToString()};
  damage.consequence =
      "the shard's table files are found again by what they hold; where a compaction was interrupted, or "
      "another range still uses a file that this shard had let go, or a range had moved away and back, what "
      "had been deleted may be back";
  if (objects_missing_) AddLostShard(shard, Version(), &damage);
  ListDoubts(shard, &damage);
  found_.report.damages.push_back(std::move(damage));
}

void RepairSurvey::ListLog(const RepairFindings::Shard& shard) {
  const SalvagedLog& log = shard.log;
  RepairDamage damage{.file = LogDirectory(found_.catalog.layout, shard.id),
                      .shard = shard.id.value,
                      .reason = JoinedDamages(log.damages)};
  if (!log.lost) {
    damage.consequence = "nothing of it is needed or lost: " + Number(log.records) + " records are kept";
    found_.report.damages.push_back(std::move(damage));
    return;
  }
  damage.consequence = "the " + Number(log.records) + " records in front of the damage are kept";
  damage.consequence += log.lost_to > log.last
                            ? "; what the shard wrote after them is lost, up to position " +
                                  Number(log.lost_to.value) + " at least"
                            : "; whatever the shard wrote after them is lost";
  AddLostShard(shard, std::max(KeptTo(shard), FlushedTo(shard)), &damage);
  found_.report.damages.push_back(std::move(damage));
}

void RepairSurvey::ListRotted(const RepairFindings::Shard& shard) {
  RepairDamage damage{.file = LogDirectory(found_.catalog.layout, shard.id),
                      .shard = shard.id.value,
                      .reason = shard.rotted.front().why.ToString()};
  damage.consequence =
      Number(shard.rotted.size()) + " such values are left out; what they replaced may be back";
  for (const SkippedSpan& span : shard.rotted) {
    AddLost(span.lower, span.upper, Version(), &damage);
    if (found_.catalog_lost) AddLostNameless(span.lower, span.upper, &damage);
  }
  found_.report.damages.push_back(std::move(damage));
}

void RepairSurvey::ListTable(const RepairFindings::Table& table) {
  RepairDamage damage{.file = ObjectPath(table.id), .reason = table.damage.ToString()};
  if (!table.named && table.reader == nullptr) {
    damage.consequence = "set aside: it was of a shard whose manifest is lost, or never finished";
    for (const RepairFindings::Shard& shard : found_.shards) {
      if (shard.manifest_lost) AddLostShard(shard, Version(), &damage);
    }
    found_.report.damages.push_back(std::move(damage));
    return;
  }
  if (table.reader != nullptr) {
    damage.consequence = "written anew with the " + Number(table.entries) + " entries that can be read, of " +
                         Number(table.reader->info().entry_count);
    for (const SkippedSpan& span : table.lost) {
      AddLost(span.lower, span.upper, Version(), &damage);
      if (found_.catalog_lost) AddLostNameless(span.lower, span.upper, &damage);
    }
    found_.report.damages.push_back(std::move(damage));
    return;
  }
  damage.consequence = table.replaced ? "lost: another file is in its place" : "lost: it does not open";
  for (const RepairFindings::Shard& shard : found_.shards) {
    for (const FileMeta& file : shard.named) {
      if (file.info->id != table.id) continue;
      damage.shard = shard.id.value;
      std::string lower = file.info->smallest, upper = file.info->largest + '\0';
      // The rest of it may be, by a move or a change of layout, of a shard that does not say so any more.
      if (!found_.any_manifest_lost()) {
        lower = std::max(lower, file.lower);
        if (!file.upper.empty()) upper = std::min(upper, file.upper);
      }
      AddLost(lower, upper, Version(), &damage);
      if (found_.catalog_lost) AddLostNameless(lower, upper, &damage);
    }
  }
  found_.report.damages.push_back(std::move(damage));
}

// Of every version at or below it what the shard wrote is kept: logs are flushed in order, and a shard writes
// with rising versions.
Version RepairSurvey::KeptTo(const RepairFindings::Shard& shard) const {
  Version kept_to = shard.log.version_last;
  for (const FileMeta& file : shard.manifest.files) {
    const RangeDescriptor* range = found_.catalog.FindRange(std::max(file.lower, file.info->smallest));
    const bool its_own = found_.catalog_lost || (range != nullptr && range->move_attempt == 0);
    if (its_own) kept_to = std::max(kept_to, file.info->version_max);
  }
  return kept_to;
}

// What moved to a shard was written elsewhere: what came of it into the log has older versions than the
// shard's own, so of a range that came all may be lost.
void RepairSurvey::AddLostShard(const RepairFindings::Shard& shard, Version kept_to,
                                RepairDamage* damage) const {
  for (const RangeDescriptor& range : found_.catalog.ranges) {
    // Whose the ranges were, a lost catalog does not say any more.
    if (!found_.catalog_lost && range.owner != shard.id) continue;
    const bool came = found_.catalog_lost ? found_.catalog.shard_count > 1 : range.move_attempt != 0;
    AddLost(range.lower, range.upper, came ? Version() : kept_to, damage);
  }
}

void RepairSurvey::AddLost(std::string_view lower, std::string_view upper, Version after,
                           RepairDamage* damage) const {
  for (const TablePtr& table : found_.catalog.tables)
    AddLostOf(table->id, table->name, lower, upper, after, damage);
}

// Tables of the first and the last key, when nothing else is left of them.
void RepairSurvey::AddLostNameless(const std::string& lower, const std::string& upper,
                                   RepairDamage* damage) const {
  std::optional<TableId> listed;
  for (const std::string& key : {lower, upper}) {
    if (key.size() < kTableIdSize) continue;
    const TableId id(LoadBe32(key.data()));
    if (listed == id || found_.catalog.FindTable(id) != nullptr) continue;
    AddLostOf(id, "table " + Number(id.value), lower, upper, Version(), damage);
    listed = id;
  }
}

void RepairSurvey::AddLostOf(TableId id, const std::string& name, std::string_view lower,
                             std::string_view upper, Version after, RepairDamage* damage) {
  RepairLostRange range;
  range.lower = std::max(TableLowerBound(id), std::string(lower));
  range.upper = NearerEnd(TableUpperBound(id), upper);
  if (!range.upper.empty() && range.lower >= range.upper) return;
  range.table = name;
  range.after_ticks = after.value;
  const bool whole = range.lower == TableLowerBound(id) && range.upper == TableUpperBound(id);
  range.text = whole ? "all of it" : UserKeyText(range.lower) + " up to " + UserKeyText(range.upper);
  damage->lost.push_back(std::move(range));
}

}  // namespace partita
