#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/entry_iterator.h"
#include "engine/base/executor.h"

namespace partita {

// One cursor over several: every entry of every source, in internal order (entry_iterator.h says
// what that is in each direction). Nothing is hidden or dropped here: all versions come out, and
// whoever reads decides.
//
// The sources are all cursors of one direction. Their order matters in one case only: two entries
// with the same key *and* version, which a healthy store does not have (asserted in debug builds),
// come out in the order of their sources, so the newer source belongs first.
//
// kNeedsIo: a source that must read makes the merged cursor ask for Fetch(), which fetches every
// source that waits (beside each other on an executor, one by one in blocking mode) and then goes
// on. A failed Fetch leaves the cursor asking; no entry is ever passed over (F43, F44, F46).
//
// Cost: Next() allocates nothing. One comparison an entry while one source leads, none while it is
// the only one left, about log2(sources) when the lead changes. All but ties are comparisons of two integers,
// however long the prefix is that keys share; what a tie has found equal is not looked at again.
class MergingIterator final : public EntryIterator {
 public:
  // Owns the sources. REQUIRES: !sources.empty().
  MergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources, Direction direction);

  IterState SeekToFirst() override;
  IterState Seek(std::string_view user_key) override;
  IterState Next() override;
  IterState state() const override { return state_; }
  Task<Status> Fetch() override;
  const Entry& entry() const override { return *players_[winner_].entry; }
  // What the leading source shows, up to the next key of the others.
  const BlockPin* pin() const override { return sources_[winner_]->pin(); }
  EntryRun Run(std::optional<std::string_view> before) const override;
  void RunKeyTo(uint32_t i, std::string* out) const override { sources_[winner_]->RunKeyTo(i, out); }
  IterState SkipRun(const EntryRun& run) override;

  // The index of the source that entry() comes from. REQUIRES: state() == kEntry.
  size_t leading_source() const { return winner_; }

  // The key that the merge would go on with if the leading source ended here; nothing when all others
  // are at their end. Valid until the next move. REQUIRES: state() == kEntry.
  std::optional<std::string_view> NextKeyOfOthers() const;

  // To be called after the caller itself moved the leading source forward. REQUIRES: state() was kEntry.
  IterState LeadingSourceMoved();

 private:
  struct Player {
    uint64_t code = kEnded;
    const Entry* entry = nullptr;  // Null at the end.
  };
  static constexpr uint64_t kEnded = UINT64_MAX;

  IterState AfterSeek();
  IterState AfterMove();
  void Load(size_t source);
  IterState ShowWinner();
  uint64_t CodeAt(std::string_view key, size_t offset) const;
  uint64_t CodeBehind(std::string_view base, std::string_view key) const;
  bool Beats(size_t a, size_t b);
  bool BeatsByKey(size_t a, size_t b);
  size_t Play(size_t node);
  void Replay();
  Task<Status> FetchOneByOne();
  Task<Status> FetchTogether(Executor& executor);

  std::vector<std::unique_ptr<EntryIterator>> sources_;
  bool backward_;
  std::vector<Player> players_;
  std::vector<size_t> losers_;  // By node; [0] is unused.
  size_t winner_ = 0;
  std::string shown_key_;         // The winner's.
  uint64_t challenger_code_ = 0;  // Known only while the winner leads for longer than one entry; else 0.
  bool rebuild_ = false;          // A seek waits for I/O; the tree is to be built.
  IterState state_ = IterState::kEnd;
};

// A merging iterator over any number of sources: with none it is at its end, with one it is that source.
std::unique_ptr<EntryIterator> MakeMergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources,
                                                   Direction direction);

}  // namespace partita
