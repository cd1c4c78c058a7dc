#include "sstable/rising_lookup.h"

#include <utility>

#include "sstable/index_record.h"

namespace partita {

// By the block's fence (index_record.h), which is above all of its keys.
bool RisingLookup::IsInBlock(std::string_view user_key) const {
  return data_pin_ && index_.CompareKey(at_, user_key) >= 0;
}

TableLookup RisingLookup::TryGet(const SoughtKey& key, Version at_most, BlockPin* pin) {
  TableLookup result;
  if (!IsInBlock(key.user_key)) {
    if (table_.LacksPartition(key.hash)) return result;
    if (BlockPin row = table_.EnterKnownRow(key)) {
      result.lookup = TableReader::FindInRow(std::move(row), key.user_key, at_most, pin);
      return result;
    }
    if (!table_.MayContainKey(key.hash) || !FindBlock(key.user_key, &result.needs_io)) return result;
    if (!data_pin_) {
      BlockPin row = table_.EnterRow(IndexRecordHandle(index_.value(at_)), key);
      result.needs_io = !row;
      if (row) result.lookup = TableReader::FindInRow(std::move(row), key.user_key, at_most, pin);
      return result;
    }
  }
  result.lookup = FindInBlock(key.user_key, at_most, pin);
  return result;
}

bool RisingLookup::FindBlock(std::string_view user_key, bool* needs_io) {
  const DataBlock& top = table_.top_index();
  if (!index_pin_ || top.CompareKey(top_at_, user_key) < 0) {
    data_pin_.Release();
    index_pin_.Release();
    top_at_ = top.LowerBound(user_key);
    if (top_at_ == top.size()) return false;
    index_pin_ = table_.EnterIndex(top_at_);
    *needs_io = !index_pin_;
    if (!index_pin_) return false;
    index_ = DataBlock(index_pin_.content());
    at_ = index_.LowerBound(user_key);
  } else if (at_ < index_.size() && index_.CompareKey(at_, user_key) < 0) {
    // Mostly of the next block.
    ++at_;
    if (at_ < index_.size() && index_.CompareKey(at_, user_key) < 0) at_ = index_.LowerBound(user_key);
  }
  data_pin_.Release();
  if (at_ == index_.size()) return false;
  data_pin_ = table_.EnterData(index_, top_at_, at_);
  if (data_pin_) data_ = DataBlock(data_pin_.content());
  next_ = 0;
  return true;
}

Lookup RisingLookup::FindInBlock(std::string_view user_key, Version at_most, BlockPin* pin) {
  const bool is_next = next_ < data_.size() && data_.CompareKey(next_, user_key) == 0;
  const uint32_t first = is_next ? next_ : data_.LowerBound(user_key);
  uint32_t at = data_.size();
  const Lookup lookup = data_.FindFrom(first, user_key, at_most, &at);
  next_ = first;
  if (at == data_.size()) return lookup;
  next_ = at + 1;
  while (next_ < data_.size() && data_.same_key_as_before(next_)) ++next_;
  data_pin_.MarkEntry(at);
  if (lookup.state == LookupState::kFound) *pin = data_pin_.Share();
  return lookup;
}

}  // namespace partita
