#pragma once
#include <atomic>

namespace partita {

// A descriptor whose copy in children of fork is closed: flock holds until every copy is. Of kUnsharedMax at
// a time; those beyond are shared. Used by one thread at a time.
inline constexpr int kUnsharedMax = 256;
class UnsharedDescriptor {
 public:
  explicit UnsharedDescriptor(int descriptor);
  ~UnsharedDescriptor();  // Closes it.
  UnsharedDescriptor(const UnsharedDescriptor&) = delete;
  UnsharedDescriptor& operator=(const UnsharedDescriptor&) = delete;

 private:
  const int descriptor_;
  std::atomic<int>* place_ = nullptr;  // Null: shared.
};

}  // namespace partita
