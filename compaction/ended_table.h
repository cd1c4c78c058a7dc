#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "compaction/job.h"
#include "compaction/warm_output.h"
#include "engine/base/ids.h"
#include "engine/base/overlapped.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "sstable/table_reader.h"
#include "sstable/table_writer.h"

namespace partita {

// A job's output that is complete: it becomes durable (F25), and is then read back in full (F47), beside the
// job, which makes the next one meanwhile (JobContext::start_beside), or by the job when that comes to need
// it. What writing and reading take of the disk and reading back of a core would otherwise add up.
//
// Arrive's codes: kIoError, kNoSpace, kResourceExhausted, kCancelled; kIoError, too, for what does not read
// back. After any failure only Discard is useful. REQUIRES: before the context goes Arrive is awaited, or
// Forgo has said true.
class EndedTable final : public Overlapped {
 public:
  EndedTable(JobContext& context, std::unique_ptr<TableWriter> writer, std::shared_ptr<WarmOutput> warm)
      : context_(context), writer_(std::move(writer)), warm_(std::move(warm)) {}

  // REQUIRES of all: nobody performs it any more. Null after a failure. It is taken, as a helper may hold
  // this for longer than the job.
  std::shared_ptr<TableReader> TakeTable() { return std::move(table_); }
  uint64_t bytes_verified() const { return bytes_verified_; }
  // Removes what was written: the object that could not be removed, if any.
  Task<std::optional<ObjectId>> Discard();

 private:
  Task<Status> Perform() override;
  Task<Status> Settle();
  // kCorruption: it is not what was written, or cannot be read.
  Task<Status> ReadBack(const TableInfo& info);

  JobContext& context_;
  std::unique_ptr<TableWriter> writer_;  // Null once the file is durable.
  std::shared_ptr<WarmOutput> warm_;
  std::optional<ObjectId> durable_;
  std::shared_ptr<TableReader> table_;
  uint64_t bytes_verified_ = 0;
};

}  // namespace partita
