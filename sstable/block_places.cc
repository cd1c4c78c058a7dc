#include "sstable/block_places.h"

#include <new>

#include "sstable/index_record.h"

namespace partita {

BlockPlaces::~BlockPlaces() { cache_.GiveBackPlaces(reserved_bytes_); }

void BlockPlaces::Open(const DataBlock& top_index) {
  uint64_t count = top_index.size();
  for (uint32_t i = 0; i < top_index.size(); ++i) count += IndexRecordEntryCount(top_index.value(i));
  const uint64_t bytes = count * sizeof(BlockPlace);
  if (count > UINT32_MAX || !cache_.TryReservePlaces(bytes)) return;
  reserved_bytes_ = bytes;
  places_.reset(new (std::nothrow) BlockPlace[count]);
  if (places_ == nullptr) return;
  begins_.reserve(top_index.size() + 1);
  uint32_t begin = top_index.size();
  for (uint32_t i = 0; i < top_index.size(); ++i) {
    begins_.push_back(begin);
    begin += IndexRecordEntryCount(top_index.value(i));
  }
  begins_.push_back(begin);
}

}  // namespace partita
