#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace partita::lab {

// How a second run of an experiment differs from a first one, by their result.json.
struct RunComparison {
  struct Row {
    std::string layout, rate, op;
    double p99_before_ms = 0, p99_after_ms = 0;
    // How many times as long: the 95 % interval over the repeats; 0 of fewer than three.
    double ratio_lower = 0, ratio_upper = 0;
    double throttled_before = 0, throttled_after = 0;
    bool worse = false, better = false;  // Beyond doubt and by more than the threshold.
    bool undecided = false;              // Neither: nobody can say that it is no slower.
    std::string why;                     // Of what is worse or undecided.
  };
  std::vector<Row> rows;            // Of the first run; what only the second has is not compared.
  std::vector<std::string> ran_on;  // In what that on which they ran differs, as its memory.
  std::string broken;               // Why nothing could be compared; empty: something was.
  bool any_worse() const;
  bool any_undecided() const;
};

// `threshold` 0.1: worse is what takes 1.1 times as long, with the whole interval above that (which takes
// three repeats), or is throttled, dropped, fails or finds nothing in 0.01 more of all operations. What fails
// in the second run alone, or is missing in it, is worse too, and so is a run that has nothing in common with
// the first. Undecided is what is not worse where too few repeats, or runs that this machine or the number of
// clients limited, or in which nothing completed, tell nothing. kInvalidArgument: a text is no result, or the
// two did not do the same: stream_hash or what was asked for (conditions.h) differs. Of that, older results
// tell no more than the limits and how long they took.
Result<RunComparison> CompareRuns(std::string_view before_json, std::string_view after_json,
                                  double threshold);

// For people.
std::string ComparisonText(const RunComparison& comparison);

}  // namespace partita::lab
