#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/catalog.h"

namespace partita {

// Decides which ranges to split, merge and move so that no shard has much more to do than the others, from
// what its partitions asked of it in the last second. Knows nothing of stores: see store_balance.cc.
//
// It acts when the busiest shard has had kUnevenShare of a fair share and more, twice in a row, and then
// plans until it would have kEvenShare: each time a range, or what lies in front of or behind a partition of
// one, goes from the busiest shard to the least busy. A partition is never cut. One that alone has more than
// a fair share stays, and its neighbours go.
//
// Against oscillation: what was moved rests, twice as long each time that it is moved again (kRestNanos to
// kRestNanosMax); moves have a budget (MovesAtOnce, then one in kNanosPerMove); a move must better the
// busiest shard by kGainShare of a fair share. A range of which a step failed rests, too, twice as long each
// time in a row (kFailedRestNanos to kFailedRestNanosMax). Bounds that were made by load and that no load
// asks for any more it takes away, one in kNanosPerMerge; bounds that others made stay. Where it has half of
// what it may have (BoundsMax), and a bound was cold for kColdApartNanos, it also moves one side to the
// other's shard.
//
// Deterministic. Not thread-safe.
class RangeBalancer {
 public:
  // Of one core's time: below it is not worth while to act.
  static constexpr double kBusyShare = 0.1;
  static constexpr double kUnevenShare = 1.25;
  static constexpr double kEvenShare = 1.1;
  static constexpr double kGainShare = 0.1;
  static constexpr uint64_t kRestNanos = 10'000'000'000;
  static constexpr uint64_t kRestNanosMax = 300'000'000'000;
  static constexpr uint64_t kFailedRestNanos = 2'000'000'000;
  static constexpr uint64_t kFailedRestNanosMax = 60'000'000'000;
  static constexpr uint64_t kNanosPerMove = 5'000'000'000;
  static constexpr uint64_t kNanosPerMerge = 10'000'000'000;
  static constexpr uint64_t kColdNanos = 60'000'000'000;
  static constexpr uint64_t kColdApartNanos = 10 * kColdNanos;
  // Looks further apart than that are not in a row.
  static constexpr uint64_t kInARowNanos = 3'000'000'000;
  static uint32_t MovesAtOnce(uint32_t shards) { return 4 + 2 * shards; }
  // Bounds made by load that there may be.
  static size_t BoundsMax(uint32_t shards) { return size_t{32} * shards; }

  struct Partition {
    std::string bound;   // The least user key that can be in it.
    double load_ns = 0;  // A second: what its shard has to do for it, in nanoseconds of a core.
  };
  struct Situation {
    uint64_t now_ns = 0;
    uint32_t shards = 1;
    std::span<const RangeDescriptor> ranges;  // In key order, as the catalog has them.
    std::span<const Partition> partitions;    // In key order; those with load.
    size_t tables = 1;                        // Whose ranges they are; each has one at least.
  };
  struct Step {
    enum class Kind : uint8_t { kSplit, kMerge, kMove };
    Kind kind = Kind::kSplit;
    std::string at;  // Where to cut, the bound to take away, or the lower bound of the range to move.
    ShardId to;      // Of a move, and the range's upper bound.
    std::string upper;

    bool operator==(const Step&) const = default;
  };

  // What to do now, in this order; mostly nothing. At most once a second, with the load of another second
  // each time.
  std::vector<Step> Plan(const Situation& situation);
  // Of each step that came about.
  void Done(const Step& step, uint64_t now_ns);
  // Of one that did not; it is planned anew after a rest.
  void Failed(const Step& step, uint64_t now_ns);

 private:
  struct Piece;
  struct Choice;
  class Model;
  // Keys that were moved, or of which a step failed.
  struct Rest {
    std::string lower, upper;
    uint64_t until_ns = 0;
    uint64_t length_ns = 0;
  };

  // A bound made by load (RangeDescriptor::made_by_load).
  struct Bound {
    uint64_t warm_ns = 0;  // When there was last load around it.
  };

  void Refresh(const Situation& situation, const Model& model);
  bool IsUneven(const Situation& situation, const Model& model);
  bool MayCut(const Situation& situation, const Model& model) const;
  bool IsResting(const Piece& piece, uint64_t now_ns) const;
  static bool IsIn(const std::vector<Rest>& rests, const Piece& piece, uint64_t now_ns);
  static void AddRest(Rest rest, uint64_t length_max, uint64_t now_ns, std::vector<Rest>* rests);
  std::vector<Step> PlanMoves(const Situation& situation, Model* model);
  std::vector<Step> PlanMerge(const Situation& situation, const Model& model);
  std::vector<Step> PlanReunion(const Situation& situation, const Piece& left, const Piece& right);
  Choice BestOfAll(const Situation& situation, const Model& model, uint32_t to) const;
  Choice BestOf(const Situation& situation, const Model& model, uint32_t from, double wanted) const;
  static void ConsiderCuts(const Model& model, size_t at, double wanted, Choice* best);

  int uneven_in_a_row_ = 0;
  double moves_left_ = -1;  // Below 0: not begun.
  uint64_t planned_ns_ = 0;
  uint64_t merged_ns_ = 0;
  std::vector<Rest> rests_, failures_;
  std::map<std::string, Bound> bounds_;
};

}  // namespace partita
