#pragma once
#include <cstdint>
#include <string>

#include "bench/load/histogram.h"
#include "bench/load/measurement.h"
#include "engine/base/status.h"

namespace partita::bench {

uint64_t NowNanos();

// Bytes of a row's keys, as the user counts them.
inline constexpr uint64_t kRowKeyBytes = 40;

// What one thread of a load saw; added up when all are done.
struct Tally {
  Histogram latency;
  uint64_t operations = 0, rows = 0, rows_written = 0, wrong = 0, missing = 0, failed = 0;
  std::string first_error;

  void Failed(const Status& status);
  void AddTo(Measurement* measurement, size_t value_size) const;
};

}  // namespace partita::bench
