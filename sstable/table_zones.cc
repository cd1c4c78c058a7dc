#include "sstable/table_zones.h"

#include <algorithm>

#include "sstable/index_record.h"

namespace partita {

namespace {

PropertyZone Known(const Zone& zone) {
  return {.known = true,
          .absent = zone.absent,
          .types = zone.types,
          .least = zone.least,
          .greatest = zone.greatest};
}

}  // namespace

TableZones::TableZones(const BlockPredicate& predicate, const TableProperties& properties)
    : predicate_(predicate), properties_(properties), zones_(predicate.properties().size()) {
  const std::vector<std::string>& names = properties.zone_properties;
  for (const std::string& wanted : predicate.properties()) {
    const auto found = std::lower_bound(names.begin(), names.end(), wanted);
    const bool kept = found != names.end() && *found == wanted;
    numbers_.push_back(kept ? static_cast<int>(found - names.begin()) : kNotKept);
  }
}

bool TableZones::FileMayMatch() {
  const TableInfo& info = properties_.info;
  if (info.tombstone_count == info.entry_count) return false;
  for (size_t i = 0; i < zones_.size(); ++i) {
    zones_[i] = PropertyZone();
    for (const Zone& zone : properties_.zones.zones) {
      if (zone.property == numbers_[i]) zones_[i] = Known(zone);
    }
  }
  return predicate_.MayMatch({info.version_min, info.version_max, zones_});
}

bool TableZones::BlockMayMatch(std::string_view index_record) {
  const ZoneMapView map = IndexRecordZoneView(index_record);
  if (!map.valid()) return true;
  if (map.tombstones() == IndexRecordEntryCount(index_record)) return false;
  for (size_t i = 0; i < zones_.size(); ++i) {
    Zone zone;
    const bool known = numbers_[i] != kNotKept && map.Find(static_cast<uint8_t>(numbers_[i]), &zone);
    zones_[i] = known ? Known(zone) : PropertyZone();
  }
  return predicate_.MayMatch({map.version_min(), map.version_max(), zones_});
}

Version TableZones::BlockVersionMax(std::string_view index_record) {
  return IndexRecordZoneView(index_record).version_max();
}

}  // namespace partita
