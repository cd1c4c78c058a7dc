#pragma once
#include <cstdint>
#include <optional>

#include "api/entity.h"
#include "engine/base/result.h"

namespace partita {

// Longest record a reader takes, in bytes of input: the largest legal entity as JSON with every
// character escaped is about 3.5 MiB, so this refuses nothing that a table takes, and bounds memory.
inline constexpr size_t kRecordBytesMax = 8 << 20;

// Gives the entities of an input one by one: JSON lines, CSV, a package index. Used by one thread.
//
//   while (std::optional<Result<Entity>> record = reader.Next()) {
//     if (!record->ok()) { Report(record->status()); continue; }   // "line 12: property "a": ..."
//     Import(std::move(record->value()));
//     RememberToResumeAt(reader.resume_offset(), reader.resume_line());
//   }
//
// A bad record never stops the stream: it is given as a status whose message says where, what and
// which rule, with its Violation (api/names.h), and the next call goes on with the next record. An
// entity that is given has passed ValidateEntity. Only a failed read of the input ends the stream early:
// it is given as kIoError, and then nothing more.
//
// Memory is bounded by the record limit, however long the input or a line of it.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record, or nothing at the end of the input.
  virtual std::optional<Result<Entity>> Next() = 0;

  // The line on which the record given last begins, from 1.
  virtual uint64_t line_number() const = 0;

  // Where the input goes on after the record given last: bytes from the input's start, and the number
  // of the line that starts there.
  virtual uint64_t resume_offset() const = 0;
  virtual uint64_t resume_line() const = 0;

  // Goes on at an offset and line that an earlier reader of the same input gave. Call before Next.
  // kInvalidArgument when the input ends before it.
  virtual Status SkipTo(uint64_t offset, uint64_t line) = 0;
};

}  // namespace partita
