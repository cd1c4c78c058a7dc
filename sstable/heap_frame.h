#pragma once
#include <cstddef>
#include <cstdint>

namespace partita {

// Memory for blocks that the cache does not keep. A merge takes and leaves a thousand in a second, each time
// under a lock of the heap that other threads share: one of idle class that lost its core there would hold up
// a shard. So a thread keeps the last few that it left, and nearly always has one.
//
// Null when there is no memory. To be left to LeaveHeapFrame, by any thread, with the size it was taken for.
uint8_t* TakeHeapFrame(size_t size);
void LeaveHeapFrame(uint8_t* frame, size_t size);

}  // namespace partita
