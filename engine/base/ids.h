#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace partita {

// Distinct numbers are distinct types (STYLE 9): no implicit conversion, ordered, hashable.
template <typename Tag, typename T = uint64_t>
struct StrongId {
  T value = 0;
  constexpr StrongId() = default;
  constexpr explicit StrongId(T v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using StoreId = StrongId<struct StoreIdTag>;            // Random, given at creation; in every seal.
using ShardId = StrongId<struct ShardIdTag, uint32_t>;  // 0 .. shards-1.
using TableId = StrongId<struct TableIdTag, uint32_t>;  // From 1 on, never reused.
using ObjectId = StrongId<struct ObjectIdTag>;          // An immutable object (sstable), never reused.
using SegmentId = StrongId<struct SegmentIdTag>;        // A log segment of one shard, rising.
using RangeEpoch = StrongId<struct RangeEpochTag>;      // Rises when a range changes owner or bounds.

// 100 ns ticks since 1601-01-01 UTC from the shard's hybrid clock: orders the LSM, and is the
// entity's Timestamp and ETag. 0 is before everything.
using Version = StrongId<struct VersionTag>;
inline constexpr Version kVersionMax{UINT64_MAX};

// Dense number of a record in its shard's log, from 1 on, without a gap across segments and
// incarnations (F34). 0 means "before the first record".
using LogPosition = StrongId<struct LogPositionTag>;

// One life of a shard's log: rises at every open, so bytes of earlier lives never pass for new ones.
using Incarnation = StrongId<struct IncarnationTag, uint32_t>;

}  // namespace partita

template <typename Tag, typename T>
struct std::hash<partita::StrongId<Tag, T>> {
  size_t operator()(partita::StrongId<Tag, T> id) const noexcept { return std::hash<T>()(id.value); }
};
