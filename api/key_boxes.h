#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/filter.h"

namespace partita {

// What a filter says about keys, as a union of boxes: the planner's algebra. A box is an interval of
// PartitionKeys times an interval of RowKeys.
//
// An end of an interval is a key in ordered text and a terminator: `k 00` stands just before k, `k 01`
// just after it, which no key can fall between since keys hold no zero byte and no 01 (api/names.h). So
// >= k begins at `k 00`, > k at `k 01`, < k ends at `k 00` and <= k at `k 01`. No text: open.
struct KeyInterval {
  std::string lower;
  std::string upper;

  static KeyInterval Where(ComparisonOp op, std::string_view utf8);
  bool open() const { return lower.empty() && upper.empty(); }
  // No key can lie in it.
  bool IsEmpty() const;
  // Exactly one key.
  bool IsPoint() const;
  KeyInterval And(const KeyInterval& other) const;
};

struct KeyBox {
  KeyInterval partitions;
  KeyInterval rows;
  bool open() const { return partitions.open() && rows.open(); }
};

// Every row that matches lies in one of the boxes. `exact`: every row in one of them matches, too.
// At most kKeyBoxesMax boxes; what would need more is read as wider and inexact.
struct KeyBoxes {
  std::vector<KeyBox> boxes;
  bool exact = true;

  static KeyBoxes All(bool exact) { return {.boxes = {KeyBox{}}, .exact = exact}; }
  static KeyBoxes None() { return {}; }
};
inline constexpr size_t kKeyBoxesMax = 4096;

// Work that one plan may take: pairs of boxes intersected, some 100 ns each. A hostile filter must not
// hold a worker; once the work is used up, intersections keep one side only.
inline constexpr size_t kPlanWorkMax = 1 << 16;

KeyBoxes Intersection(KeyBoxes a, KeyBoxes b, size_t* work_left);
KeyBoxes Union(KeyBoxes a, KeyBoxes b);

// The boxes of a whole filter.
KeyBoxes BoxesOf(const Filter& filter, size_t* work_left);

}  // namespace partita
