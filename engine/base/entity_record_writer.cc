// Writing entity records: encode and merge. Reading is in entity_record.cc.
#include "engine/base/entity_record_writer.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/base/assert.h"
#include "engine/base/entity_record.h"
#include "engine/base/text.h"

namespace partita {
namespace {

// A property on its way into a record: where its value comes from is the caller's.
struct Cell {
  uint16_t id;
  std::string_view name;
  PropertyType type;
  uint32_t value_size;
  size_t source;  // What `write_value` knows it by.

  size_t size() const { return (id == 0 ? InlineNamePrefixSize(name.size()) + name.size() : 0) + value_size; }
};

// The cells of one record, on the stack: a vector would ask the heap once a record, and one that the thread
// keeps is gone when the last of its destructors write.
class CellList {
 public:
  // REQUIRES: fewer than kEntityRecordPropertiesMax so far.
  void Add(const Cell& cell) { std::construct_at(&room_.cells[count_++], cell); }
  std::span<const Cell> all() const { return {room_.cells, count_}; }

 private:
  union Room {
    Room() {}  // Makes none of them, which would cost more than all else here.
    Cell cells[kEntityRecordPropertiesMax];
  };
  Room room_;
  size_t count_ = 0;
};

bool CellBefore(const Cell& a, const Cell& b) { return a.id != b.id ? a.id < b.id : a.name < b.name; }

char* WriteName(char* to, std::string_view name) {
  if (name.size() < 0x80) {
    *to++ = static_cast<char>(name.size());
  } else {
    *to++ = static_cast<char>(name.size() | 0x80);
    *to++ = static_cast<char>(name.size() >> 7);
  }
  std::memcpy(to, name.data(), name.size());
  return to + name.size();
}

using Directory = std::array<uint8_t, kEntityRecordPropertiesMax>;  // Directory index -> insert index.

bool IsDirectoryOf(std::span<const Cell> cells, const Directory& directory) {
  for (size_t i = 1; i < cells.size(); ++i) {
    if (!CellBefore(cells[directory[i - 1]], cells[directory[i]])) return false;
  }
  return true;
}

// One entity after the other has the same names: the directory of the one before is looked at first.
const Directory& DirectoryOf(std::span<const Cell> cells) {
  thread_local Directory directory;
  thread_local size_t count = 0;
  if (count == cells.size() && IsDirectoryOf(cells, directory)) return directory;
  count = cells.size();
  for (size_t i = 0; i < count; ++i) directory[i] = static_cast<uint8_t>(i);
  std::sort(directory.begin(), directory.begin() + count,
            [&](uint8_t a, uint8_t b) { return CellBefore(cells[a], cells[b]); });
  PARTITA_ASSERT(IsDirectoryOf(cells, directory));  // Names are distinct.
  return directory;
}

// Lays out `cells`, given in insert order, behind what `out` holds, and lets `write_value(char* to, const
// Cell&)` fill each value.
template <typename WriteValue>
void AppendRecord(std::string* out, std::span<const Cell> cells, WriteValue&& write_value) {
  const size_t count = cells.size();
  PARTITA_ASSERT(count <= kEntityRecordPropertiesMax);
  const Directory& directory = DirectoryOf(cells);
  size_t size = EntityRecordCellsStart(count);
  for (const Cell& cell : cells) size += cell.size();
  PARTITA_ASSERT(size <= kEntityRecordSizeMax);

  const size_t begin = out->size();
  out->resize(begin + size);
  char* const record = out->data() + begin;
  record[0] = static_cast<char>(kEntityRecordFormat);
  record[1] = static_cast<char>(count);
  char* slot = record + kEntityRecordHeaderSize;
  char* order = slot + count * kEntityRecordSlotSize;
  char* to = order + count;
  for (size_t i = 0; i < count; ++i, slot += kEntityRecordSlotSize) {
    const Cell& cell = cells[directory[i]];
    StoreLe16(slot, cell.id);
    StoreLe32(slot + 2, static_cast<uint32_t>(cell.type) << 24 | static_cast<uint32_t>(to - record));
    order[directory[i]] = static_cast<char>(i);
    if (cell.id == 0) to = WriteName(to, cell.name);
    write_value(to, cell);
    to += cell.value_size;
  }
  PARTITA_ASSERT(to == record + size);
}

uint32_t ValueSize(const PropertyValue& value) {
  if (const auto* text = value.if_string()) return static_cast<uint32_t>(text->size());
  if (const auto* binary = value.if_binary()) return static_cast<uint32_t>(binary->bytes.size());
  return value.type() == PropertyType::kGuid ? kGuidValueSize : kFixedValueSize;
}

void WriteValue(char* to, const PropertyValue& value) {
  if (const auto* text = value.if_string()) return CopyAsOrderedText(to, *text);
  if (const auto* binary = value.if_binary()) {
    if (!binary->bytes.empty()) std::memcpy(to, binary->bytes.data(), binary->bytes.size());
  } else if (const auto* guid = value.if_guid()) {
    std::memcpy(to, guid->bytes.data(), kGuidValueSize);
  } else {
    StoreLe64(to, OrderedCode(value));
  }
}

}  // namespace

std::string EncodeEntityRecord(std::span<const Property> properties, const PropertyNames* names) {
  std::string record;
  AppendEntityRecord(&record, properties, names);
  return record;
}

void AppendEntityRecord(std::string* out, std::span<const Property> properties, const PropertyNames* names) {
  PARTITA_ASSERT(properties.size() <= kEntityRecordPropertiesMax);
  CellList cells;
  for (size_t i = 0; i < properties.size(); ++i) {
    const Property& property = properties[i];
    PARTITA_ASSERT(!property.name.empty() && property.name.size() <= kInlineNameSizeMax);
    PARTITA_DEBUG_ASSERT(IsValidUtf8(property.name));
    PARTITA_DEBUG_ASSERT(property.value.if_string() == nullptr || IsValidUtf8(*property.value.if_string()));
    cells.Add(
        {IdOrZero(names, property.name), property.name, property.value.type(), ValueSize(property.value), i});
  }
  AppendRecord(out, cells.all(),
               [&](char* to, const Cell& cell) { WriteValue(to, properties[cell.source].value); });
}

Result<std::string> MergeEntityRecords(std::string_view base, std::string_view patch,
                                       const PropertyNames* names) {
  const EntityRecordView old_view(base, names);
  const EntityRecordView new_view(patch, names);
  PARTITA_TRY(old_view.Check());
  PARTITA_TRY(new_view.Check());

  std::vector<Cell> cells;
  std::vector<const char*> values;
  cells.reserve(old_view.property_count() + new_view.property_count());
  values.reserve(cells.capacity());
  std::bitset<kEntityRecordPropertiesMax> replaced;  // Patch properties, by directory index.
  auto add = [&](const PropertyView& property, uint16_t id) {
    const std::string_view bytes = property.raw();
    cells.push_back(
        {id, property.name(), property.type(), static_cast<uint32_t>(bytes.size()), values.size()});
    values.push_back(bytes.data());
  };
  for (size_t k = 0; k < old_view.property_count(); ++k) {
    const PropertyView old_property = old_view.inserted(k);
    const uint16_t id = IdOrZero(names, old_property.name());
    const std::optional<size_t> index = new_view.IndexOf(old_property.name(), id);
    if (index) replaced.set(*index);
    add(index ? new_view.stored(*index) : old_property, id);
  }
  const size_t total = old_view.property_count() + new_view.property_count() - replaced.count();
  if (total > kEntityRecordPropertiesMax) {
    return Status::InvalidArgument("merged entity: " + std::to_string(total) +
                                   " properties do not fit a record, which holds " +
                                   std::to_string(kEntityRecordPropertiesMax));
  }
  for (size_t k = 0; k < new_view.property_count(); ++k) {
    if (replaced[new_view.insert_order(k)]) continue;
    const PropertyView new_property = new_view.inserted(k);
    add(new_property, IdOrZero(names, new_property.name()));
  }
  size_t cell_bytes = 0;
  for (const Cell& cell : cells) cell_bytes += cell.size();
  if (EntityRecordCellsStart(cells.size()) + cell_bytes > kEntityRecordSizeMax) {
    return Status::InvalidArgument("merged entity: does not fit a record of 16 MiB");
  }
  std::string merged;
  AppendRecord(&merged, cells, [&](char* to, const Cell& cell) {
    if (cell.value_size > 0) std::memcpy(to, values[cell.source], cell.value_size);
  });
  return merged;
}

}  // namespace partita
