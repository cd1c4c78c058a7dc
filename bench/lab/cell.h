#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/lab/operation_stream.h"
#include "bench/lab/target.h"
#include "bench/lab/timeline.h"
#include "bench/load/histogram.h"

namespace partita::lab {

// What was counted of one operation of the experiment, after the warm-up.
struct OpFigures {
  uint64_t operations = 0;  // Due within the measured time.
  uint64_t completed = 0, throttled = 0, throttled_by_account = 0, dropped = 0, failed = 0, missing = 0;
  uint64_t unfinished = 0;  // Not begun when the run was ended, long after they were due.
  uint64_t waited = 0;      // Began over 1 ms late, or not at all, because all clients were busy.
  uint64_t requests = 0, scanned = 0, returned = 0, written = 0, bytes = 0;  // Of what was completed.
  uint64_t untold = 0;       // Completed, but the store did not tell what it looked at.
  uint64_t unfiltered = 0;   // Completed, but the client filters what was returned.
  bench::Histogram latency;  // Nanoseconds from the intended start, of what was completed.
  bench::Histogram service;  // From the actual start.
  std::string first_error;

  void Add(const OpFigures& other);
};

// One second of a run, warm-up included.
struct SecondFigures {
  // Each that is begun ends once, however: completed, dropped or failed. One that was throttled and tried
  // again is completed as well.
  uint64_t due = 0, completed = 0, throttled = 0, ended = 0;
  uint64_t latency_max_ns = 0;
};

// One run of one layout at one rate.
struct CellFigures {
  size_t layout = 0, rate = 0;
  uint32_t repeat = 0;
  std::vector<OpFigures> ops;
  std::vector<SecondFigures> seconds;
  Timeline timeline;
  double started_unix_s = 0;  // When its first operation was due.
  // Seconds of load that the measured operations were: as long as was asked for, but where they lagged behind
  // their schedule, longer by the lag of the last (half of the last tenth had lagged more when they were
  // done; without a schedule, of the very last) and shorter by that of the first.
  double measured_s = 0;
  // Operations whose client was free before they were due and yet began more than 1 ms late: the machine was
  // too slow for the load, not the target, where these are more than 1 % and no matter of chance.
  uint64_t late_starts = 0, on_time_possible = 0;
  bool generator_limited() const {
    return late_starts * 100 > on_time_possible && late_starts >= kLateStartsTold;
  }
  static constexpr uint64_t kLateStartsTold = 5;
  // More than 1 % waited for a client: what they took tells of the number of clients, not of the store alone.
  bool clients_limited() const;
};

// Sends the experiment's operations to the target at the rate, and measures. `progress` is told the seconds
// that passed, on this thread, some times a second; false stops. Blocks. kResourceExhausted: the system has
// no threads for so many clients.
Result<CellFigures> RunCell(const Target& target, const RecordGenerator& generator, double rate,
                            const std::function<bool(double seconds)>& progress);

}  // namespace partita::lab
