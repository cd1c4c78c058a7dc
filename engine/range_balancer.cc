#include "engine/range_balancer.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/clock.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr size_t kRestsMax = 1024;
// Cutting makes a range more, which a move of a whole one does not: it must be better by so much.
constexpr double kCutMustGain = 1.5;
// Of a fair share: two neighbours with less together need no bound between them.
constexpr double kColdShare = 0.05;

// By how much the two shards come nearer to a fair share when `load` goes from one to the other.
double GainOf(double load, double wanted) { return std::min(load, 2 * wanted - load); }

// Of the keys that a step is about: where it begins, and where it ends. A cut and a merge are about the
// ranges at the bound.
std::string EndOf(const RangeBalancer::Step& step) {
  return step.kind == RangeBalancer::Step::Kind::kMove ? step.upper : step.at + '\0';
}

}  // namespace

// A range as it would be after the steps planned so far.
struct RangeBalancer::Piece {
  std::string lower, upper;
  ShardId owner;
  std::span<const Partition> partitions;
  double load = 0;
  bool made_by_load = false;
  bool was_moved = false;  // By this plan.

  void Sum() {
    load = 0;
    for (const Partition& partition : partitions) load += partition.load_ns;
  }
};

// What to take from a shard: a whole piece, or the part of it in front of a partition or from that on.
struct RangeBalancer::Choice {
  enum class Part : uint8_t { kWhole, kFront, kBack };
  double gain = 0;
  size_t piece = 0;
  Part part = Part::kWhole;
  size_t cut = 0;  // Which of its partitions.
};

class RangeBalancer::Model {
 public:
  explicit Model(const Situation& situation) : loads_(situation.shards, 0.0) {
    auto next = situation.partitions.begin();
    const auto end = situation.partitions.end();
    for (const RangeDescriptor& range : situation.ranges) {
      while (next != end && next->bound < range.lower) ++next;
      const auto first = next;
      while (next != end && (range.upper.empty() || next->bound < range.upper)) ++next;
      Piece piece{range.lower, range.upper, range.owner, {first, next}};
      piece.Sum();
      piece.made_by_load = range.made_by_load;
      PARTITA_ASSERT(range.owner.value < loads_.size());
      loads_[range.owner.value] += piece.load;
      total_ += piece.load;
      pieces_.push_back(std::move(piece));
    }
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint32_t shards() const { return static_cast<uint32_t>(loads_.size()); }
  double total() const { return total_; }
  double fair() const { return total_ / static_cast<double>(loads_.size()); }
  double load(uint32_t shard) const { return loads_[shard]; }
  double cold() const;
  uint32_t busiest() const { return At(std::max_element(loads_.begin(), loads_.end())); }
  uint32_t idlest() const { return At(std::min_element(loads_.begin(), loads_.end())); }

  // Returns where the new bound is.
  std::string Cut(size_t at, size_t partition) {
    Piece back = pieces_[at];
    Piece& front = pieces_[at];
    back.lower = front.upper = front.partitions[partition].bound;
    back.partitions = front.partitions.subspan(partition);
    front.partitions = front.partitions.first(partition);
    front.Sum();
    back.Sum();
    std::string bound = back.lower;
    pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(at) + 1, std::move(back));
    return bound;
  }
  void Move(size_t at, uint32_t to) {
    Piece& piece = pieces_[at];
    loads_[piece.owner.value] -= piece.load;
    loads_[to] += piece.load;
    piece.owner = ShardId(to);
    piece.was_moved = true;
  }

 private:
  uint32_t At(std::vector<double>::const_iterator at) const {
    return static_cast<uint32_t>(at - loads_.begin());
  }

  std::vector<Piece> pieces_;
  std::vector<double> loads_;
  double total_ = 0;
};

// Of a pair of neighbours: so little load that they need no bound between them.
double RangeBalancer::Model::cold() const {
  return kColdShare * std::max(fair(), kBusyShare * kNanosPerSecond);
}

std::vector<RangeBalancer::Step> RangeBalancer::Plan(const Situation& situation) {
  Model model(situation);
  Refresh(situation, model);
  std::vector<Step> steps;
  if (IsUneven(situation, model)) steps = PlanMoves(situation, &model);
  if (steps.empty()) steps = PlanMerge(situation, model);
  planned_ns_ = situation.now_ns;
  return steps;
}

void RangeBalancer::Refresh(const Situation& situation, const Model& model) {
  const double most = MovesAtOnce(situation.shards);
  const double refill =
      static_cast<double>(situation.now_ns - planned_ns_) / static_cast<double>(kNanosPerMove);
  moves_left_ = moves_left_ < 0 ? most : std::min(most, moves_left_ + refill);
  // Forgotten: the next one is as the first.
  std::erase_if(rests_, [&](const Rest& rest) { return rest.until_ns + kRestNanosMax < situation.now_ns; });
  std::erase_if(failures_,
                [&](const Rest& rest) { return rest.until_ns + kFailedRestNanosMax < situation.now_ns; });
  // Bounds may go without being taken away here: with their table, or by hand. Of those that were made before
  // the store was opened it is not known when they were warm.
  std::map<std::string, Bound> bounds;
  const std::vector<Piece>& pieces = model.pieces();
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (!pieces[i].made_by_load) continue;
    const auto known = bounds_.find(pieces[i].lower);
    const bool is_warm = known == bounds_.end() || pieces[i - 1].load + pieces[i].load > model.cold();
    bounds[pieces[i].lower].warm_ns = is_warm ? situation.now_ns : known->second.warm_ns;
  }
  bounds_ = std::move(bounds);
}

bool RangeBalancer::IsUneven(const Situation& situation, const Model& model) {
  if (situation.now_ns > planned_ns_ + kInARowNanos) uneven_in_a_row_ = 0;
  const bool is_uneven = model.total() > kBusyShare * kNanosPerSecond &&
                         model.load(model.busiest()) > kUnevenShare * model.fair();
  uneven_in_a_row_ = is_uneven ? uneven_in_a_row_ + 1 : 0;
  return uneven_in_a_row_ >= 2;
}

// Half of the splits that there may be are left to others.
bool RangeBalancer::MayCut(const Situation& situation, const Model& model) const {
  const size_t planned = model.pieces().size() - situation.ranges.size();
  return bounds_.size() + planned < BoundsMax(situation.shards) &&
         model.pieces().size() < situation.tables + kSplitsMax / 2;
}

bool RangeBalancer::IsResting(const Piece& piece, uint64_t now_ns) const {
  return IsIn(rests_, piece, now_ns) || IsIn(failures_, piece, now_ns);
}

bool RangeBalancer::IsIn(const std::vector<Rest>& rests, const Piece& piece, uint64_t now_ns) {
  return std::any_of(rests.begin(), rests.end(), [&](const Rest& rest) {
    return rest.until_ns > now_ns && KeyRangesOverlap(rest.lower, rest.upper, piece.lower, piece.upper);
  });
}

// `rest` has the length of a first one.
void RangeBalancer::AddRest(Rest rest, uint64_t length_max, uint64_t now_ns, std::vector<Rest>* rests) {
  for (const Rest& before : *rests) {
    if (!KeyRangesOverlap(before.lower, before.upper, rest.lower, rest.upper)) continue;
    rest.length_ns = std::max(rest.length_ns, std::min(2 * before.length_ns, length_max));
  }
  rest.until_ns = now_ns + rest.length_ns;
  if (rests->size() >= kRestsMax) rests->erase(rests->begin());
  rests->push_back(std::move(rest));
}

void RangeBalancer::Failed(const Step& step, uint64_t now_ns) {
  AddRest({step.at, EndOf(step), 0, kFailedRestNanos}, kFailedRestNanosMax, now_ns, &failures_);
}

void RangeBalancer::Done(const Step& step, uint64_t now_ns) {
  std::erase_if(failures_, [&](const Rest& rest) {
    return KeyRangesOverlap(rest.lower, rest.upper, step.at, EndOf(step));
  });
  if (step.kind != Step::Kind::kMove) return;
  moves_left_ -= 1;
  AddRest({step.at, step.upper, 0, kRestNanos}, kRestNanosMax, now_ns, &rests_);
}

// ---- Moves.

std::vector<RangeBalancer::Step> RangeBalancer::PlanMoves(const Situation& situation, Model* model) {
  std::vector<Step> steps;
  for (double left = moves_left_; left >= 1; left -= 1) {
    const uint32_t to = model->idlest();
    const Choice best = BestOfAll(situation, *model, to);
    if (best.gain < kGainShare * model->fair()) break;
    size_t moved = best.piece;
    if (best.part != Choice::Part::kWhole) {
      steps.push_back({Step::Kind::kSplit, model->Cut(best.piece, best.cut), ShardId(0), ""});
      if (best.part == Choice::Part::kBack) ++moved;
    }
    model->Move(moved, to);
    const Piece& piece = model->pieces()[moved];
    steps.push_back({Step::Kind::kMove, piece.lower, ShardId(to), piece.upper});
  }
  return steps;
}

// Of the busiest shard that has something to give: one partition may be all that the very busiest has.
RangeBalancer::Choice RangeBalancer::BestOfAll(const Situation& situation, const Model& model,
                                               uint32_t to) const {
  std::vector<uint32_t> sources;
  for (uint32_t shard = 0; shard < model.shards(); ++shard) {
    if (model.load(shard) > kEvenShare * model.fair()) sources.push_back(shard);
  }
  std::sort(sources.begin(), sources.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(-model.load(a), a) < std::pair(-model.load(b), b);
  });
  for (const uint32_t from : sources) {
    const double wanted = std::min(model.load(from) - model.fair(), model.fair() - model.load(to));
    const Choice best = BestOf(situation, model, from, wanted);
    if (best.gain >= kGainShare * model.fair()) return best;
  }
  return Choice();
}

// Of what shard `from` has; best would be a load of `wanted`.
RangeBalancer::Choice RangeBalancer::BestOf(const Situation& situation, const Model& model, uint32_t from,
                                            double wanted) const {
  Choice whole, cut;
  const bool may_cut = MayCut(situation, model);
  for (size_t i = 0; i < model.pieces().size(); ++i) {
    const Piece& piece = model.pieces()[i];
    if (piece.owner.value != from || piece.load <= 0 || piece.was_moved) continue;
    if (IsResting(piece, situation.now_ns)) continue;
    const double gain = GainOf(piece.load, wanted);
    if (gain > whole.gain) whole = {gain, i, Choice::Part::kWhole, 0};
    if (may_cut) ConsiderCuts(model, i, wanted, &cut);
  }
  return cut.gain > kCutMustGain * whole.gain ? cut : whole;
}

void RangeBalancer::ConsiderCuts(const Model& model, size_t at, double wanted, Choice* best) {
  const Piece& piece = model.pieces()[at];
  double front = 0;
  for (size_t i = 1; i < piece.partitions.size(); ++i) {
    front += piece.partitions[i - 1].load_ns;
    if (piece.partitions[i].bound <= piece.lower) continue;
    const double back = piece.load - front;
    const double front_gain = GainOf(front, wanted);
    const double back_gain = GainOf(back, wanted);
    if (front_gain > best->gain) *best = {front_gain, at, Choice::Part::kFront, i};
    if (back_gain > best->gain) *best = {back_gain, at, Choice::Part::kBack, i};
  }
}

// ---- Merges.

std::vector<RangeBalancer::Step> RangeBalancer::PlanMerge(const Situation& situation, const Model& model) {
  if (situation.now_ns < merged_ns_ + kNanosPerMerge) return {};
  const std::vector<Piece>& pieces = model.pieces();
  std::vector<Step> reunion;  // Of the first bound apart that can be.
  for (size_t i = 1; i < pieces.size(); ++i) {
    const auto made = bounds_.find(pieces[i].lower);
    if (made == bounds_.end() || made->second.warm_ns + kColdNanos > situation.now_ns) continue;
    if (pieces[i - 1].upper != pieces[i].lower || IsIn(failures_, pieces[i], situation.now_ns)) continue;
    if (pieces[i - 1].owner == pieces[i].owner) {
      merged_ns_ = situation.now_ns;
      return {{Step::Kind::kMerge, made->first, ShardId(0), ""}};
    }
    if (reunion.empty() && made->second.warm_ns + kColdApartNanos <= situation.now_ns)
      reunion = PlanReunion(situation, pieces[i - 1], pieces[i]);
  }
  if (!reunion.empty()) merged_ns_ = situation.now_ns;
  return reunion;
}

// Two sides of a bound that has been cold for long and that are of different shards, so that they can be
// merged the next time. Where bounds are scarce only: moves are, too.
std::vector<RangeBalancer::Step> RangeBalancer::PlanReunion(const Situation& situation, const Piece& left,
                                                            const Piece& right) {
  const Piece& colder = left.load < right.load ? left : right;
  const Piece& other = left.load < right.load ? right : left;
  if (bounds_.size() < BoundsMax(situation.shards) / 2) return {};
  if (moves_left_ < 1 || IsResting(colder, situation.now_ns)) return {};
  return {{Step::Kind::kMove, colder.lower, other.owner, colder.upper}};
}

}  // namespace partita
