#include "bench/load/tally.h"

#include <chrono>

#include "bench/load/row_generator.h"

namespace partita::bench {

static_assert(kRowKeyBytes == RowKeys::kPartitionSize + RowKeys::kRowSize);

uint64_t NowNanos() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void Tally::Failed(const Status& status) {
  if (failed++ == 0) first_error = status.ToString();
}

void Tally::AddTo(Measurement* measurement, size_t value_size) const {
  measurement->latency.Merge(latency);
  measurement->operations += operations;
  measurement->rows += rows;
  measurement->user_bytes += rows_written * (kRowKeyBytes + value_size);
  measurement->wrong += wrong;
  measurement->missing += missing;
  if (measurement->failed == 0) measurement->first_error = first_error;
  measurement->failed += failed;
}

}  // namespace partita::bench
