#include "sstable/properties.h"

#include "engine/base/heap_bytes.h"

namespace partita {

void AppendProperties(std::string* out, const TableProperties& p) {
  AppendTableInfo(out, p.info);
  AppendVarint(out, p.key_count);
  AppendVarint(out, p.partition_count);
  AppendVarint(out, p.data_blocks);
  AppendVarint(out, p.index_blocks);
  AppendVarint(out, p.data_bytes);
  AppendVarint(out, p.padding_bytes);
  out->push_back(static_cast<char>(p.codec));
  out->push_back(static_cast<char>(p.level + 128));
  AppendVarint(out, p.zone_properties.size());
  for (const std::string& name : p.zone_properties) AppendBytes(out, name);
  AppendZoneMap(out, p.zones);
}

size_t TableProperties::memory_bytes() const {
  size_t bytes = HeapBytes(info.smallest) + HeapBytes(info.largest) + HeapBytes(zones.zones);
  bytes += HeapBytes(zone_properties);
  for (const std::string& name : zone_properties) bytes += HeapBytes(name);
  return bytes;
}

Result<TableProperties> DecodeProperties(std::string_view content) {
  ByteReader reader(content);
  TableProperties p;
  p.info = ReadTableInfo(&reader);
  p.key_count = reader.ReadVarint();
  p.partition_count = reader.ReadVarint();
  p.data_blocks = reader.ReadVarint();
  p.index_blocks = reader.ReadVarint();
  p.data_bytes = reader.ReadVarint();
  p.padding_bytes = reader.ReadVarint();
  p.codec = reader.ReadU8();
  p.level = static_cast<int>(reader.ReadU8()) - 128;
  const uint64_t names = reader.ReadVarint();
  if (names > kZonePropertiesMax) return Status::Corruption("properties with too many zone properties");
  for (uint64_t i = 0; i < names && reader.ok(); ++i) p.zone_properties.emplace_back(reader.ReadBytes());
  p.zones = ReadZoneMap(&reader);
  if (!reader.AtCleanEnd()) return Status::Corruption("properties that do not parse");
  for (const Zone& zone : p.zones.zones) {
    if (zone.property >= p.zone_properties.size()) return Status::Corruption("a zone of an unnamed property");
  }
  return p;
}

}  // namespace partita
