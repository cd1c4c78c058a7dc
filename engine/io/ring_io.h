#pragma once
#include <span>

#include "engine/base/task.h"
#include "engine/io/transfer.h"
#include "engine/io/uring_executor.h"

namespace partita {

// Performs all transfers on the worker's ring, all at once, until each is finished.
Task<void> RingTransferAll(UringExecutor& ring, const FileHandle& file, std::span<Transfer> transfers);

// fdatasync on the ring.
Task<Status> RingFlush(UringExecutor& ring, const FileHandle& file);

// Write and a flush linked behind it, in one submission.
Task<Status> RingWriteAndFlush(UringExecutor& ring, const FileHandle& file, uint64_t offset,
                               std::span<const uint8_t> bytes);

// Performs all reads from the calling thread, which has no ring of its own: through a small ring
// kept per thread, at most kThreadRingDepth at a time. False, with nothing begun, when this thread
// cannot have one (no memory, no descriptors): the caller reads one by one then.
inline constexpr uint32_t kThreadRingDepth = 64;
bool ThreadRingTransferAll(const FileHandle& file, std::span<Transfer> transfers);

}  // namespace partita
