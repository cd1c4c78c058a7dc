#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/lab/key_rows.h"

namespace partita::lab {

// What one request asked of the target, for the picture of where load lies.
struct Touch {
  KeyRows::Span rows;
  double entities = 0;   // In units (entity_units.h), of what was answered; spread over the rows.
  uint32_t refused = 0;  // Tries that were throttled.
};

// A run over time in a bounded number of columns, warm-up included: what was due and done, how long it took,
// and where it lay. One for each client, merged at the end; not for several threads.
class Timeline {
 public:
  static constexpr size_t kColumnsMax = 120;

  // Latencies to within a quarter, in microseconds.
  struct Latencies {
    static constexpr size_t kBuckets = 128;
    std::array<uint32_t, kBuckets> counts{};
    void Record(uint64_t nanos);
    // What `fraction` of them do not exceed, as the upper bound of a bucket; 0 when there are none.
    double PercentileMs(double fraction) const;
  };
  struct Column {
    uint64_t due = 0, completed = 0, throttled = 0, ended = 0, latency_max_ns = 0;
    Latencies latencies;
    std::vector<double> entities, refused;  // For each row; entities in units.
  };

  Timeline() = default;
  // `seconds` is how long operations are due; those that end later fall into columns behind, and at last into
  // the last one.
  Timeline(double seconds, size_t rows);
  // As it was. REQUIRES: column_s > 0, at most kColumnsMax columns, each with so many rows.
  Timeline(double column_s, size_t rows, std::vector<Column> columns)
      : column_s_(column_s), rows_(rows), columns_(std::move(columns)) {}

  void Due(double at) { ++At(at).due; }
  void Completed(double at, uint64_t latency_ns);
  void Throttled(double at) { ++At(at).throttled; }
  void Ended(double at) { ++At(at).ended; }  // Completed or not.
  void Touched(double at, const Touch& touch);
  // REQUIRES: made for the same time and rows.
  void Add(const Timeline& other);

  // The share of the units that were asked for in a moment, a tenth of the run, that lay in the row with most
  // of them; over all moments, each as it has units. A try that was throttled is one, whatever it asked for:
  // a row that is held back is no cooler for it. 0: none were touched.
  double HotShare() const;

  double column_s() const { return column_s_; }
  size_t rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  Column& At(double at);

  double column_s_ = 1;
  size_t rows_ = 0;
  std::vector<Column> columns_;
};

}  // namespace partita::lab
