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

// REQUIRES: HasDirectory(). What AtLastPlace could not read is looked at again, and then is unreadable.
std::optional<PropertyView> PropertyProbe::Search(std::string_view content) {
  const EntityRecordView record(content, names_);
  if (names_ != nullptr) {
    if (!record.IsWalkable()) return Unreadable();
    const std::optional<size_t> index = record.IndexOf(name_, id_);
    if (!index) return std::nullopt;
    place_ = static_cast<uint32_t>(*index);
    return record.stored(*index);
  }
  const std::optional<uint32_t> place = PlaceByName(content);
  if (!place) return Unreadable();
  place_ = *place;
  if (place_ == CountOf(content) || NameAt(content, place_) != name_) return std::nullopt;
  const std::optional<PropertyView> there = record.StoredIfThere(place_);
  return there ? there : Unreadable();
}

// The name that stands inline, empty where there is none.
std::string_view PropertyProbe::NameAt(std::string_view content, uint32_t place) {
  const uint32_t count = CountOf(content);
  const size_t begin = OffsetAt(content, place);
  const size_t end = place + 1 < count ? OffsetAt(content, place + 1) : content.size();
  if (begin < EntityRecordCellsStart(count) || begin >= end || end > content.size()) return {};
  if (LoadLe16(SlotAt(content, place)) != 0) return {};
  size_t size = static_cast<uint8_t>(content[begin]);
  const size_t prefix = size < 0x80 ? 1 : 2;
  if (end - begin < prefix) return {};
  if (prefix == 2) size = (size & 0x7F) | static_cast<size_t>(static_cast<uint8_t>(content[begin + 1])) << 7;
  if (end - begin - prefix < size) return {};
  return {content.data() + begin + prefix, size};
}

// Without ids the directory is sorted by name, and two names tell that the one between them is missing.
// Nothing: one that was looked at cannot be read.
std::optional<uint32_t> PropertyProbe::PlaceByName(std::string_view content) const {
  bool readable = true;
  const auto name_at = [&](size_t i) {
    const std::string_view name = NameAt(content, static_cast<uint32_t>(i));
    readable = readable && !name.empty();
    return name;
  };
  size_t low = 0;
  size_t high = CountOf(content);
  if (place_ < high && name_at(place_) > name_) high = place_;
  if (place_ > 0 && place_ <= high && name_at(place_ - 1) < name_) low = place_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (name_at(middle) < name_) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (!readable) return std::nullopt;
  return static_cast<uint32_t>(low);
}

}  // namespace partita
