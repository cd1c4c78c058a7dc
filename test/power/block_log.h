#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace partita {

// File systems count on their super block, which lies here, being written whole: neither ext4 nor XFS mounts
// with a torn one, and no disk tears pages in practice. So nothing in this model is torn below this offset.
inline constexpr uint64_t kSuperBlockEnd = 4096;

// What reached a disk, in the order it came: writes with their data, and flushes of the disk's cache.
//
// Entry n happened after all before it. A flush makes every write before it durable; what comes after
// the last flush is in the disk's volatile cache. A value.
class BlockLog {
 public:
  void AddWrite(uint64_t offset, std::span<const uint8_t> data);
  void AddFlush();
  void Clear();

  size_t size() const { return entries_.size(); }
  uint64_t bytes() const { return data_.size(); }
  uint64_t flushes() const { return flushes_; }

  // How many of the first `cut` entries are durable whatever happens: those up to the last flush.
  size_t DurableUntil(size_t cut) const;

  // Does to `disk` what the entries [from, until) did, in their order.
  void Apply(size_t from, size_t until, std::span<uint8_t> disk) const;

  // Does to `disk` what a loss of power may leave of the writes in [from, until), none of which is
  // durable: any subset of them, in any order, each whole or torn at multiples of `sector` bytes. Decided by
  // `seed` alone.
  void ApplySome(size_t from, size_t until, uint64_t seed, size_t sector, std::span<uint8_t> disk) const;

  // One file of its own form, to look at a cut again later.
  Status Save(const std::string& path) const;
  static Result<BlockLog> Load(const std::string& path);

 private:
  struct Entry {
    uint64_t offset = kFlush;  // On the disk, in bytes; kFlush: a flush.
    uint64_t size = 0;
    uint64_t data = 0;  // Where in data_.
  };
  static constexpr uint64_t kFlush = UINT64_MAX;

  std::span<const uint8_t> DataOf(const Entry& entry) const {
    return {data_.data() + entry.data, entry.size};
  }

  std::vector<Entry> entries_;
  std::vector<uint8_t> data_;
  uint64_t flushes_ = 0;
};

}  // namespace partita
