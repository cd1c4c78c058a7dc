#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>

namespace partita {

// Bytes that stand one behind the other and pass at a price: so many nanoseconds a KiB for all writers
// together, however many they are and however large their batches. The price is that of the last look: once
// it falls, all that stand here pass sooner, and nothing is left of a time that was dearer.
//
// A batch enters in parts, the next one once the last has passed: so nobody stands behind more than a part of
// each other writer, and a small write beside large ones waits for milliseconds. Only who waits has bytes
// here, but for what is not worth a sleep. Thread-safe.
class PacingLine {
 public:
  static constexpr uint64_t kPartBytes = 16u << 10;
  // A sleep below that costs as much as one of that length.
  static constexpr uint64_t kPieceNanos = 200'000;
  // No single wait is longer: then the price is looked at again.
  static constexpr uint64_t kWaitNanosMax = 20'000'000;

  // Of one batch.
  struct Place {
    uint64_t left = 0;  // Bytes that have not entered yet.
    double end = 0;     // Of its part in the line.
  };

  // How long it sleeps before the next look; 0: it is through. For a batch without bytes that is so at once.
  uint64_t Look(Place* place, uint64_t nanos_per_kib, uint64_t now_ns) {
    if (place->left == 0 && place->end == 0) return 0;
    const std::lock_guard lock(mutex_);
    if (nanos_per_kib == 0) {
      passed_ = entered_;
      return 0;
    }
    const double nanos_per_byte = static_cast<double>(nanos_per_kib) / 1024;
    if (now_ns > looked_at_ns_) {  // What passes while nothing stands here is not saved up.
      passed_ = std::min(entered_, passed_ + static_cast<double>(now_ns - looked_at_ns_) / nanos_per_byte);
      looked_at_ns_ = now_ns;
    }
    while (true) {
      const double nanos = (place->end - passed_) * nanos_per_byte;
      if (nanos >= kPieceNanos) return static_cast<uint64_t>(std::min<double>(nanos, kWaitNanosMax));
      if (place->left == 0) return 0;
      const uint64_t part = std::min(place->left, kPartBytes);
      place->left -= part;
      entered_ += static_cast<double>(part);
      place->end = entered_;
    }
  }

  // Of who does not wait for its turn: those behind it shall not, either.
  void Leave(const Place& place) {
    if (place.end == 0) return;
    const std::lock_guard lock(mutex_);
    const double stands = std::clamp<double>(place.end - passed_, 0, kPartBytes);
    passed_ = std::min(entered_, passed_ + stands);
  }

 private:
  std::mutex mutex_;  // Guards what follows; held for some ten nanoseconds.
  uint64_t looked_at_ns_ = 0;
  double entered_ = 0, passed_ = 0;  // Bytes in all.
};

}  // namespace partita
