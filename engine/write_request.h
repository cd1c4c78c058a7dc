#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// When a write counts as done (F1 to F4). On disk in the catalog: never renumber.
enum class DurabilityLevel : uint8_t {
  kPower = 1,    // Survives loss of power: its log record is flushed.
  kProcess = 2,  // Survives the death of the process: the kernel holds its log record.
  kMemory = 3,   // Survives nothing; every other promise holds while the process lives.
};

enum class WriteKind : uint8_t { kPut, kMerge, kDelete };

// What must hold of the entity before the write; else the whole batch is refused.
enum class Precondition : uint8_t {
  kNone,
  kAbsent,         // Else kAlreadyExists.
  kPresent,        // Else kNotFound.
  kVersionEquals,  // Absent: kNotFound; present with another version: kPreconditionFailed.
};

// One operation. `content` is what the api layer encoded (an entity record, or raw bytes); for
// kMerge it is the patch.
struct WriteOp {
  WriteKind kind = WriteKind::kPut;
  Precondition precondition = Precondition::kNone;
  Version expected_version;
  std::string_view user_key;
  std::string_view content;
};

// Combines the present content with a patch; decides what the limits on the result are. A plain
// function: it may run on the strand. kMerge on an absent entity calls it with an empty base.
using MergeFunction = Result<std::string> (*)(std::string_view user_key, std::string_view base,
                                              std::string_view patch);

// An atomic batch: all keys lie in one partition (hence in one range), each key once. What the
// views point to must stay alive until the write has answered.
struct WriteRequest {
  TableId table;
  std::span<const WriteOp> ops;
  DurabilityLevel durability = DurabilityLevel::kPower;
  MergeFunction merge = nullptr;
};

// The answer to a WriteRequest.
struct WriteOutcome {
  Status status;
  uint32_t failed_op = 0;  // Which operation was refused, when one was.
  Version version;         // Of every entity written, when status is ok.
};

}  // namespace partita
