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

// The pause after a page takes a quarter of its time, that after a sweep this; hints that lead to nothing, as
// of deletes here and there, are looked at ever more seldom.
constexpr uint64_t kPauseShare = 4;
constexpr uint64_t kPauseNanosMin = 1'000'000;
constexpr uint64_t kPauseNanosMax = 100'000'000;
// Pages of a sweep before others have their turn: some 65,000 entries, a tenth of a second.
constexpr int kPagesASweep = 64;
// Places where long sweeps ended; of more the oldest is left to the next scan's hint.
constexpr size_t kPlacesMax = 16;
// The sweep waits a second and more for what was decided before it; longer takes a disk that does not answer.
constexpr uint64_t kVisiblePollNanosMin = 200'000, kVisiblePollNanosMax = 12'800'000;
constexpr int kVisiblePolls = 100;

// Ends the page at the first row, or after as many entries as a stretch has.
class RowStopper final : public RowSink {
 public:
  Verdict Add(std::string_view, Version, std::string_view) override {
    met_row_ = true;
    return Verdict::kStop;
  }
  bool GoOn() override { return ++slices_ < RowlessStretches::kEntriesMax / kEntriesPerSlice; }
  bool met_row() const { return met_row_; }

 private:
  bool met_row_ = false;
  uint64_t slices_ = 0;
};

}  // namespace

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
  while (!self->around_.closing.load()) {
    std::string hint;
    if (!self->stretches_.TakeHint(&hint)) hint = self->TakePlace();
    if (hint.empty()) {
      self->running_.store(false);
      // One given between the look and the store saw us running.
      if (!self->stretches_.has_hint() || self->running_.exchange(true)) co_return;
      continue;
    }
    const bool found = co_await self->SweepAround(std::move(hint));
    self->pause_ = found ? kPauseNanosMin : std::clamp(2 * self->pause_, kPauseNanosMin, kPauseNanosMax);
    co_await SleepFor(self->pause_);
  }
  self->running_.store(false);
}

Task<bool> RowlessSweep::SweepAround(std::string hint) {
  Interval around;
  Version decided;
  std::function<void()> watch = [this, &hint, &around, &decided] { around = Watch(hint, &decided); };
  co_await OnStrand(around_.strand, std::move(watch));
  stretches_.Reclaim();
  if (around.upper.empty()) co_return false;
  std::optional<uint64_t> entries;
  if (co_await AwaitVisible(decided)) {
    int pages = kPagesASweep;
    entries = co_await SweepBelow({around.lower, hint}, &pages);
    *entries += co_await SweepAbove({hint, around.upper}, &pages);
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

RowlessSweep::Interval RowlessSweep::Watch(std::string_view hint, Version* decided) {
  const RangeView* range = around_.views.current().FindRange(hint);
  if (range == nullptr) return {};
  const TableId table(LoadBe32(hint.data()));
  Interval bounds{std::max(range->lower, TableLowerBound(table)), TableUpperBound(table)};
  bounds.upper = NearerEnd(bounds.upper, range->upper);
  if (bounds.upper.empty()) return {};
  *decided = around_.log->last_version();
  return stretches_.Watch(hint, std::move(bounds)).value_or(Interval());
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

Task<uint64_t> RowlessSweep::SweepBelow(Interval keys, int* pages) {
  uint64_t entries = 0;
  while (keys.lower < keys.upper) {
    if (*pages == 0) {
      GoOnLater(keys.upper);
      break;
    }
    --*pages;
    const Result<Page> page = co_await Walk(keys, Direction::kBackward);
    if (!page.ok()) break;
    std::string lower = page->next_key;
    if (page->at_end) {
      // Not down to the row, but to where a scan of the partition begins: rows that come into the partition
      // below would cut it else.
      const std::string& lowest = page->last_key.empty() ? keys.upper : page->last_key;
      lower = std::max({keys.lower, page->next_key, std::string(PartitionPrefix(lowest))});
    }
    if (lower >= keys.upper || !co_await Add({lower, keys.upper}, *page)) break;
    entries += page->entries;
    keys.upper = std::move(lower);
    if (page->at_end) break;
  }
  co_return entries;
}

Task<uint64_t> RowlessSweep::SweepAbove(Interval keys, int* pages) {
  uint64_t entries = 0;
  while (keys.lower < keys.upper) {
    if (*pages == 0) {
      GoOnLater(keys.lower);
      break;
    }
    --*pages;
    const Result<Page> page = co_await Walk(keys, Direction::kForward);
    // No further than what was deleted: a row that comes behind it, as to the end of a queue, cuts nothing.
    if (!page.ok() || page->last_key.empty()) break;
    std::string upper = page->last_key + '\0';
    if (!page->next_key.empty()) upper = std::min(upper, page->next_key);
    if (upper <= keys.lower || !co_await Add({keys.lower, upper}, *page)) break;
    entries += page->entries;
    keys.lower = std::move(upper);
    if (page->at_end) break;
  }
  co_return entries;
}

Task<Result<RowlessSweep::Page>> RowlessSweep::Walk(const Interval& keys, Direction direction) {
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
  request.entries_expected = RowlessStretches::kEntriesMax;
  RowStopper stopper;
  PageScan scan(request, &stopper, source, clock);
  PARTITA_CO_TRY(co_await scan.Run());
  page.last_key = scan.last_key();
  const ScanAnswer answer = scan.answer();
  page.next_key = answer.next_key;
  page.entries = answer.scanned;
  page.at_end = answer.done || stopper.met_row();
  page.nanos = clock.MonotonicNanos() - began;
  co_return page;
}

Task<bool> RowlessSweep::Add(Interval keys, const Page& page) {
  bool added = false;
  std::function<void()> add = [this, &keys, &page, &added] {
    added = stretches_.Add(std::move(keys), page.visible, page.entries);
  };
  co_await OnStrand(around_.strand, std::move(add));
  stretches_.Reclaim();
  if (added && !page.at_end && !around_.closing.load()) {
    co_await SleepFor(std::min(page.nanos / kPauseShare + 1, kPauseNanosMax));
  }
  co_return added;
}

}  // namespace partita
