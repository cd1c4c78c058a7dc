#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/record_generator.h"

namespace partita::lab {

// The rows of a picture of where load lies: the PartitionKeys of a layout's tables, in order, cut where an
// even sample of the records, with those that a run of the highest rate is likely to write, has about as many
// in each. A key that many records share begins a row. Immutable.
class KeyRows {
 public:
  static constexpr size_t kRowsMax = 32;

  KeyRows(const Layout& layout, const RecordGenerator& generator);

  struct Span {
    uint16_t first = 0, last = 0;
  };
  // Where keys lie from `lower` on to below `upper`, which is open when empty.
  Span Of(const std::string& table, std::string_view lower, std::string_view upper) const;
  Span Of(const std::string& table, std::string_view key) const;

  // The first key of each row, behind its table where there are several.
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  // The last row of its table that does not begin above it, else the first.
  uint16_t RowOf(const std::string& place) const;

  std::vector<std::string> starts_;  // Table, a zero, key.
  std::vector<std::string> labels_;
};

}  // namespace partita::lab
