#include "bench/load/zipf.h"

#include <algorithm>
#include <cmath>

#include "engine/base/assert.h"

namespace partita::bench {

Zipf::Zipf(uint64_t size) : size_(static_cast<double>(size)) {
  PARTITA_ASSERT(size > 0);
  for (uint64_t rank = 1; rank <= size; ++rank) zeta_ += std::pow(static_cast<double>(rank), -kTheta);
  const double zeta_of_2 = 1 + std::pow(2.0, -kTheta);
  eta_ = (1 - std::pow(2.0 / size_, 1 - kTheta)) / (1 - zeta_of_2 / zeta_);
}

uint64_t Zipf::Draw(std::mt19937_64& random) const {
  const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
  const double scaled = uniform * zeta_;
  double rank = 0;
  if (scaled >= 1) {
    rank = scaled < 1 + std::pow(0.5, kTheta) ? 1
                                              : size_ * std::pow(eta_ * uniform - eta_ + 1, 1 / (1 - kTheta));
  }
  return static_cast<uint64_t>(std::clamp(rank, 0.0, size_ - 1));
}

}  // namespace partita::bench
