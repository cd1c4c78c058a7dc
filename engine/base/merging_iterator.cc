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
//                                                   code of the losers on its path is its *challenger*:
// as long as the winner's own code is less it is still the winner, and nothing is replayed (a run that is
// alone costs one comparison).
//
// Keys are compared by *codes* (offset-value coding). A code says where a key first differs from one that
// came before it in the merge, its base, and by which byte. Of two keys with one base the one that differs
// later comes first, and where they differ at the same place the byte decides; only keys with the same code
// are compared themselves, from that place on. Bases agree wherever a match is played:
//   - the losers on the winner's path lost to it, so their codes are of its key; when its source moves on,
//     the new key gets a code of the old one (shown_key_);
//   - who loses by the code keeps it: what leaves the base earlier leaves the winner there, too;
//   - who loses by the key gets a new code, of the winner.
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
  const Player* best = nullptr;
  for (size_t node = (winner_ + sources_.size()) / 2; node > 0; node /= 2) {
    const Player& loser = players_[losers_[node]];
    if (loser.entry == nullptr) continue;
    const bool first =
        best == nullptr || loser.code < best->code ||
        (loser.code == best->code && (loser.entry->user_key < best->entry->user_key) != backward_);
    if (first) best = &loser;
  }
  if (best == nullptr) return std::nullopt;
  return best->entry->user_key;
}

IterState MergingIterator::AfterSeek() {
  rebuild_ = true;
  for (auto& source : sources_) {
    if (source->state() == IterState::kNeedsIo) return state_ = IterState::kNeedsIo;
  }
  rebuild_ = false;
  for (size_t i = 0; i < sources_.size(); ++i) {
    Load(i);
    Player& player = players_[i];
    if (player.entry != nullptr) player.code = CodeAt(player.entry->user_key, 0);
  }
  winner_ = Play(1);
  challenger_code_ = 0;
  return ShowWinner();
}

IterState MergingIterator::AfterMove() {
  Load(winner_);
  Player& player = players_[winner_];
  // Without others no code is wanted any more.
  if (player.entry != nullptr && challenger_code_ == kEnded) return state_ = IterState::kEntry;
  if (player.entry != nullptr) player.code = CodeBehind(shown_key_, player.entry->user_key);
  if (player.code >= challenger_code_) Replay();
  return ShowWinner();
}

IterState MergingIterator::ShowWinner() {
  const Entry* entry = players_[winner_].entry;
  if (entry == nullptr) return state_ = IterState::kEnd;
  shown_key_.assign(entry->user_key);
  return state_ = IterState::kEntry;
}

// What the source shows; its code is the caller's to find.
void MergingIterator::Load(size_t source) {
  Player& player = players_[source];
  const bool ended = sources_[source]->state() != IterState::kEntry;
  player.entry = ended ? nullptr : &sources_[source]->entry();
  player.code = kEnded;
}

namespace {

// The high bits of a code: how far the place is from this. The low ones: the byte there, from 1 on, or 0 at
// the end of the key.
constexpr uint64_t kOffsetsEnd = uint64_t{1} << 32;
constexpr unsigned kByteBits = 9;
constexpr uint64_t kByteMax = 256;
constexpr uint64_t kSameKey = 0;

size_t OffsetOf(uint64_t code) { return kOffsetsEnd - (code >> kByteBits); }

}  // namespace

// Of a key that leaves its base there.
uint64_t MergingIterator::CodeAt(std::string_view key, size_t offset) const {
  const uint64_t byte = offset < key.size() ? uint64_t{static_cast<uint8_t>(key[offset])} + 1 : 0;
  return (kOffsetsEnd - offset) << kByteBits | (backward_ ? kByteMax - byte : byte);
}

uint64_t MergingIterator::CodeBehind(std::string_view base, std::string_view key) const {
  const size_t shared = CommonPrefix(base, key);
  return shared == base.size() && shared == key.size() ? kSameKey : CodeAt(key, shared);
}

// True when source `a` comes out before source `b`. REQUIRES: their codes are of one base. Afterwards the
// loser's is of the winner.
bool MergingIterator::Beats(size_t a, size_t b) {
  const uint64_t left = players_[a].code;
  const uint64_t right = players_[b].code;
  if (left != right) return left < right;
  return left == kEnded || BeatsByKey(a, b);
}

bool MergingIterator::BeatsByKey(size_t a, size_t b) {
  Player& left = players_[a];
  Player& right = players_[b];
  if (left.code != kSameKey) {
    const std::string_view left_key = left.entry->user_key;
    const std::string_view right_key = right.entry->user_key;
    const size_t from = OffsetOf(left.code);
    const size_t differ = from + CommonPrefix(left_key.substr(from), right_key.substr(from));
    const uint64_t left_code = CodeAt(left_key, differ);
    const uint64_t right_code = CodeAt(right_key, differ);
    if (left_code < right_code) {
      right.code = right_code;
      return true;
    }
    if (right_code < left_code) {
      left.code = left_code;
      return false;
    }
  }
  const Version left_version = left.entry->version;
  const Version right_version = right.entry->version;
  PARTITA_DEBUG_ASSERT(left_version != right_version);
  const bool left_first = left_version != right_version ? left_version > right_version : a < b;
  (left_first ? right : left).code = kSameKey;
  return left_first;
}

// Plays the subtree under `node`, notes the losers, and returns the winner.
size_t MergingIterator::Play(size_t node) {
  if (node >= sources_.size()) return node - sources_.size();
  size_t left = Play(2 * node);
  size_t right = Play(2 * node + 1);
  bool left_wins = Beats(left, right);
  losers_[node] = left_wins ? right : left;
  return left_wins ? left : right;
}

// Plays the winner's path again after it moved.
void MergingIterator::Replay() {
  const size_t previous = winner_;
  uint64_t best = kEnded;
  for (size_t node = (winner_ + sources_.size()) / 2; node > 0; node /= 2) {
    if (Beats(losers_[node], winner_)) std::swap(losers_[node], winner_);
    best = std::min(best, players_[losers_[node]].code);
  }
  challenger_code_ = winner_ == previous ? best : 0;
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
