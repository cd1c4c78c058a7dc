#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "api/cli/import_pipeline.h"
#include "api/cli/progress.h"
#include "api/cli/record_reader.h"

namespace partita {

// Why an import ended.
enum class ImportEnd : uint8_t {
  kWhole,    // The input was read to its end.
  kStopped,  // `stop` asked for it.
  kStrict,   // A bad record, and they were to stop it.
  kFailed,   // The input or the store failed; `failure` says how.
};

struct ImportLoopOptions {
  bool strict = false;
  uint32_t errors_max = 20;    // Printed; all are counted.
  std::function<bool()> stop;  // Asked before each record; may be empty.
  // Told of each record before it is written; may be empty.
  std::function<void(const Entity& entity, uint64_t line)> each_record;
  // Told of the line of each record that could not be read; may be empty.
  std::function<void(uint64_t line)> each_bad_record;
  // Called now and then, and its failure ends the import; may be empty.
  std::function<Status()> now_and_then;
};

struct ImportOutcome {
  ImportEnd end = ImportEnd::kWhole;
  Status failure;
};

// Moves records from the reader through the pipeline until the end, telling of bad ones ("line 12: ...").
// When it returns no write is in flight; pipeline.position() says how far it got.
ImportOutcome ImportRecords(RecordReader& reader, ImportPipeline& pipeline, Progress& progress,
                            const ImportLoopOptions& options);

}  // namespace partita
