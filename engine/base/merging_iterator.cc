#include "engine/base/merging_iterator.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/executor.h"
#include "engine/base/key_head.h"
#include "engine/base/task_group.h"

// A loser tree: a knock-out tournament whose inner nodes remember who lost there.
//
//                 winner_ = 2                    1. Each source is a leaf; node n of the tree has the
//                 node 1: loser 0                   children 2n and 2n+1, leaf i is number count + i.
//               /                \               2. The winner holds the next entry of the merge.
//        node 2: loser 1      node 3: loser 3    3. After it moves, only its path to the root is
//         /      \             /       \            played again, one comparison a node.
//       leaf 0  leaf 1      leaf 2   leaf 3      4. When the same source wins twice running, the best
//                                                   of the losers on its path is its *challenger*:
// every other source stands behind one of them. As long as the winner stays before the challenger
// it is still the winner, and nothing is replayed (a run that is alone costs one comparison).
//
// The hard case is I/O: the tree may only be played when every source shows an entry or its end.
// So a source that needs I/O stops the merge (state kNeedsIo) before its path is replayed, and
// Fetch() finishes what was interrupted: `rebuild_` after a seek, the winner's replay after a move.

namespace partita {

MergingIterator::MergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources, Direction direction)
    : sources_(std::move(sources)),
      backward_(direction == Direction::kBackward),
      players_(sources_.size()),
      losers_(sources_.size()) {
  PARTITA_ASSERT(!sources_.empty());
}

IterState MergingIterator::SeekToFirst() {
  for (auto& source : sources_) source->SeekToFirst();
  return AfterSeek();
}

IterState MergingIterator::Seek(std::string_view user_key) {
  for (auto& source : sources_) source->Seek(user_key);
  return AfterSeek();
}

IterState MergingIterator::Next() {
  PARTITA_DEBUG_ASSERT(state_ == IterState::kEntry);
  sources_[winner_]->Next();
  return LeadingSourceMoved();
}

EntryRun MergingIterator::Run(std::optional<std::string_view> before) const {
  const std::optional<std::string_view> others = NextKeyOfOthers();
  if (others && (!before || (*others < *before) != backward_)) return sources_[winner_]->Run(others);
  return sources_[winner_]->Run(before);
}

IterState MergingIterator::SkipRun(const EntryRun& run) {
  PARTITA_DEBUG_ASSERT(state_ == IterState::kEntry);
  sources_[winner_]->SkipRun(run);
  return LeadingSourceMoved();
}

IterState MergingIterator::LeadingSourceMoved() {
  if (sources_[winner_]->state() == IterState::kNeedsIo) return state_ = IterState::kNeedsIo;
  return AfterMove();
}

std::optional<std::string_view> MergingIterator::NextKeyOfOthers() const {
  PARTITA_DEBUG_ASSERT(state_ == IterState::kEntry);
  size_t best = challenger_ != kNone ? challenger_ : BestLoserOnPath();
  if (best == kNone || players_[best].entry == nullptr) return std::nullopt;
  return players_[best].entry->user_key;
}

IterState MergingIterator::AfterSeek() {
  rebuild_ = true;
  for (auto& source : sources_) {
    if (source->state() == IterState::kNeedsIo) return state_ = IterState::kNeedsIo;
  }
  rebuild_ = false;
  for (size_t i = 0; i < sources_.size(); ++i) Load(i);
  winner_ = Play(1);
  challenger_ = kNone;
  return state_ = players_[winner_].entry != nullptr ? IterState::kEntry : IterState::kEnd;
}

IterState MergingIterator::AfterMove() {
  Load(winner_);
  if (challenger_ != kNone && players_[winner_].entry != nullptr && Before(winner_, challenger_)) {
    return state_ = IterState::kEntry;
  }
  Replay();
  return state_ = players_[winner_].entry != nullptr ? IterState::kEntry : IterState::kEnd;
}

void MergingIterator::Load(size_t source) {
  Player& player = players_[source];
  if (sources_[source]->state() != IterState::kEntry) {
    player.entry = nullptr;
    return;
  }
  player.entry = &sources_[source]->entry();
  std::string_view key = player.entry->user_key;
  player.head = HeadOf(key);
  player.second_head = HeadOf(key, 8);
}

// True when source `a` comes out before source `b`.
bool MergingIterator::Before(size_t a, size_t b) const {
  const Player& left = players_[a];
  const Player& right = players_[b];
  if (left.entry == nullptr || right.entry == nullptr) return left.entry != nullptr;
  if (left.head != right.head) return (left.head < right.head) != backward_;
  if (left.second_head != right.second_head) return (left.second_head < right.second_head) != backward_;
  return BeforeByRest(a, b);
}

bool MergingIterator::BeforeByRest(size_t a, size_t b) const {
  const Entry& left = *players_[a].entry;
  const Entry& right = *players_[b].entry;
  // Equal heads mean equal bytes only as far as both keys reach.
  size_t known = std::min({kHeadsSize, left.user_key.size(), right.user_key.size()});
  int order = left.user_key.substr(known).compare(right.user_key.substr(known));
  if (order != 0) return (order < 0) != backward_;
  if (left.version != right.version) return left.version > right.version;
  PARTITA_DEBUG_ASSERT(left.version != right.version);
  return a < b;
}

// Plays the subtree under `node`, notes the losers, and returns the winner.
size_t MergingIterator::Play(size_t node) {
  if (node >= sources_.size()) return node - sources_.size();
  size_t left = Play(2 * node);
  size_t right = Play(2 * node + 1);
  bool left_wins = Before(left, right);
  losers_[node] = left_wins ? right : left;
  return left_wins ? left : right;
}

// Plays the winner's path again after it moved.
void MergingIterator::Replay() {
  size_t previous = winner_;
  for (size_t node = (winner_ + sources_.size()) / 2; node > 0; node /= 2) {
    if (Before(losers_[node], winner_)) std::swap(losers_[node], winner_);
  }
  challenger_ = winner_ == previous ? BestLoserOnPath() : kNone;
}

size_t MergingIterator::BestLoserOnPath() const {
  size_t best = kNone;
  for (size_t node = (winner_ + sources_.size()) / 2; node > 0; node /= 2) {
    if (best == kNone || Before(losers_[node], best)) best = losers_[node];
  }
  return best;
}

Task<Status> MergingIterator::Fetch() {
  PARTITA_ASSERT(state_ == IterState::kNeedsIo);
  Executor* executor = Executor::Current();
  size_t waiting = std::count_if(sources_.begin(), sources_.end(),
                                 [](const auto& source) { return source->state() == IterState::kNeedsIo; });
  // An error leaves the failed source asking, and with it the merge: nothing is passed over.
  if (executor != nullptr && waiting > 1) {
    PARTITA_CO_TRY(co_await FetchTogether(*executor));
  } else {
    PARTITA_CO_TRY(co_await FetchOneByOne());
  }
  if (rebuild_) {
    AfterSeek();
  } else {
    AfterMove();
  }
  co_return Status();
}

Task<Status> MergingIterator::FetchOneByOne() {
  for (auto& source : sources_) {
    while (source->state() == IterState::kNeedsIo) PARTITA_CO_TRY(co_await source->Fetch());
  }
  co_return Status();
}

namespace {
Task<void> FetchUntilDone(EntryIterator* source, Status* outcome) {
  while (outcome->ok() && source->state() == IterState::kNeedsIo) *outcome = co_await source->Fetch();
}
}  // namespace

// After a seek, as many reads are in flight as sources wait: the seek takes one read's time.
Task<Status> MergingIterator::FetchTogether(Executor& executor) {
  std::vector<Status> outcomes(sources_.size());
  TaskGroup group;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i]->state() != IterState::kNeedsIo) continue;
    Task<void> fetch = FetchUntilDone(sources_[i].get(), &outcomes[i]);
    group.Spawn(executor, std::move(fetch));
  }
  co_await group.Join();
  for (const Status& outcome : outcomes) PARTITA_CO_TRY(outcome);
  co_return Status();
}

namespace {
class EmptyIterator final : public EntryIterator {
 public:
  IterState SeekToFirst() override { return IterState::kEnd; }
  IterState Seek(std::string_view) override { return IterState::kEnd; }
  IterState Next() override { return IterState::kEnd; }
  IterState state() const override { return IterState::kEnd; }
  Task<Status> Fetch() override { co_return Status(); }
  const Entry& entry() const override { return entry_; }

 private:
  Entry entry_;
};

}  // namespace

std::unique_ptr<EntryIterator> MakeMergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources,
                                                   Direction direction) {
  if (sources.empty()) return std::make_unique<EmptyIterator>();
  if (sources.size() == 1) return std::move(sources.front());
  return std::make_unique<MergingIterator>(std::move(sources), direction);
}

}  // namespace partita
