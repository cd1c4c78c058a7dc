#include "engine/base/property_probe.h"

#include <cstring>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

PropertyProbe::PropertyProbe(std::string name, const PropertyNames* names)
    : name_(std::move(name)), names_(names), id_(names == nullptr ? uint16_t{0} : names->IdOf(name_)) {
  const size_t size = name_.size();
  if (size > kInlineNameSizeMax) {
    cell_head_.push_back('\0');  // No record has the name: no cell begins with an empty one.
  } else if (InlineNamePrefixSize(size) == 1) {
    cell_head_.push_back(static_cast<char>(size));
    cell_head_.append(name_);
  } else {
    cell_head_.push_back(static_cast<char>(0x80 | (size & 0x7F)));
    cell_head_.push_back(static_cast<char>(size >> 7));
    cell_head_.append(name_);
  }
  if (cell_head_.size() > 8) return;
  char bytes[8] = {};
  std::memcpy(bytes, cell_head_.data(), cell_head_.size());
  head_code_ = LoadLe64(bytes);
  head_mask_ = UINT64_MAX >> (64 - 8 * cell_head_.size());
}

std::optional<PropertyView> PropertyProbe::Search(std::string_view content) {
  const EntityRecordView record(content, names_);
  if (names_ != nullptr) {
    const std::optional<size_t> index = record.IndexOf(name_, id_);
    if (!index) return std::nullopt;
    place_ = static_cast<uint32_t>(*index);
    return record.stored(*index);
  }
  place_ = PlaceByName(record);
  if (place_ == record.property_count()) return std::nullopt;
  const PropertyView there = record.stored(place_);
  if (there.name() != name_) return std::nullopt;
  return there;
}

// Without ids the directory is sorted by name, and two names tell that the one between them is missing.
uint32_t PropertyProbe::PlaceByName(const EntityRecordView& record) const {
  size_t low = 0;
  size_t high = record.property_count();
  if (place_ < high && record.stored(place_).name() > name_) high = place_;
  if (place_ > 0 && place_ <= high && record.stored(place_ - 1).name() < name_) low = place_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (record.stored(middle).name() < name_) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<uint32_t>(low);
}

}  // namespace partita
