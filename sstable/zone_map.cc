#include "sstable/zone_map.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/stored_value.h"

namespace partita {

void AppendZoneMap(std::string* out, const ZoneMap& map) {
  PARTITA_ASSERT(map.zones.size() <= kZonePropertiesMax);
  AppendLe64(out, map.version_min.value);
  AppendLe64(out, map.version_max.value);
  AppendLe32(out, map.tombstones);
  out->push_back(static_cast<char>(map.zones.size()));
  for (const Zone& zone : map.zones) {
    out->push_back(static_cast<char>(zone.property));
    out->push_back(zone.absent ? 1 : 0);
    AppendLe16(out, zone.types);
    AppendLe64(out, zone.least);
    AppendLe64(out, zone.greatest);
  }
}

ZoneMap ReadZoneMap(ByteReader* reader) {
  ZoneMap map;
  map.version_min = Version(reader->ReadLe64());
  map.version_max = Version(reader->ReadLe64());
  map.tombstones = reader->ReadLe32();
  size_t count = reader->ReadU8();
  for (size_t i = 0; i < count && reader->ok(); ++i) {
    Zone zone;
    zone.property = reader->ReadU8();
    zone.absent = reader->ReadU8() != 0;
    zone.types = reader->ReadLe16();
    zone.least = reader->ReadLe64();
    zone.greatest = reader->ReadLe64();
    map.zones.push_back(zone);
  }
  return map;
}

bool ZoneMapView::Find(uint8_t property, Zone* zone) const {
  const char* zones = bytes_.data() + kZoneMapHeaderSize;
  // The builder writes a zone for every property, in order.
  size_t at = property;
  if (at >= size() || static_cast<uint8_t>(zones[kZoneSize * at]) != property) {
    for (at = 0; at < size() && static_cast<uint8_t>(zones[kZoneSize * at]) != property;) ++at;
    if (at == size()) return false;
  }
  const char* from = zones + kZoneSize * at;
  zone->property = property;
  zone->absent = from[1] != 0;
  zone->types = LoadLe16(from + 2);
  zone->least = LoadLe64(from + 4);
  zone->greatest = LoadLe64(from + 12);
  return true;
}

void ZoneMapBuilder::Add(const Entry& entry) {
  ZoneMap& map = block_.map;
  if (block_entry_count_++ == 0) {
    map.version_min = map.version_max = entry.version;
  } else {
    map.version_min = std::min(map.version_min, entry.version);
    map.version_max = std::max(map.version_max, entry.version);
  }
  if (entry.kind == EntryKind::kTombstone) {
    ++map.tombstones;
    return;
  }
  ++block_.puts;
  ++put_number_;
  if (!extractor_ || entry.value.size() < kStoredValueHeaderSize) return;
  next_guess_ = 0;
  extractor_(StoredValueContent(entry.value), *this);
}

ZoneMapBuilder::Candidate* ZoneMapBuilder::FindCandidate(std::string_view property) {
  if (next_guess_ < candidates_.size() && candidates_[next_guess_].name == property) {
    return &candidates_[next_guess_++];
  }
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].name != property) continue;
    next_guess_ = i + 1;
    return &candidates_[i];
  }
  // A name that was never seen is absent from all blocks before, which is what they say of it.
  // After training it is too late: a name dropped earlier may come back.
  if (trained_ || candidates_.size() == kZoneCandidatesMax) return nullptr;
  candidates_.emplace_back();
  candidates_.back().name = property;
  next_guess_ = candidates_.size();
  return &candidates_.back();
}

void ZoneMapBuilder::Add(std::string_view property, uint8_t type, uint64_t code) {
  PARTITA_ASSERT(type < 16);
  Candidate* candidate = FindCandidate(property);
  if (candidate == nullptr || !candidate->kept) return;
  if (candidate->last_entry != put_number_) {
    candidate->last_entry = put_number_;
    ++candidate->entries;
    ++candidate->block_entries;
  }
  Zone& zone = candidate->zone;
  if (zone.types == 0) {
    zone.least = zone.greatest = code;
  } else {
    zone.least = std::min(zone.least, code);
    zone.greatest = std::max(zone.greatest, code);
  }
  zone.types |= static_cast<uint16_t>(1u << type);
}

void ZoneMapBuilder::FinishBlock() {
  for (uint32_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    if (candidate.block_entries == 0) continue;
    candidate.zone.absent = candidate.block_entries < block_.puts;
    block_.present.push_back({i, candidate.zone});
    candidate.zone = Zone();
    candidate.block_entries = 0;
  }
  blocks_.push_back(std::move(block_));
  block_ = BlockZones();
  block_entry_count_ = 0;
  if (trained_ || blocks_.size() < kZoneTrainingBlocks) return;
  trained_ = true;
  const std::vector<uint32_t> chosen = MostFrequent();
  for (Candidate& candidate : candidates_) candidate.kept = false;
  for (uint32_t i : chosen) candidates_[i].kept = true;
}

std::vector<uint32_t> ZoneMapBuilder::MostFrequent() const {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].kept) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    uint64_t entries_a = candidates_[a].entries, entries_b = candidates_[b].entries;
    return entries_a != entries_b ? entries_a > entries_b : a < b;
  });
  if (order.size() > kZonePropertiesMax) order.resize(kZonePropertiesMax);
  return order;
}

ZoneMapBuilder::Output ZoneMapBuilder::Finish() {
  PARTITA_ASSERT(block_entry_count_ == 0);
  Output out;
  std::vector<uint32_t> chosen = MostFrequent();
  std::sort(chosen.begin(), chosen.end(),
            [&](uint32_t a, uint32_t b) { return candidates_[a].name < candidates_[b].name; });
  std::vector<int> number(candidates_.size(), -1);
  for (size_t n = 0; n < chosen.size(); ++n) {
    number[chosen[n]] = static_cast<int>(n);
    out.properties.push_back(candidates_[chosen[n]].name);
  }

  std::vector<Zone> whole(chosen.size());
  for (BlockZones& block : blocks_) {
    std::vector<Zone> zones(chosen.size());
    for (Zone& zone : zones) zone.absent = block.puts > 0;  // Until `present` says otherwise.
    for (const BlockZone& present : block.present) {
      if (number[present.candidate] >= 0)
        zones[static_cast<size_t>(number[present.candidate])] = present.zone;
    }
    for (size_t n = 0; n < zones.size(); ++n) {
      zones[n].property = whole[n].property = static_cast<uint8_t>(n);
      whole[n].absent |= zones[n].absent;
      if (zones[n].types == 0) continue;
      whole[n].least = whole[n].types == 0 ? zones[n].least : std::min(whole[n].least, zones[n].least);
      whole[n].greatest =
          whole[n].types == 0 ? zones[n].greatest : std::max(whole[n].greatest, zones[n].greatest);
      whole[n].types |= zones[n].types;
    }
    block.map.zones = std::move(zones);
    ZoneMap& file = out.file;
    file.version_min =
        out.blocks.empty() ? block.map.version_min : std::min(file.version_min, block.map.version_min);
    file.version_max =
        out.blocks.empty() ? block.map.version_max : std::max(file.version_max, block.map.version_max);
    file.tombstones += block.map.tombstones;
    out.blocks.push_back(std::move(block.map));
  }
  out.file.zones = std::move(whole);
  return out;
}

}  // namespace partita
