#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/catalog.h"
#include "engine/range_search.h"
#include "engine/snapshot_publisher.h"

namespace partita {

// A key whose shard does not own it (any more) is routed anew at most so often, for about a second: a move is
// over before that, and a missing table is not a move.
inline constexpr int kRoutesMax = 1000;

// What is to say of a key that no range holds.
inline Status NoSuchTable(std::string why = "the table does not exist (any more)") {
  return Status::NotFound(std::move(why)).WithDetail(static_cast<uint16_t>(Missing::kTable));
}

// Which shard owns which interval of user keys: sorted, immutable (DESIGN 8).
struct RangeMap {
  std::vector<RangeDescriptor> ranges;
  // What the keys of a table begin with whose deletion is in doubt (F15); empty: there is none.
  std::string in_doubt;

  bool IsInDoubt(const RangeDescriptor& range) const {
    return !in_doubt.empty() && range.lower.starts_with(in_doubt);
  }

  // The range that holds the key, or null: no such table.
  const RangeDescriptor* Find(std::string_view user_key) const { return RangeHolding(user_key, ranges); }

  // The last range that begins below `upper` (empty: the last of all), or null.
  const RangeDescriptor* FindBelow(std::string_view upper) const {
    if (ranges.empty()) return nullptr;
    if (upper.empty()) return &ranges.back();
    auto at = std::lower_bound(
        ranges.begin(), ranges.end(), upper,
        [](const RangeDescriptor& range, std::string_view key) { return range.lower < key; });
    return at == ranges.begin() ? nullptr : &*std::prev(at);
  }
};

// Written under the catalog's mutex.
using RangeMapPublisher = SnapshotPublisher<RangeMap>;

}  // namespace partita
