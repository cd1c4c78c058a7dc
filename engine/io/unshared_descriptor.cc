#include "engine/io/unshared_descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <array>

namespace partita {

namespace {

constexpr int kFree = -1;
constexpr int kClosedInChild = -2;

// Taken and given back by any thread; read in children, which have one.
struct Place {
  std::atomic<int> descriptor{kFree};
};
constinit std::array<Place, kUnsharedMax> places;

// In the child, before fork returns there: nothing but what a signal handler may do.
void CloseCopies() {
  for (Place& place : places) {
    const int descriptor = place.descriptor.load(std::memory_order_relaxed);
    if (descriptor < 0) continue;
    close(descriptor);
    place.descriptor.store(kClosedInChild, std::memory_order_relaxed);
  }
}

}  // namespace

UnsharedDescriptor::UnsharedDescriptor(int descriptor) : descriptor_(descriptor) {
  static const int error = pthread_atfork(nullptr, nullptr, CloseCopies);
  if (error != 0) return;
  for (Place& place : places) {
    int free = kFree;
    if (!place.descriptor.compare_exchange_strong(free, descriptor)) continue;
    place_ = &place.descriptor;
    return;
  }
}

UnsharedDescriptor::~UnsharedDescriptor() {
  const bool is_closed = place_ != nullptr && place_->exchange(kFree) == kClosedInChild;
  if (!is_closed) close(descriptor_);
}

}  // namespace partita
