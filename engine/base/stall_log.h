#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

namespace partita {

// A slice of an event loop's work, what it does between two awaits, that lasted kStallNanos or more: all else
// that the loop serves waited as long.
inline constexpr uint64_t kStallNanos = 1'000'000;

struct Stall {
  std::source_location from;  // The await it went on from, or where it was posted.
  std::source_location to;    // The await that ended it; without a file: it came to its end.
  uint64_t began_ns = 0;      // By the executor's clock.
  uint64_t lasted_ns = 0;
  // Of it, how long the thread had its core; the rest others had it, or the thread waited for a page or a
  // lock. Known to kCpuSampleNanos (slice_watch.h): it may be less by so much.
  uint64_t ran_ns = 0;

  bool IsOwn() const { return ran_ns >= kStallNanos; }
};

struct StallCounts {
  uint64_t stalls = 0;
  uint64_t own = 0;  // Of them: ran as long as kStallNanos themselves.
  uint64_t lasted_ns = 0, ran_ns = 0, lasted_ns_max = 0;
  void Add(const Stall& stall);
  void Add(const StallCounts& other);
};

struct StallReport {
  struct Place {
    std::source_location from;
    StallCounts counts;
  };
  StallCounts total;
  std::vector<Place> places;  // Those that lasted longest in all come first.
  std::vector<Stall> last;    // The newest comes first.
};

// e.g. "engine/shard_write.cc:135 Shard::Write".
std::string PlaceName(const std::source_location& place);

// The stalls of one event loop: counts by place, for as many places as there is room, and the last ones.
// Thread-safe; takes its lock only where there was a stall, or a reader.
class StallLog {
 public:
  // There are some 200 awaits; what is beyond is in the total only.
  static constexpr size_t kPlacesMax = 256;
  static constexpr size_t kLastMax = 64;

  void Note(const Stall& stall);
  StallReport Read() const;

 private:
  StallReport::Place* PlaceOf(const std::source_location& from);

  mutable std::mutex mutex_;
  StallCounts total_;
  size_t places_used_ = 0;
  std::array<StallReport::Place, kPlacesMax> places_{};
  std::array<Stall, kLastMax> last_{};  // Number n is at n % kLastMax.
};

}  // namespace partita
