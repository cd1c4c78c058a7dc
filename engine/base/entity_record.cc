#include "engine/base/entity_record.h"

#include <algorithm>
#include <bitset>
#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/text.h"

namespace partita {
namespace {

constexpr uint32_t kOffsetMask = (1 << 24) - 1;

static_assert(kEntityRecordSizeMax <= kOffsetMask, "every cell offset fits its three bytes");
static_assert(kPropertyTypeMax <= 0xFF);

struct Slot {
  uint16_t id;
  uint8_t type;
  uint32_t offset;
};

Slot LoadSlot(std::string_view content, size_t i) {
  const char* at = content.data() + kEntityRecordHeaderSize + i * kEntityRecordSlotSize;
  const uint32_t word = LoadLe32(at + 2);
  return Slot{LoadLe16(at), static_cast<uint8_t>(word >> 24), word & kOffsetMask};
}

size_t PropertyCount(std::string_view content) { return static_cast<uint8_t>(content[1]); }

size_t CellEnd(std::string_view content, size_t i) {
  return i + 1 < PropertyCount(content) ? LoadSlot(content, i + 1).offset : content.size();
}

struct NameAndRest {
  std::string_view name;
  std::string_view rest;
};

// Splits an inline-name cell. REQUIRES: it was checked.
NameAndRest SplitCell(std::string_view cell) {
  size_t size = static_cast<uint8_t>(cell[0]);
  size_t prefix = 1;
  if (size >= 0x80) {
    size = (size & 0x7F) | static_cast<size_t>(static_cast<uint8_t>(cell[1])) << 7;
    prefix = 2;
  }
  return {cell.substr(prefix, size), cell.substr(prefix + size)};
}

// Where the value of an inline-name cell begins, maybe beyond its end; 0 when the name's size is not there.
size_t InlineNameEnd(std::string_view cell) {
  if (cell.empty()) return 0;
  const size_t low = static_cast<uint8_t>(cell[0]);
  if (low < 0x80) return 1 + low;
  return cell.size() < 2 ? 0 : 2 + ((low & 0x7F) | static_cast<size_t>(static_cast<uint8_t>(cell[1])) << 7);
}

std::string_view InlineName(std::string_view content, uint32_t offset) {
  return SplitCell(content.substr(offset)).name;
}

// ---- Check ----

Status Bad(size_t index, const char* what) {
  return Status::Corruption("entity record: property " + std::to_string(index) + ": " + what);
}

const char* ValueFault(PropertyType type, std::string_view bytes) {
  switch (type) {
    case PropertyType::kString:
      return IsValidOrderedText(bytes) ? nullptr : "string is not ordered text";
    case PropertyType::kBinary:
      return nullptr;
    case PropertyType::kGuid:
      return bytes.size() == kGuidValueSize ? nullptr : "Guid is not 16 bytes";
    default:
      break;
  }
  if (bytes.size() != kFixedValueSize) return "fixed-width value is not 8 bytes";
  const uint64_t code = LoadLe64(bytes.data());
  const int64_t integer = Int64FromOrderedCode(code);
  if (type == PropertyType::kInt32 && integer != static_cast<int32_t>(integer)) return "Int32 out of range";
  if (type == PropertyType::kBoolean && code > 1) return "Boolean is neither 0 nor 1";
  if (type == PropertyType::kDateTime && code > kDateTimeTicksMax) return "DateTime out of range";
  return nullptr;
}

// What would end a name, or a line of names, where texts are made of them. Names are identifiers
// (api/names.h).
bool IsOfNoName(char c) { return static_cast<uint8_t>(c) < '0' || c == '\\'; }

// Takes the inline name off `cell`; null, or what is wrong with it.
const char* TakeCheckedName(std::string_view* cell, std::string_view* name) {
  if (cell->empty()) return "cell ends before its name";
  const size_t low = static_cast<uint8_t>((*cell)[0]);
  if (low >= 0x80) {
    if (cell->size() < 2) return "cell ends inside its name's size";
    const size_t high = static_cast<uint8_t>((*cell)[1]);
    if (high == 0 || high >= 0x80) return "name's size is not a canonical varint of two bytes";
  }
  const size_t size = low < 0x80 ? low : (low & 0x7F) | static_cast<size_t>((*cell)[1]) << 7;
  if (size == 0) return "name is empty";
  if (cell->size() - InlineNamePrefixSize(size) < size) return "cell ends inside its name";
  const NameAndRest parts = SplitCell(*cell);
  if (!IsValidUtf8(parts.name)) return "name is not UTF-8";
  if (std::any_of(parts.name.begin(), parts.name.end(), IsOfNoName)) return "name holds what no name may";
  *name = parts.name;
  *cell = parts.rest;
  return nullptr;
}

Status CheckInsertOrder(std::string_view content, size_t count) {
  const char* order = content.data() + kEntityRecordHeaderSize + count * kEntityRecordSlotSize;
  std::bitset<kEntityRecordPropertiesMax + 1> seen;
  for (size_t k = 0; k < count; ++k) {
    const auto index = static_cast<uint8_t>(order[k]);
    if (index >= count || seen[index]) return Bad(k, "insert order is not a permutation");
    seen.set(index);
  }
  return Status();
}

}  // namespace

// ---- PropertyView ----

PropertyValue PropertyView::ToValue() const {
  switch (type_) {
    case PropertyType::kString: {
      std::string text;
      AppendText(&text);
      return text;
    }
    case PropertyType::kInt32:
      return static_cast<int32_t>(Int64FromOrderedCode(code()));
    case PropertyType::kInt64:
      return Int64FromOrderedCode(code());
    case PropertyType::kDouble:
      return DoubleFromOrderedCode(code());
    case PropertyType::kBoolean:
      return code() != 0;
    case PropertyType::kDateTime:
      return DateTime{code()};
    case PropertyType::kGuid: {
      Guid guid;
      std::memcpy(guid.bytes.data(), bytes_.data(), kGuidValueSize);
      return guid;
    }
    case PropertyType::kBinary:
      return Binary{std::string(bytes_)};
  }
  PARTITA_ASSERT(type_ == PropertyType::kBinary);  // Check() let no other type through.
  return {};
}

void PropertyView::AppendText(std::string* utf8) const {
  PARTITA_ASSERT(type_ == PropertyType::kString);
  const size_t before = utf8->size();
  utf8->resize(before + bytes_.size());
  CopyAsUtf8(utf8->data() + before, bytes_);
}

size_t BilledValueSize(PropertyType type, size_t text_units, size_t binary_bytes) {
  switch (type) {
    case PropertyType::kString:
      return 2 * text_units + 4;
    case PropertyType::kBinary:
      return binary_bytes + 4;
    case PropertyType::kBoolean:
      return 1;
    case PropertyType::kInt32:
      return 4;
    case PropertyType::kGuid:
      return 16;
    default:
      return 8;
  }
}

namespace {
size_t BilledPropertySize(std::string_view name, PropertyType type, std::string_view value) {
  const size_t units = type == PropertyType::kString ? Utf16Units(value) : 0;
  return 8 + 2 * Utf16Units(name) + BilledValueSize(type, units, value.size());
}
}  // namespace

size_t PropertyView::BilledSize() const { return BilledPropertySize(name_, type_, bytes_); }

// ---- EntityRecordView ----

Status EntityRecordView::Check() const {
  if (content_.size() < kEntityRecordHeaderSize) return Status::Corruption("entity record: no header");
  const auto format = static_cast<uint8_t>(content_[0]);
  if (format > kEntityRecordFormat) {
    return Status::Unsupported("entity record: format " + std::to_string(format) + " is newer than " +
                               std::to_string(kEntityRecordFormat));
  }
  if (format == 0) return Status::Corruption("entity record: format 0");
  if (content_.size() > kEntityRecordSizeMax) return Status::Corruption("entity record: over 16 MiB");
  const size_t count = property_count();
  if (content_.size() < EntityRecordCellsStart(count))
    return Status::Corruption("entity record: directory is cut off");
  if (count == 0 && content_.size() != EntityRecordCellsStart(0)) {
    return Status::Corruption("entity record: bytes after an empty directory");
  }

  Slot previous{};
  std::string_view previous_name;
  for (size_t i = 0; i < count; ++i) {
    const Slot slot = LoadSlot(content_, i);
    const size_t end = CellEnd(content_, i);
    if (i == 0 && slot.offset != EntityRecordCellsStart(count))
      return Bad(i, "first cell does not follow the directory");
    if (end < slot.offset || end > content_.size()) return Bad(i, "cell is out of bounds");
    if (slot.type < kPropertyTypeMin || slot.type > kPropertyTypeMax) return Bad(i, "unknown type");
    std::string_view cell = content_.substr(slot.offset, end - slot.offset);
    if (slot.id != 0) {
      if (slot.id > kPropertyIdMax) return Bad(i, "property id out of range");
      if (i > 0 && slot.id <= previous.id) return Bad(i, "directory is not sorted by id");
      if (names_ == nullptr || names_->NameOf(slot.id).empty()) return Bad(i, "property id without a name");
    } else {
      std::string_view name;
      if (const char* fault = TakeCheckedName(&cell, &name)) return Bad(i, fault);
      if (i > 0 && (previous.id != 0 || name <= previous_name))
        return Bad(i, "directory is not sorted by name");
      previous_name = name;
    }
    if (const char* fault = ValueFault(static_cast<PropertyType>(slot.type), cell)) return Bad(i, fault);
    previous = slot;
  }
  PARTITA_TRY(CheckInsertOrder(content_, count));
  return CheckNoNameTwice();
}

// Calls visit(name, type, value) of each property while all is as IsWalkable() says.
template <typename Visit>
bool EntityRecordView::Walk(Visit visit) const {
  if (!HasDirectory()) return false;
  const size_t count = property_count();
  for (size_t i = 0; i < count; ++i) {
    const std::optional<PropertyView> property = StoredIfThere(i);
    if (!property) return false;
    visit(property->name(), property->type(), property->raw());
  }
  return true;
}

bool EntityRecordView::IsWalkable() const {
  return Walk([](std::string_view, PropertyType, std::string_view) {});
}

std::optional<size_t> EntityRecordView::BilledSizeIfWalkable() const {
  size_t size = 0;
  const bool walkable = Walk([&size](std::string_view name, PropertyType type, std::string_view value) {
    size += BilledPropertySize(name, type, value);
  });
  if (!walkable) return std::nullopt;
  return size;
}

// A name may stand inline or as an id, never both.
Status EntityRecordView::CheckNoNameTwice() const {
  if (names_ == nullptr) return Status();
  for (size_t i = 0; i < property_count(); ++i) {
    const Slot slot = LoadSlot(content_, i);
    if (slot.id != 0) break;  // Inline names come first.
    const uint16_t id = names_->IdOf(InlineName(content_, slot.offset));
    if (id != 0 && IndexOfId(id)) return Bad(i, "name stands both inline and as an id");
  }
  return Status();
}

size_t EntityRecordView::insert_order(size_t k) const {
  PARTITA_DEBUG_ASSERT(k < property_count());
  return static_cast<uint8_t>(
      content_[kEntityRecordHeaderSize + property_count() * kEntityRecordSlotSize + k]);
}

PropertyView EntityRecordView::stored(size_t i) const {
  PARTITA_DEBUG_ASSERT(i < property_count());
  const Slot slot = LoadSlot(content_, i);
  const std::string_view cell = content_.substr(slot.offset, CellEnd(content_, i) - slot.offset);
  const auto type = static_cast<PropertyType>(slot.type);
  if (slot.id != 0) return PropertyView(names_->NameOf(slot.id), type, cell);
  const NameAndRest parts = SplitCell(cell);
  return PropertyView(parts.name, type, parts.rest);
}

std::optional<PropertyView> EntityRecordView::StoredIfThere(size_t i) const {
  PARTITA_DEBUG_ASSERT(i < property_count());
  const Slot slot = LoadSlot(content_, i);
  const size_t end = CellEnd(content_, i);
  if (slot.offset < EntityRecordCellsStart(property_count())) return std::nullopt;
  if (end < slot.offset || end > content_.size()) return std::nullopt;
  if (slot.type < kPropertyTypeMin || slot.type > kPropertyTypeMax) return std::nullopt;
  NameAndRest parts{{}, content_.substr(slot.offset, end - slot.offset)};
  if (slot.id != 0) {
    if (names_ != nullptr) parts.name = names_->NameOf(slot.id);
    if (parts.name.empty()) return std::nullopt;
  } else {
    const size_t name_end = InlineNameEnd(parts.rest);
    if (name_end == 0 || name_end > parts.rest.size()) return std::nullopt;
    parts = SplitCell(parts.rest);
  }
  const auto type = static_cast<PropertyType>(slot.type);
  if (!HasFormOf(type, parts.rest)) return std::nullopt;
  return PropertyView(parts.name, type, parts.rest);
}

std::optional<size_t> EntityRecordView::IndexOfId(uint16_t id) const {
  size_t low = 0;
  size_t high = property_count();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint16_t middle_id = LoadSlot(content_, middle).id;
    if (middle_id == id) return middle;
    if (middle_id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

std::optional<size_t> EntityRecordView::IndexOfInline(std::string_view name) const {
  size_t low = 0;
  size_t high = property_count();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const Slot slot = LoadSlot(content_, middle);
    if (slot.id != 0) {  // Ids stand after all inline names.
      high = middle;
      continue;
    }
    const int order = InlineName(content_, slot.offset).compare(name);
    if (order == 0) return middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

std::optional<size_t> EntityRecordView::IndexOf(std::string_view name, uint16_t id) const {
  if (id != 0) {
    if (std::optional<size_t> index = IndexOfId(id)) return index;
  }
  return IndexOfInline(name);
}

std::optional<PropertyView> EntityRecordView::Find(std::string_view name, uint16_t id) const {
  const std::optional<size_t> index = IndexOf(name, id);
  if (!index) return std::nullopt;
  return stored(*index);
}

std::optional<PropertyView> EntityRecordView::Find(std::string_view name) const {
  return Find(name, IdOrZero(names_, name));
}

size_t EntityRecordView::BilledSize() const {
  size_t size = 0;
  for (size_t i = 0; i < property_count(); ++i) size += stored(i).BilledSize();
  return size;
}

}  // namespace partita
