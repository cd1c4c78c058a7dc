#include "bench/load/batch_load.h"

#include <algorithm>
#include <vector>

namespace partita::bench {
namespace {

// Overwrites random ones of the first `partitions` by `write`.
template <typename WriteRows>
void RunPartitions(const LoadContext& context, uint64_t partitions, const WriteRows& write,
                   Measurement* measurement) {
  RunThreads(
      context,
      [&]() -> Operation {
        return [&, rows = std::vector<Row>()](std::mt19937_64& random, Tally* tally) mutable {
          FillPartition(context, random() % partitions, context.generation + tally->operations, &rows);
          if (const Status status = write(rows); !status.ok()) {
            tally->Failed(status);
            return false;
          }
          tally->rows += rows.size();
          tally->rows_written += rows.size();
          return true;
        };
      },
      measurement);
}

Status NeedsAPartition() { return Status::InvalidArgument("batches of 100 need at least 100 keys"); }

}  // namespace

Status RunBatches(const LoadContext& context, Measurement* measurement) {
  const uint64_t partitions = context.config.keys / kRowsPerPartition;
  if (partitions == 0) return NeedsAPartition();
  RunPartitions(
      context, partitions,
      [&](std::span<const Row> rows) {
        return context.engine.PutAtomically(rows, context.config.engine_config.durability);
      },
      measurement);
  return Status();
}

Status RunConditionalBatches(const LoadContext& context, Measurement* measurement) {
  const uint64_t partitions = std::min(kReplacedPartitionsMax, context.config.keys / kRowsPerPartition);
  if (partitions == 0) return NeedsAPartition();
  std::vector<Row> rows;
  for (uint64_t partition = 0; partition < partitions; ++partition) {
    FillPartition(context, partition, context.generation, &rows);
    PARTITA_TRY(context.engine.InsertForReplacing(rows));
  }
  PARTITA_TRY(context.engine.Settle());
  measurement->begun = ResourceUse::Now();
  RunPartitions(
      context, partitions,
      [&](std::span<const Row> replaced) {
        return context.engine.ReplaceAtomically(replaced, DurabilityLevel::kPower);
      },
      measurement);
  return Status();
}

}  // namespace partita::bench
