#pragma once
#include <cstdint>
#include <memory>

#include "bench/load/load_loop.h"

namespace partita::bench {

// The core workloads of YCSB, popularity by Zipf 0.99 and scattered over all rows:
//
//   A  half reads, half overwrites          D  95 % reads of what is newest, 5 % inserts
//   B  95 % reads, 5 % overwrites           E  95 % scans of 1 to 100 rows, 5 % inserts
//   C  reads                                F  half reads, half read-modify-writes
//
// The inserts of D and E get keys behind those of the data set, so that it stays whole.
class Ycsb {
 public:
  // REQUIRES: 'a' <= letter <= 'f'.
  Ycsb(char letter, const LoadContext& context);
  ~Ycsb();

  // For as many seconds as are configured. It goes on where the run before ended: what was inserted then is
  // what is newest.
  void Run(Measurement* measurement);

 private:
  class State;
  std::unique_ptr<State> state_;
  const LoadContext context_;
  uint64_t runs_ = 0;
};

}  // namespace partita::bench
