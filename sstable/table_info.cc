#include "sstable/table_info.h"

namespace partita {

SharedTableInfo::SharedTableInfo() {
  static const auto kNone = std::make_shared<const TableInfo>();
  info_ = kNone;
}

void AppendTableInfo(std::string* out, const TableInfo& info) {
  AppendVarint(out, info.id.value);
  AppendVarint(out, info.file_size);
  AppendVarint(out, info.entry_count);
  AppendVarint(out, info.tombstone_count);
  AppendVarint(out, info.raw_bytes);
  AppendBytes(out, info.smallest);
  AppendBytes(out, info.largest);
  AppendVarint(out, info.version_min.value);
  AppendVarint(out, info.version_max.value);
}

TableInfo ReadTableInfo(ByteReader* reader) {
  TableInfo info;
  info.id = ObjectId(reader->ReadVarint());
  info.file_size = reader->ReadVarint();
  info.entry_count = reader->ReadVarint();
  info.tombstone_count = reader->ReadVarint();
  info.raw_bytes = reader->ReadVarint();
  info.smallest = reader->ReadBytes();
  info.largest = reader->ReadBytes();
  info.version_min = Version(reader->ReadVarint());
  info.version_max = Version(reader->ReadVarint());
  return info;
}

}  // namespace partita
