#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "engine/base/large_memory.h"

namespace partita {

// Where the cache last had rows (cached_rows.h), by their keys' hashes alone.
//
// Why: what the cache knows a row by says of which block it is, so that whoever looks for one would first ask
// the table's filter and two levels of its index: a microsecond of waiting for memory, several times as long
// as reading the row itself.
//
// Each place is that of whatever row was remembered there last; it may be another key's, which a few bits of
// the hash mostly tell, or out of date. Takes 4 bytes a slot of the cache. Thread-safe: relaxed, as no other
// memory is read on its word.
class RowPlaces {
 public:
  // For so many slots. REQUIRES: slot_count > 0.
  explicit RowPlaces(uint32_t slot_count)
      : places_(slot_count),
        slot_count_(slot_count),
        slot_bits_(static_cast<unsigned>(std::bit_width(slot_count))) {}

  // Off, as it is at first, Of knows no place, and nobody waits for the places' memory.
  void TurnOn(bool on) {
    if (is_on_.load(std::memory_order_relaxed) != on) is_on_.store(on, std::memory_order_relaxed);
  }

  // The slot.
  std::optional<uint32_t> Of(uint64_t key_hash) const {
    if (!is_on_.load(std::memory_order_relaxed)) return std::nullopt;
    const uint32_t slot_plus_one = At(key_hash).load(std::memory_order_relaxed) ^ TagOf(key_hash);
    if (slot_plus_one - 1 >= slot_count_) return std::nullopt;
    return slot_plus_one - 1;
  }

  void Remember(uint64_t key_hash, uint32_t slot) {
    At(key_hash).store((slot + 1) ^ TagOf(key_hash), std::memory_order_relaxed);
  }

  // The next huge page of the places; one thread at a time. False: there is none.
  bool TouchNext() { return places_.TouchNext(); }

  // Asks for the memory that Of will read.
  void Prefetch(uint64_t key_hash) const {
    if (is_on_.load(std::memory_order_relaxed)) __builtin_prefetch(&At(key_hash));
  }

 private:
  // What the slot's number leaves free, of bits that At does not look at.
  uint32_t TagOf(uint64_t key_hash) const { return static_cast<uint32_t>(key_hash >> 32 << slot_bits_); }
  std::atomic<uint32_t>& At(uint64_t key_hash) const {
    return places_[uint64_t{static_cast<uint32_t>(key_hash)} * slot_count_ >> 32];
  }

  LargeArray<std::atomic<uint32_t>> places_;
  uint32_t slot_count_;
  unsigned slot_bits_;  // That slot + 1 takes.
  std::atomic<bool> is_on_{false};
};

}  // namespace partita
