#pragma once
#include <cstdint>

#include "bench/lab/draw.h"

namespace partita::lab {

// Ranks 0 to n - 1, k in proportion to 1 / (k + 1)^theta, exactly so up to the rounding of doubles, whatever
// n is: by rejection-inversion (Hoermann and Derflinger, 1996), which takes the same short time for every n
// and rejects one draw in ten at most. The same on every machine. Immutable but for Resize.
class ZipfRanks {
 public:
  // REQUIRES: 0 < n <= 10^15, 0 < theta <= 10.
  ZipfRanks(uint64_t n, double theta);
  // REQUIRES: as above.
  void Resize(uint64_t n);
  uint64_t n() const { return n_; }
  uint64_t Of(Draw* draw) const;

 private:
  double Weight(double x) const;           // h(x) = x^-theta,
  double Integral(double x) const;         // its integral from 1 to x,
  double InverseIntegral(double y) const;  // and where that is y.

  const double theta_;
  uint64_t n_;
  double first_;  // Of the integral, below the rank 1,
  double last_;   // and behind the rank n.
  double sure_;   // Who lies no further than this below its rank is surely accepted.
};

}  // namespace partita::lab
