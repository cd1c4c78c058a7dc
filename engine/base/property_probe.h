#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/entity_record.h"

namespace partita {

// Finds one property in one entity record after the other. Rows of a table mostly have the same properties,
// so the place that the record before had it at is tried first, which costs a few loads and a comparison of
// the name; else the directory is searched.
//
// Owned by one scan: it remembers, so an object is used by one thread at a time.
class PropertyProbe {
 public:
  // `names`: the frequent property names of the table, or null; must outlive this.
  PropertyProbe(std::string name, const PropertyNames* names);

  const std::string& name() const { return name_; }

  // Asks for the memory that Find will look at, when the record is like the one before. To be called for
  // several records before Find is for the first of them, so that their misses overlap.
  void Prefetch(std::string_view content) const {
    if (content.size() < EntityRecordCellsStart(place_ + 1) || place_ >= CountOf(content)) return;
    __builtin_prefetch(content.data() + OffsetAt(content, place_));
  }

  // The property; nothing when the record lacks it. Bytes may be given that nobody verified: where they are
  // no record (EntityRecordView::Check would say why), and that is met on the way, there is nothing, and
  // met_unreadable() is true from then on.
  std::optional<PropertyView> Find(std::string_view content) {
    if (!EntityRecordView(content).HasDirectory()) return Unreadable();
    if (const std::optional<PropertyView> there = AtLastPlace(content)) return there;
    return Search(content);
  }
  bool met_unreadable() const { return met_unreadable_; }

 private:
  static uint32_t CountOf(std::string_view content) { return static_cast<uint8_t>(content[1]); }
  static const char* SlotAt(std::string_view content, uint32_t place) {
    return content.data() + kEntityRecordHeaderSize + size_t{place} * kEntityRecordSlotSize;
  }
  static uint32_t OffsetAt(std::string_view content, uint32_t place) {
    return LoadLe32(SlotAt(content, place) + 2) & kEntityRecordSizeMax;
  }

  std::nullopt_t Unreadable() {
    met_unreadable_ = true;
    return std::nullopt;
  }

  // REQUIRES: HasDirectory().
  std::optional<PropertyView> AtLastPlace(std::string_view content) const {
    const uint32_t count = CountOf(content);
    if (place_ >= count) return std::nullopt;
    const char* slot = SlotAt(content, place_);
    const uint32_t word = LoadLe32(slot + 2);
    const size_t begin = word & kEntityRecordSizeMax;
    const size_t end = place_ + 1 < count ? OffsetAt(content, place_ + 1) : content.size();
    if (begin < EntityRecordCellsStart(count) || begin > end || end > content.size()) return std::nullopt;
    const uint16_t id = LoadLe16(slot);
    std::string_view cell(content.data() + begin, end - begin);
    if (id == 0) {
      if (!StartsWithName(cell, content.data() + content.size())) return std::nullopt;
      cell.remove_prefix(cell_head_.size());
    } else if (id != id_) {
      return std::nullopt;
    }
    const uint32_t type = word >> 24;
    if (type - kPropertyTypeMin > kPropertyTypeMax - kPropertyTypeMin) return std::nullopt;
    if (!HasFormOf(static_cast<PropertyType>(type), cell)) return std::nullopt;
    return PropertyView(name_, static_cast<PropertyType>(type), cell);
  }
  // Whether the cell is one of this name, inline. `record_end`: up to where memory may be read.
  bool StartsWithName(std::string_view cell, const char* record_end) const {
    const size_t size = cell_head_.size();
    if (cell.size() < size) return false;
    if (size > 8 || cell.data() + 8 > record_end) return cell.starts_with(cell_head_);
    return ((LoadLe64(cell.data()) ^ head_code_) & head_mask_) == 0;
  }
  std::optional<PropertyView> Search(std::string_view content);
  // REQUIRES: HasDirectory(), all.
  static std::string_view NameAt(std::string_view content, uint32_t place);
  std::optional<uint32_t> PlaceByName(std::string_view content) const;

  std::string name_;
  const PropertyNames* names_;
  uint16_t id_ = 0;
  uint32_t place_ = 0;      // Directory index in the record before, or where the name would stand.
  std::string cell_head_;   // What a cell with the name inline begins with: the name's size, and the name.
  uint64_t head_code_ = 0;  // The same, when it has up to 8 bytes, as a number,
  uint64_t head_mask_ = 0;  // and which of its bits count.
  bool met_unreadable_ = false;
};

}  // namespace partita
