#include "engine/rowless_sweep.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "engine/base/coding.h"
#include "engine/base/site.h"
#include "engine/base/user_key.h"
#include "engine/page_scan.h"

namespace partita {

namespace {

// The pause after a page or a sweep takes a quarter of its time, after a sweep at least so much: what is
// deleted meanwhile the first scan has to walk. Hints that lead to nothing, as of deletes here and there, are
// looked at ever more seldom.
constexpr uint64_t kPauseShare = 4;
constexpr uint64_t kPauseNanosMin = 200'000;
constexpr uint64_t kPauseNanosMax = 100'000'000;
// Pieces of a sweep before others have their turn: some 65,000 entries.
constexpr int kPiecesASweep = 64;
// More of them from what is known up to a hint.
constexpr int kPiecesToHint = 16;
// Of one walk, which begins with one and takes twice as many each time: only a cursor that goes on reads
// ahead, and most sweeps find less than one. Some 8 ms, for which a view is held.
constexpr int kPiecesAWalk = 16;
// Places where long sweeps ended; of more the oldest is left to the next scan's hint.
constexpr size_t kPlacesMax = 16;
// The sweep waits a second and more for what was decided before it; longer takes a disk that does not answer.
constexpr uint64_t kVisiblePollNanosMin = 200'000, kVisiblePollNanosMax = 12'800'000;
constexpr int kVisiblePolls = 100;

}  // namespace

// Ends the page at the first row or after so many pieces, and notes where each of them ends.
class RowlessSweep::PieceMarker final : public RowSink {
 public:
  PieceMarker(int pieces_max, const std::atomic<bool>& closing)
      : pieces_max_(static_cast<size_t>(pieces_max)), closing_(closing) {}
  // Before it runs.
  void SetScan(const PageScan* scan) { scan_ = scan; }

  Verdict Add(std::string_view, Version, std::string_view) override {
    met_row_ = true;
    return Verdict::kStop;
  }
  bool GoOnBehind(uint64_t scanned, const BlockCounts&) override {
    if (closing_.load() || scanned >= pieces_max_ * 2 * RowlessStretches::kEntriesMax) return false;
    const std::string& key = scan_->last_key();
    const bool is_full = scanned - marked_ >= RowlessStretches::kEntriesMax;
    // No mark within one key's versions.
    if (!is_full || key.empty() || (!marks_.empty() && marks_.back().key == key)) return true;
    if (marks_.size() + 1 == pieces_max_) return false;
    marks_.push_back({key, scanned - std::exchange(marked_, scanned)});
    return true;
  }
  bool met_row() const { return met_row_; }

  struct Mark {
    std::string key;
    uint64_t entries;  // Since the mark before.
  };
  // The last keys of all pieces but the last.
  const std::vector<Mark>& marks() const { return marks_; }

 private:
  const size_t pieces_max_;
  const std::atomic<bool>& closing_;
  const PageScan* scan_ = nullptr;
  std::vector<Mark> marks_;
  uint64_t marked_ = 0;  // Entries of all of them.
  bool met_row_ = false;
};

void RowlessSweep::Hint(std::string_view user_key) {
  if (around_.read_only) return;
  stretches_.Hint(user_key);
  Schedule();
}

void RowlessSweep::NoteWrite(const WriteRequest& request) {
  PARTITA_ASSERT(around_.strand.HeldByThisThread());
  uint64_t deletes = 0;
  std::string_view last_deleted;
  for (const WriteOp& op : request.ops) {
    if (op.kind != WriteKind::kDelete) {
      stretches_.NoteRow(op.user_key);
    } else {
      ++deletes;
      last_deleted = op.user_key;
    }
  }
  if (deletes > 0 && stretches_.NoteDeletes(deletes, last_deleted)) Schedule();
}

void RowlessSweep::Schedule() {
  if (around_.closing.load() || running_.exchange(true)) return;
  around_.tasks.Spawn(around_.runtime.shard_executor(around_.shard), SweepHints(this));
}

Task<void> RowlessSweep::SweepHints(RowlessSweep* self) {
  Clock& clock = self->around_.runtime.clock();
  while (!self->around_.closing.load()) {
    std::string hint;
    if (!self->stretches_.TakeHint(&hint)) hint = self->TakePlace();
    if (hint.empty()) {
      self->running_.store(false);
      // One given between the look and the store saw us running.
      if (!self->stretches_.has_hint() || self->running_.exchange(true)) co_return;
      continue;
    }
    const uint64_t began = clock.MonotonicNanos();
    const bool found = co_await self->SweepAround(std::move(hint));
    const uint64_t pause = found ? (clock.MonotonicNanos() - began) / kPauseShare : 2 * self->pause_;
    self->pause_ = std::clamp(pause, kPauseNanosMin, kPauseNanosMax);
    co_await SleepFor(self->pause_);
  }
  self->running_.store(false);
}

Task<bool> RowlessSweep::SweepAround(std::string hint) {
  Interval around;
  Watched watched;
  std::function<void()> watch = [this, &hint, &around, &watched] { around = Watch(hint, &watched); };
  co_await OnStrand(around_.strand, std::move(watch));
  stretches_.Reclaim();
  if (around.upper.empty()) co_return false;
  std::optional<uint64_t> entries;
  if (co_await AwaitVisible(watched.decided)) {
    int pieces = kPiecesASweep;
    entries = 0;
    Part below{{around.lower, hint}, /*to_end=*/true}, above{{hint, around.upper}, watched.ends_at_stretch};
    // Forward where that may come to the hint: what was deleted in order lies so in memory. It may also be
    // long, and nothing that anybody asks for.
    int pieces_to_hint = kPiecesToHint;
    if (watched.begins_at_stretch) *entries += co_await Sweep(&below, Direction::kForward, &pieces_to_hint);
    below.to_end = watched.begins_at_stretch;
    *entries += co_await Sweep(&below, Direction::kBackward, &pieces);
    if (pieces > 0) *entries += co_await Sweep(&above, Direction::kForward, &pieces);
  }
  std::function<void()> end = [this, entries] { stretches_.EndWatch(entries); };
  co_await OnStrand(around_.strand, std::move(end));
  co_return entries.value_or(0) >= RowlessStretches::kHintKeys;
}

void RowlessSweep::GoOnLater(std::string place) {
  if (go_on_.size() == kPlacesMax) go_on_.erase(go_on_.begin());
  go_on_.push_back(std::move(place));
}

std::string RowlessSweep::TakePlace() {
  if (go_on_.empty()) return {};
  std::string place = std::move(go_on_.back());
  go_on_.pop_back();
  return place;
}

RowlessSweep::Interval RowlessSweep::Watch(std::string_view hint, Watched* watched) {
  const RangeView* range = around_.views.current().FindRange(hint);
  if (range == nullptr) return {};
  const TableId table(LoadBe32(hint.data()));
  Interval bounds{std::max(range->lower, TableLowerBound(table)), TableUpperBound(table)};
  bounds.upper = NearerEnd(bounds.upper, range->upper);
  if (bounds.upper.empty()) return {};
  watched->decided = around_.log->last_version();
  const Interval all = bounds;
  Interval around = stretches_.Watch(hint, std::move(bounds)).value_or(Interval());
  watched->begins_at_stretch = around.lower > all.lower;
  watched->ends_at_stretch = around.upper < all.upper;
  return around;
}

Task<bool> RowlessSweep::AwaitVisible(Version decided) {
  if (!SiteIsOn("rowless.visible.wait")) co_return true;
  uint64_t poll = kVisiblePollNanosMin;
  for (int polls = 0; around_.log->visible_version() < decided; ++polls) {
    if (polls == kVisiblePolls || around_.closing.load()) co_return false;
    co_await SleepFor(poll);
    poll = std::min(2 * poll, kVisiblePollNanosMax);
  }
  co_return true;
}

Task<uint64_t> RowlessSweep::Sweep(Part* keys, Direction direction, int* pieces) {
  const bool forward = direction == Direction::kForward;
  std::string* from = forward ? &keys->lower : &keys->upper;
  uint64_t entries = 0;
  for (int at_once = 1; keys->lower < keys->upper; at_once = std::min(2 * at_once, kPiecesAWalk)) {
    if (*pieces == 0) {
      GoOnLater(*from);
      break;
    }
    const Result<Page> page = co_await Walk(*keys, direction, std::min(at_once, *pieces));
    if (!page.ok() || page->pieces.empty()) break;
    *pieces -= static_cast<int>(std::min<size_t>(page->pieces.size(), *pieces));
    const auto [added_entries, added] = co_await Add(*page);
    entries += added_entries;
    if (added > 0) *from = forward ? page->pieces[added - 1].keys.upper : page->pieces[added - 1].keys.lower;
    if (added < page->pieces.size() || page->at_end) break;
  }
  co_return entries;
}

Task<Result<RowlessSweep::Page>> RowlessSweep::Walk(const Part& keys, Direction direction, int pieces_max) {
  if (around_.closing.load()) co_return Status::Closed("the store is closing");
  Clock& clock = around_.runtime.clock();
  const uint64_t began = clock.MonotonicNanos();
  ViewPin view = around_.views.Pin();
  const bool doubt = around_.log->in_doubt();
  Page page;
  page.visible = around_.log->visible_version();
  const RangeView* range = view->FindRange(keys.lower);
  if (range == nullptr || (!range->upper.empty() && range->upper < keys.upper)) {
    co_return Status::Moved("shard does not own the keys any more");
  }
  const PageScan::Source source{.view = *view,
                                .range = *range,
                                .log = *around_.log,
                                .visible = page.visible,
                                .doubt = doubt,
                                .read_ahead = &around_.read_ahead,
                                .load = nullptr,
                                .rowless = nullptr};
  ScanRequest request;
  request.lower = keys.lower;
  request.upper = keys.upper;
  request.direction = direction;
  request.entries_expected = static_cast<uint64_t>(pieces_max) * RowlessStretches::kEntriesMax;
  PieceMarker marker(pieces_max, around_.closing);
  PageScan scan(request, &marker, source, clock);
  marker.SetScan(&scan);
  const Status walked = co_await scan.Run();
  if (!walked.ok() && marker.marks().empty()) co_return walked;
  const std::string last_key = scan.last_key();
  const ScanAnswer answer = scan.answer();
  page.at_end = !walked.ok() || answer.done || marker.met_row();

  Interval left = keys;
  const bool forward = direction == Direction::kForward;
  uint64_t entries_left = answer.scanned;
  for (const PieceMarker::Mark& mark : marker.marks()) {
    Piece piece{left, mark.entries};
    entries_left -= mark.entries;
    if (forward) {
      piece.keys.upper = left.lower = mark.key + '\0';
    } else {
      piece.keys.lower = left.upper = mark.key;
    }
    page.pieces.push_back(std::move(piece));
  }
  if (walked.ok()) {  // Else it ends at damage or doubt, wherever behind the last mark that is.
    // To what is known, so that it is leapt over with that at once, wherever partitions begin.
    Piece last = keys.to_end && answer.done
                     ? Piece{std::move(left)}
                     : LastPiece(std::move(left), direction, last_key, answer, page.at_end);
    last.entries = entries_left;
    if (last.keys.lower < last.keys.upper) page.pieces.push_back(std::move(last));
  }
  page.nanos = clock.MonotonicNanos() - began;
  co_return page;
}

RowlessSweep::Piece RowlessSweep::LastPiece(Interval left, Direction direction, const std::string& last_key,
                                            const ScanAnswer& answer, bool at_end) {
  if (direction == Direction::kForward) {
    // No further than what was deleted: a row that comes behind it, as to the end of a queue, cuts nothing.
    left.upper = last_key.empty() ? left.lower : last_key + '\0';
    // Where a row ended the page, the key may be one behind it.
    if (!answer.next_key.empty()) left.upper = std::min(left.upper, answer.next_key);
  } else if (at_end) {
    // Not down to the row, but to where a scan of the partition begins: rows that come into the partition
    // below would cut it else.
    const std::string& lowest = last_key.empty() ? left.upper : last_key;
    left.lower = std::max({left.lower, answer.next_key, std::string(PartitionPrefix(lowest))});
  } else {
    left.lower = answer.next_key;
  }
  return {std::move(left)};
}

Task<std::pair<uint64_t, size_t>> RowlessSweep::Add(const Page& page) {
  uint64_t entries = 0;
  size_t added = 0;
  std::function<void()> add = [this, &page, &entries, &added] {
    for (const Piece& piece : page.pieces) {
      if (!stretches_.Add(piece.keys, page.visible, piece.entries)) break;
      entries += piece.entries;
      ++added;
    }
  };
  co_await OnStrand(around_.strand, std::move(add));
  stretches_.Reclaim();
  if (added == page.pieces.size() && !page.at_end && !around_.closing.load()) {
    co_await SleepFor(std::min(page.nanos / kPauseShare + 1, kPauseNanosMax));
  }
  co_return std::pair(entries, added);
}

}  // namespace partita
