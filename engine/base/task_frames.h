#pragma once
#include <cstddef>

namespace partita {

// Memory of coroutines' frames: of what the thread keeps, else of the heap (std::bad_alloc, as of `new`). Any
// thread may free it; `size` is that which it was taken for.
void* NewTaskFrame(size_t size);
void FreeTaskFrame(void* frame, size_t size) noexcept;

}  // namespace partita
