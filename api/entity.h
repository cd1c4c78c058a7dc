#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/names.h"
#include "engine/base/entity_record.h"
#include "engine/base/property_value.h"
#include "engine/base/result.h"
#include "engine/base/status.h"

namespace partita {

// One row of a table: two keys, and up to 252 named, typed properties in an order that is kept.
//
//   Entity order("customer-17", "2025-01-15T10:20");
//   order.Set("Total", 129.90).Set("Items", 3).Set("Note", "leave at the door");
//   if (const double* total = order.GetDouble("Total")) Charge(*total);
//
// A value: copy it, move it, keep it; it holds no reference to the store. Not thread-safe.
//
// Keys, names and strings are UTF-8. Nothing is checked while an entity is built, except that a name
// stands in it once; ValidateEntity says whether a table takes it, and every write asks that first.
//
// Types: a C++ int is Int32, int64_t Int64, double Double, bool Boolean, text String; DateTime, Guid
// and Binary have types of their own (engine/base/property_value.h). A property without a value does
// not exist: there is no null.
class Entity {
 public:
  Entity() = default;
  Entity(std::string partition_key, std::string row_key)
      : partition_key_(std::move(partition_key)), row_key_(std::move(row_key)) {}

  const std::string& partition_key() const { return partition_key_; }
  const std::string& row_key() const { return row_key_; }
  void set_partition_key(std::string key) { partition_key_ = std::move(key); }
  void set_row_key(std::string key) { row_key_ = std::move(key); }
  // Both, in the memory that the keys have.
  void AssignKeys(std::string_view partition_key, std::string_view row_key) {
    partition_key_.assign(partition_key);
    row_key_.assign(row_key);
  }

  // The properties in order: as they were first set here, or as the insert gave them to the store.
  std::span<const Property> properties() const { return properties_; }
  size_t property_count() const { return properties_.size(); }

  // Sets the value of that name: replaces it where it stands (the type may change) or adds it at the
  // end. Returns this entity, so that calls chain.
  Entity& Set(std::string_view name, PropertyValue value);

  // For readers and importers that know each name is new: adds at the end without looking.
  // REQUIRES: !Has(name).
  void AppendProperty(std::string_view name, PropertyValue value) {
    properties_.push_back({std::string(name), std::move(value)});
  }
  void ReserveProperties(size_t count) { properties_.reserve(count); }

  // For readers of one entity after the other: takes the properties out, so that what memory they have can be
  // filled again, and puts them in. REQUIRES of the second: names are distinct.
  std::vector<Property> TakeProperties() { return std::exchange(properties_, {}); }
  void SetProperties(std::vector<Property> properties) { properties_ = std::move(properties); }

  // Removes it; false when there was none.
  bool Erase(std::string_view name);

  void ClearProperties() { properties_.clear(); }

  // The value of that name, null when absent. Valid until the entity changes.
  const PropertyValue* Get(std::string_view name) const;
  bool Has(std::string_view name) const { return Get(name) != nullptr; }

  // The value of that name if it has that type, else null. Valid until the entity changes. There is
  // no conversion: GetInt64 of an Int32 is null. GetInteger reads either.
  const std::string* GetString(std::string_view name) const;
  const int32_t* GetInt32(std::string_view name) const;
  const int64_t* GetInt64(std::string_view name) const;
  const double* GetDouble(std::string_view name) const;
  const bool* GetBoolean(std::string_view name) const;
  const DateTime* GetDateTime(std::string_view name) const;
  const Guid* GetGuid(std::string_view name) const;
  const Binary* GetBinary(std::string_view name) const;
  std::optional<int64_t> GetInteger(std::string_view name) const;

  // When the store last wrote this entity: 100 ns ticks since 1601-01-01 UTC. 0: it did not come from
  // the store. What a client sets here is ignored by writes.
  uint64_t timestamp_ticks() const { return timestamp_ticks_; }
  void set_timestamp_ticks(uint64_t ticks) { timestamp_ticks_ = ticks; }

  // The tag of the state this entity was read in, for conditional writes; empty when it did not come
  // from the store.
  std::string etag() const;

  // Same keys, same properties in the same order. Timestamps are not compared.
  friend bool operator==(const Entity& a, const Entity& b) {
    return a.partition_key_ == b.partition_key_ && a.row_key_ == b.row_key_ && a.properties_ == b.properties_;
  }

 private:
  std::string partition_key_;
  std::string row_key_;
  std::vector<Property> properties_;  // Names are distinct.
  uint64_t timestamp_ticks_ = 0;
};

// The properties of one entity where they lie in a record, without making an Entity: what
// Table::GetRecord gives. Find(name) reads one property and touches no other; inserted(k) goes through
// them in the entity's order. A String lies there as ordered text, which is not always UTF-8: PropertyView's
// AppendText and ToValue give UTF-8, raw() does not. See engine/base/entity_record.h.
using EntityView = EntityRecordView;

// Size as the service bills it: 4 + 2 * (PartitionKey + RowKey) + per property 8 + 2 * name + value,
// text in UTF-16 units (api/limits.h). REQUIRES: well-formed UTF-8 throughout.
size_t EntitySizeBytes(const Entity& entity);

// Never less than that, and found without looking at the text: its bytes are counted for units.
size_t EntitySizeBoundBytes(const Entity& entity);

// Ok when a table takes this entity. Checked in this order, the first broken rule is told: number of
// properties, names, single values (both keys, then the properties), the whole. kInvalidArgument; the message
// says what and where, ViolationOf (api/names.h) gives the service's code.
Status ValidateEntity(const Entity& entity);

// After a merge: number of properties and whole size of the record `content`, the two rules that two
// valid halves can break together. Keys in UTF-8 or ordered text.
// REQUIRES: the record was checked (EntityRecordView::Check).
Status ValidateMergedRecord(std::string_view partition_key, std::string_view row_key,
                            std::string_view content, const PropertyNames* names = nullptr);

}  // namespace partita
