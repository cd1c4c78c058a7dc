#include "sstable/index_record.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita {

void AppendIndexRecord(std::string* out, const PartHandle& handle, uint32_t entry_count) {
  AppendLe64(out, handle.offset);
  AppendLe32(out, handle.stored_size);
  AppendLe32(out, handle.content_size);
  AppendLe32(out, entry_count);
}

bool ValidIndexRecord(std::string_view record, const PartBounds& bounds) {
  if (record.size() < kIndexRecordHeaderSize) return false;
  const PartHandle handle = IndexRecordHandle(record);
  return handle.stored_size >= kPartHeaderSize && handle.stored_size <= bounds.end &&
         handle.offset >= bounds.begin && handle.offset <= bounds.end - handle.stored_size &&
         handle.content_size > 0 && handle.content_size <= kPartContentMax;
}

Result<ZoneMap> IndexRecordZones(std::string_view record) {
  ByteReader reader(record.substr(kIndexRecordHeaderSize));
  ZoneMap map = ReadZoneMap(&reader);
  if (reader.ok() && reader.remaining() == kKeySumSize) reader.ReadLe64();
  if (!reader.AtCleanEnd()) return Status::Corruption("index record whose zone map does not parse");
  return map;
}

ZoneMapView IndexRecordZoneView(std::string_view record) {
  const std::string_view rest = record.substr(kIndexRecordHeaderSize);
  const size_t size = ZoneMapView::StoredSize(rest);
  return ZoneMapView(rest.size() == size + kKeySumSize ? rest.substr(0, size) : rest);
}

std::optional<uint64_t> IndexRecordKeySum(std::string_view record) {
  const std::string_view rest = record.substr(kIndexRecordHeaderSize);
  const size_t size = ZoneMapView::StoredSize(rest);
  if (size == 0 || rest.size() != size + kKeySumSize) return std::nullopt;
  return LoadLe64(rest.data() + size);
}

std::string FenceBetween(std::string_view last, std::string_view next) {
  PARTITA_ASSERT(last < next);
  size_t limit = std::min(last.size(), next.size());
  size_t shared = 0;
  while (shared < limit && last[shared] == next[shared]) ++shared;
  // `last` is a prefix of `next`, or the byte that differs cannot be raised without reaching `next`.
  if (shared >= last.size()) return std::string(last);
  uint8_t byte = static_cast<uint8_t>(last[shared]);
  if (shared + 1 >= last.size() || byte + 1 >= static_cast<uint8_t>(next[shared])) return std::string(last);
  std::string fence(last.substr(0, shared + 1));
  fence.back() = static_cast<char>(byte + 1);
  return fence;
}

}  // namespace partita
