#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/file.h"
#include "wal/segment_format.h"

namespace partita {

// One segment file as `partita inspect wal` shows it. Nothing is changed on disk; the store and
// shard are taken from the header, so any log file can be looked at.
struct InspectedFrame {
  uint64_t offset = 0;
  uint64_t size = 0;  // Bytes on disk, padding included.
  uint64_t payload_size = 0;
  uint32_t pieces = 0;  // Records, or parts of them.
  LogPosition first_position;
  LogPosition durable_position;  // Known flushed when the frame was written.
  Version version_max;
  Version version_ceiling;
  std::vector<std::string> flags;  // "continues", "continued", "seal", "closing", "takes-effect".
  bool in_chain = false;  // Follows the frame before it without a break; else found behind a bad one.
};

struct InspectedSegment {
  bool header_valid = false;
  std::string header_problem;  // Why not.
  std::string size_problem;    // It is shorter than its header says; empty: it is not.
  StoreId store;
  ShardId shard;
  SegmentId segment;  // 0: prepared, not in use.
  Incarnation incarnation;
  uint64_t segment_size = 0;
  SegmentBegin begin;
  Version version_ceiling;
  SegmentId previous_segment;
  uint64_t previous_seal = 0;
  std::vector<std::string> flags;  // "continues", "awaits-effect".
  // False: it was to take over records, and no frame of it says that it did. Unless a later such segment says
  // so, what it holds is void (segment_format.h).
  bool in_effect = false;

  uint64_t frames = 0;
  uint64_t frames_beyond = 0;  // Valid ones behind the first bad place.
  uint64_t records_ended = 0;
  std::vector<uint64_t> seals;   // Of the header and of each frame in the chain: a successor names one.
  uint64_t end_offset = 0;       // Where the unbroken chain of valid frames ends.
  LogPosition last_position;     // Last record that ends in the chain.
  LogPosition durable_position;  // Highest watermark of any valid frame, also beyond the end.
  // True when a frame beyond the end proves that more was durable there (F31): damage.
  bool damaged = false;
  std::string end_reason;  // In words.
};

// Reads and verifies one segment file; `each_frame` is called in file order and may be null.
Task<Result<InspectedSegment>> InspectSegment(FileSystem& files, std::string path,
                                              std::function<void(const InspectedFrame&)> each_frame);

}  // namespace partita
