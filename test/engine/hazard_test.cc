#include "engine/hazard.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

// A reader that takes an object, and a reclaimer that takes it out of use: one of them sees the other. On
// x86-64 nothing but the reclaimer's barrier orders the reader's store before its load.

namespace partita {
namespace {

constexpr uint32_t kRounds = 20'000;

// Lines that the other core has just written: a store to one takes a while, and all later ones stand behind
// it.
struct Lines {
  void Write(uint32_t value) {
    for (Line& line : lines) line.value.store(value, std::memory_order_relaxed);
  }
  struct alignas(64) Line {
    std::atomic<uint32_t> value{0};
  };
  std::array<Line, 8> lines;
};

// Ends when both threads have come to round `round`.
class Meeting {
 public:
  void Meet(uint32_t round) {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    for (uint32_t spins = 0; arrived_.load(std::memory_order_acquire) < 2 * round; ++spins) {
      if (spins > 2000) std::this_thread::yield();
    }
  }

 private:
  alignas(64) std::atomic<uint32_t> arrived_{0};
};

TEST(HazardSlotsTest, AReaderKeepsWhatItStillSeesInUse) {
  int object = 0;
  int next = 0;
  Meeting begin, end;
  Lines busy;
  alignas(64) std::atomic<const void*> current{&object};
  bool reader_took_it = false;
  bool reclaimer_saw_it = false;
  uint32_t freed_in_use = 0;
  std::thread reader([&] {
    std::atomic<const void*>* slot = HazardSlots::Slot();
    for (uint32_t round = 1; round <= kRounds; ++round) {
      begin.Meet(round);
      busy.Write(round);
      slot->store(&object, std::memory_order_relaxed);
      HazardSlots::LightBarrier();
      reader_took_it = current.load(std::memory_order_acquire) == &object;
      end.Meet(2 * round - 1);
      slot->store(nullptr, std::memory_order_release);
      end.Meet(2 * round);
    }
  });
  for (uint32_t round = 1; round <= kRounds; ++round) {
    busy.Write(round);
    begin.Meet(round);
    current.exchange(&next, std::memory_order_acq_rel);
    HazardSlots::HeavyBarrier();
    reclaimer_saw_it = HazardSlots::Holds(&object);
    end.Meet(2 * round - 1);
    if (reader_took_it && !reclaimer_saw_it) ++freed_in_use;
    current.store(&object, std::memory_order_relaxed);
    end.Meet(2 * round);
  }
  reader.join();
  EXPECT_EQ(freed_in_use, 0u);
}

}  // namespace
}  // namespace partita
