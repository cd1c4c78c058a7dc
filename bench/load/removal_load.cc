#include "bench/load/removal_load.h"

#include <algorithm>
#include <vector>

namespace partita::bench {

Status RunDeleteThenSeek(const LoadContext& context, Measurement* measurement) {
  constexpr uint64_t kDeletedMax = 100'000;
  constexpr int kSeeks = 20;
  const LoadConfig& config = context.config;
  const uint64_t partitions = std::min(kDeletedMax, config.keys / 2) / kRowsPerPartition;
  std::vector<RowKeys> keys(kRowsPerPartition);
  for (uint64_t partition = 0; partition < partitions; ++partition) {
    for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = KeysOf(partition * kRowsPerPartition + i);
    PARTITA_TRY(context.engine.DeleteAtomically(keys, config.engine_config.durability));
  }
  const uint64_t first_left = partitions * kRowsPerPartition;
  Tally tally;
  for (int seek = 0; seek < kSeeks; ++seek) {
    const uint64_t started = NowNanos();
    uint64_t found = 0;
    const Status status =
        context.engine.Scan(KeysOf(0), 1, [&](std::string_view row_key, std::string_view value) {
          ++found;
          tally.wrong += row_key != KeysOf(first_left).row() || !context.values.Check(first_left, value);
          return true;
        });
    tally.latency.Record(NowNanos() - started);
    measurement->seconds += static_cast<double>(NowNanos() - started) * 1e-9;
    if (!status.ok()) tally.Failed(status);
    tally.missing += 1 - found;
    tally.rows += found;
    ++tally.operations;
  }
  tally.AddTo(measurement, config.value_size);
  return Status();
}

Status RunDrop(const LoadContext& context, Measurement* measurement) {
  Tally tally;
  const uint64_t started = NowNanos();
  PARTITA_TRY(context.engine.Drop());
  const uint64_t nanos = NowNanos() - started;
  tally.latency.Record(nanos);
  tally.operations = 1;
  std::string value;
  tally.wrong += context.engine.Get(KeysOf(0), &value).ok() ? 1 : 0;
  measurement->seconds = static_cast<double>(nanos) * 1e-9;
  tally.AddTo(measurement, context.config.value_size);
  return Status();
}

}  // namespace partita::bench
