#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/coding.h"
#include "engine/base/property_value.h"
#include "engine/base/result.h"

namespace partita {

// Entity record: the *content* of a stored value (stored_value.h) in the table model. It holds the
// custom properties of one entity; keys are in the user key, Timestamp and ETag are the version.
// All integers are little-endian.
//
//   offset        size  field
//        0           1  format          kEntityRecordFormat
//        1           1  property_count  n, at most 255 (the service allows 252)
//        2         6*n  directory, sorted by (property id, name bytes); an entry is
//                         0  2  property id   1..4096; 0: the name stands inline
//                         2  4  type << 24 | offset of the property's cell from the record's start
//      2+6n          n  insert order: the k-th byte is the directory index of the property given k-th
//      2+7n             cells, in directory order and without a gap between them; a cell is
//                         [varint name size, name in UTF-8]   only when the id is 0
//                         value, to the cell's end, which is the next cell's start or the record's end:
//                           String   its ordered text (user_key.h), which compares with memcmp
//                           Binary   its bytes
//                           Guid     16 bytes in text order
//                           others   8 bytes: the ordered code (property_value.h), so that a predicate
//                                    compares integers whatever the type
//
// Why the directory: a predicate or a projection finds one property by binary search and touches
// nothing else. Why offsets only: a size beside them could disagree with them. Why the insert order:
// answers list properties as the insert gave them (spec, order of the answer).
//
// Ids stand for frequent names of a table (DESIGN 4), but none is given yet (PropertyNames); a record
// written before its name had an id goes on holding the name inline, and both forms are found.
//
// Reader: the stored value's checksum tells rotted bytes (F40, F51); Check() tells bytes that never
// were a record (F42, F77) -> kCorruption. Newer format -> kUnsupported.
inline constexpr uint8_t kEntityRecordFormat = 1;
inline constexpr size_t kEntityRecordHeaderSize = 2;
inline constexpr size_t kEntityRecordSlotSize = 6;
inline constexpr size_t kEntityRecordPropertiesMax = 255;
inline constexpr size_t kEntityRecordSizeMax = (1 << 24) - 1;
inline constexpr uint16_t kPropertyIdMax = 4096;
inline constexpr size_t kFixedValueSize = 8;
inline constexpr size_t kGuidValueSize = 16;
// Two bytes of varint; a name of the table model has at most 255 characters of three bytes.
inline constexpr size_t kInlineNameSizeMax = (1 << 14) - 1;

constexpr size_t EntityRecordCellsStart(size_t property_count) {
  return kEntityRecordHeaderSize + property_count * (kEntityRecordSlotSize + 1);
}
constexpr size_t InlineNamePrefixSize(size_t name_size) { return name_size < 0x80 ? 1 : 2; }

// The frequent property names of one table, id <-> name. An id once given keeps its name for ever.
// Implementations are safe to read from any thread.
//
// Nobody gives ids yet: outside tests `names` is null everywhere, and every name stands inline. The format
// has them so that a later version may.
class PropertyNames {
 public:
  virtual ~PropertyNames() = default;
  // 0 when the name has no id.
  virtual uint16_t IdOf(std::string_view name) const = 0;
  // Empty when the id has no name. The view lives as long as this object.
  virtual std::string_view NameOf(uint16_t id) const = 0;
};

inline uint16_t IdOrZero(const PropertyNames* names, std::string_view name) {
  return names == nullptr ? 0 : names->IdOf(name);
}

// One property as it lies in a record. Views into the record, and into the PropertyNames.
// Reading is a few instructions; nothing is copied until ToValue.
class PropertyView {
 public:
  PropertyView(std::string_view name, PropertyType type, std::string_view bytes)
      : name_(name), bytes_(bytes), type_(type) {}

  std::string_view name() const { return name_; }
  PropertyType type() const { return type_; }

  // Ordered code, or head code: see property_value.h.
  uint64_t code() const { return CodeIsExact(type_) ? LoadLe64(bytes_.data()) : HeadCode(bytes_); }

  // String: ordered text (user_key.h), which AppendText turns into UTF-8. Binary, Guid: the bytes. Compares
  // with memcmp in the order of the values. REQUIRES: !CodeIsExact(type()).
  std::string_view ordered_bytes() const { return bytes_; }

  PropertyValue ToValue() const;

  // Appends the UTF-8 of a String: what ToValue gives, in memory of the caller's. REQUIRES: type() ==
  // kString.
  void AppendText(std::string* utf8) const;

  // The value's bytes as they lie in the record, whatever the type. Of a String that is no UTF-8 where it has
  // characters from U+E000 to U+FFFF: its ordered text has F5 and F6 for their lead bytes EE and EF.
  std::string_view raw() const { return bytes_; }

  // Size by the service's formula: 8 + 2 * name + value, in UTF-16 units (spec 8).
  size_t BilledSize() const;

 private:
  std::string_view name_;
  std::string_view bytes_;
  PropertyType type_;
};

// What one value counts in the service's size formula; the length arguments count for String (UTF-16
// units) and Binary (bytes) only.
size_t BilledValueSize(PropertyType type, size_t text_units, size_t binary_bytes);

// Whether the bytes can be taken for a value of the type: what the methods of PropertyView, and who prints a
// DateTime, rely on.
inline bool HasFormOf(PropertyType type, std::string_view bytes) {
  if (!CodeIsExact(type)) return type != PropertyType::kGuid || bytes.size() == kGuidValueSize;
  if (bytes.size() != kFixedValueSize) return false;
  return type != PropertyType::kDateTime || LoadLe64(bytes.data()) <= kDateTimeTicksMax;
}

// Reads an entity record. A view: `content` and `names` outlive it. `names` may be null when the
// table has no ids. Cheap to make and to copy; safe to use from any thread.
//
// Only Check(), IsWalkable(), BilledSizeIfWalkable() and HasDirectory() may be called on bytes that nobody
// verified; every other method REQUIRES: Check() was ok on these bytes once, here or where they entered the
// store; for property_count and stored IsWalkable() is enough, and where it says so HasDirectory().
class EntityRecordView {
 public:
  explicit EntityRecordView(std::string_view content, const PropertyNames* names = nullptr)
      : content_(content), names_(names) {}

  // Verifies everything the other methods rely on: bounds, order of the directory, distinct names,
  // types, text, ranges of values. kCorruption says which; kUnsupported for a newer format (F42, F77).
  Status Check() const;

  // The part of it that makes it safe to walk the properties: bounds, types and names that are there. Says
  // nothing of order, text or values, and costs a tenth.
  bool IsWalkable() const;

  // Whether it is of the format known here and has its directory.
  bool HasDirectory() const {
    return content_.size() >= kEntityRecordHeaderSize &&
           static_cast<uint8_t>(content_[0]) == kEntityRecordFormat &&
           content_.size() >= EntityRecordCellsStart(property_count());
  }

  std::string_view content() const { return content_; }
  size_t property_count() const { return static_cast<uint8_t>(content_[1]); }

  // The i-th property in directory order. REQUIRES: i < property_count().
  PropertyView stored(size_t i) const;
  // The same of bytes that nobody verified: nothing when they do not hold it. REQUIRES: HasDirectory(), and
  // i < property_count().
  std::optional<PropertyView> StoredIfThere(size_t i) const;
  // The k-th property in the order the insert gave them. REQUIRES: k < property_count().
  PropertyView inserted(size_t k) const { return stored(insert_order(k)); }
  // Directory index of the property given k-th. REQUIRES: k < property_count().
  size_t insert_order(size_t k) const;

  // The property of that name, nothing when absent. Binary search; decodes no value.
  std::optional<PropertyView> Find(std::string_view name) const;
  // The same for a name whose id was looked up before (0: none): what a scan calls per row.
  std::optional<PropertyView> Find(std::string_view name, uint16_t id) const;

  // Sum of the properties' sizes by the service's formula, keys not included (spec 8): add
  // 4 + 2 * (PartitionKey + RowKey) units and compare with 1 MiB.
  size_t BilledSize() const;
  // The same in one walk, of bytes that nobody verified; nothing when they are not walkable.
  std::optional<size_t> BilledSizeIfWalkable() const;

  // Directory index of the property of that name and id (0: none), nothing when absent.
  std::optional<size_t> IndexOf(std::string_view name, uint16_t id) const;

 private:
  template <typename Visit>
  bool Walk(Visit visit) const;
  Status CheckNoNameTwice() const;
  std::optional<size_t> IndexOfId(uint16_t id) const;
  std::optional<size_t> IndexOfInline(std::string_view name) const;

  std::string_view content_;
  const PropertyNames* names_;
};

// Encodes properties in the order given. Names with an id in `names` are written as ids.
// REQUIRES: at most kEntityRecordPropertiesMax properties with distinct, non-empty names; names and
// strings are well-formed UTF-8; the record fits kEntityRecordSizeMax. (ValidateEntity in
// api/entity.h guarantees all of it.)
std::string EncodeEntityRecord(std::span<const Property> properties, const PropertyNames* names = nullptr);

// The entity after a merge: properties of `patch` replace those of `base` of the same name, type
// included, or are added. Order: base's, then the new ones as patch gave them. Checks both inputs:
// kCorruption or kUnsupported when one is no record.
//
// Limits are the caller's (ValidateMergedRecord in api/entity.h, or property_count and BilledSize of
// the result), but for one: more than kEntityRecordPropertiesMax properties do not fit a record and
// are kInvalidArgument, which two records within the service's limits reach only above its 252.
Result<std::string> MergeEntityRecords(std::string_view base, std::string_view patch,
                                       const PropertyNames* names = nullptr);

// Calls `visit(name, type, code)` with each property's name, type and ordered 8-byte code (head code
// for String, Guid and Binary), in directory order: what zone maps are built from.
// REQUIRES: EntityRecordView(content, names).IsWalkable().
template <typename Visit>
void ZoneCodes(std::string_view content, const PropertyNames* names, Visit&& visit) {
  EntityRecordView view(content, names);
  for (size_t i = 0; i < view.property_count(); ++i) {
    PropertyView property = view.stored(i);
    visit(property.name(), property.type(), property.code());
  }
}

}  // namespace partita
