#pragma once
#include <cstddef>

namespace partita {

// Characters of property names, as sorted, disjoint ranges, both ends included. The tables are
// generated: api/identifier_ranges.py says from what.
struct CharacterRange {
  char32_t first;
  char32_t last;
};

// May start a name.
extern const CharacterRange kIdentifierStart[];
extern const size_t kIdentifierStartCount;

// May stand in a name, but not first.
extern const CharacterRange kIdentifierLater[];
extern const size_t kIdentifierLaterCount;

}  // namespace partita
