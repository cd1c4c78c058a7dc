#include "bench/load/read_load.h"

namespace partita::bench {
namespace {

void GetMissing(const LoadContext& context, const RowKeys& keys, std::string* buffer, Tally* tally) {
  const Status status = context.engine.Get(keys, buffer);
  if (status.ok()) {
    ++tally->wrong;
  } else if (status.code() != Code::kNotFound) {
    tally->Failed(status);
  }
}

}  // namespace

Status RunReads(ReadOf of, uint64_t keys, const LoadContext& context, Measurement* measurement) {
  RunThreads(
      context,
      [&]() -> Operation {
        return [&, value = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          const uint64_t index = random() % keys;
          if (of == ReadOf::kExisting) {
            GetRow(context, index, &value, tally);
          } else {
            GetMissing(
                context,
                of == ReadOf::kMissingRow ? KeysOf(index, /*missing=*/true) : KeysOfMissingPartition(index),
                &value, tally);
          }
          return true;
        };
      },
      measurement);
  return Status();
}

Status RunScans(uint64_t keys, const LoadContext& context, Measurement* measurement) {
  const uint64_t partitions = keys / kRowsPerPartition;
  if (partitions == 0) return Status::InvalidArgument("scans of a partition need at least 100 keys");
  RunThreads(
      context,
      [&]() -> Operation {
        return [&](std::mt19937_64& random, Tally* tally) {
          ScanRows(context, random() % partitions * kRowsPerPartition, kRowsPerPartition, tally);
          return true;
        };
      },
      measurement);
  return Status();
}

Status RunFullScans(uint64_t keys, double seconds, const LoadContext& context, Measurement* measurement) {
  const uint64_t end = NowNanos() + static_cast<uint64_t>(seconds * 1e9);
  RunThreads(
      /*threads=*/1, context.generation, kUntilDone, context.config.value_size,
      [&]() -> Operation {
        return [&](std::mt19937_64&, Tally* tally) {
          if (tally->operations > 0 && NowNanos() >= end) return false;
          ScanRows(context, 0, keys, tally);
          return true;
        };
      },
      measurement);
  return Status();
}

Status RunOverwrites(DurabilityLevel level, const LoadContext& context, Measurement* measurement) {
  RunThreads(
      context,
      [&, level]() -> Operation {
        return [&, level, value = std::string()](std::mt19937_64& random, Tally* tally) mutable {
          return PutRow(context, random() % context.config.keys, level, &value, tally);
        };
      },
      measurement);
  return Status();
}

}  // namespace partita::bench
