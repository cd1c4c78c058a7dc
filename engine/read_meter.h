#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/status.h"
#include "engine/throttle.h"

namespace partita {

// Charges a read of one entity that has to wait for a device, so that what it costs is known only behind it.
// It takes an advance, and pays the difference when it is known: so of many reads at once a bucket lets no
// more through than it holds advances for.
//
// Belongs to one read; used by one thread at a time. The throttle and the key outlive it.
class ReadMeter {
 public:
  // Few entities are larger, and a bucket of 2,000 a second still gives 250 of them at once, which is enough
  // for devices that take a tenth of a second.
  static constexpr uint64_t kAdvance = 16;

  ReadMeter(Throttle& throttle, std::string_view user_key) : throttle_(throttle), user_key_(user_key) {}
  // The rest of the advance comes back.
  ~ReadMeter();
  ReadMeter(const ReadMeter&) = delete;
  ReadMeter& operator=(const ReadMeter&) = delete;

  // Takes the advance. kThrottled.
  Status Admit();
  // What the read found, of which it pays all; where it is not called it pays 1. At most once.
  void Found(std::string_view content);

 private:
  Throttle& throttle_;
  const std::string_view user_key_;
  Throttle::Limits limits_;
  uint64_t advance_ = 0;  // 0: nothing is charged.
  uint64_t cost_ = 1;
};

}  // namespace partita
