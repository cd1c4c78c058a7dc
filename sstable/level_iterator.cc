#include "sstable/level_iterator.h"

#include <algorithm>

#include "engine/base/user_key.h"
#include "sstable/table_scan.h"
#include "sstable/table_zones.h"

namespace partita {

namespace {

// Stands in for a file that could not be opened: any entry it may hold is a read that fails (F43).
class DamagedFileIterator : public EntryIterator {
 public:
  DamagedFileIterator(const FileRef& file, const IterOptions& options)
      : span_{std::max({file.lower, file.info->smallest, options.lower}), file.info->largest + '\0',
              file.info->version_max, *file.damage},
        sink_(options.scan == nullptr ? nullptr : options.scan->skipped) {
    for (const std::string& bound : {file.upper, options.upper}) {
      if (!bound.empty() && bound < span_.upper) span_.upper = bound;
    }
  }
  IterState SeekToFirst() override { return state_ = IterState::kNeedsIo; }
  IterState Seek(std::string_view) override { return state_ = IterState::kNeedsIo; }
  IterState Next() override { return state_; }
  IterState state() const override { return state_; }
  Task<Status> Fetch() override {
    if (sink_ == nullptr) co_return span_.why;
    if (span_.lower < span_.upper) sink_->Skipped(span_);
    state_ = IterState::kEnd;
    co_return Status();
  }
  const Entry& entry() const override { return entry_; }

 private:
  SkippedSpan span_;
  SkippedSpanSink* const sink_;  // Null: damage is an error.
  IterState state_ = IterState::kNeedsIo;
  Entry entry_;
};

}  // namespace

std::unique_ptr<TableIterator> NewTableIterator(const FileRef& file, Direction direction,
                                                const IterOptions& options) {
  IterOptions clipped = options;
  clipped.lower = std::max(options.lower, file.lower);
  clipped.upper = NearerEnd(options.upper, file.upper);
  return file.table->NewIterator(direction, std::move(clipped));
}

std::unique_ptr<EntryIterator> NewFileIterator(const FileRef& file, Direction direction,
                                               const IterOptions& options) {
  if (file.table == nullptr) return std::make_unique<DamagedFileIterator>(file, options);
  return NewTableIterator(file, direction, options);
}

LevelIterator::LevelIterator(std::vector<const FileRef*> files, Direction direction, IterOptions options,
                             std::optional<FilesBeneath> beneath)
    : files_(std::move(files)),
      direction_(direction),
      options_(std::move(options)),
      entries_expected_(options_.entries_expected),
      raw_bytes_expected_(options_.raw_bytes_expected),
      beneath_(std::move(beneath)) {
  if (direction_ == Direction::kBackward) std::reverse(files_.begin(), files_.end());
  options_.beneath = beneath_ ? &*beneath_ : nullptr;
}

// ---- Passing over files.

// True when the walk at hand wants no key of the file or of those behind it.
bool LevelIterator::BeyondUntil(const FileRef& file) const {
  if (options_.scan == nullptr || options_.scan->until.empty()) return false;
  const std::string_view until = options_.scan->until;
  if (direction_ == Direction::kForward) return file.first() >= until;
  return file.info->largest < until || (!file.upper.empty() && file.upper <= until);
}

// True when nothing of the file is wanted, and nothing that it hides.
bool LevelIterator::PassOver(const FileRef& file) {
  if (!beneath_ || file.table == nullptr || file.info->version_max > options_.scan->visible) return false;
  if (TableZones(*options_.scan->predicate, file.table->properties()).FileMayMatch()) return false;
  return !beneath_->MayMatch(file.first(), file.info->largest, file.info->version_max);
}

IterState LevelIterator::ShowMilestone() {
  const FileRef& next = *files_[at_];
  milestone_key_ = next.first();
  if (direction_ == Direction::kBackward) {
    milestone_key_ = next.info->largest;
    milestone_key_.push_back('\0');
    if (!next.upper.empty() && next.upper < milestone_key_) milestone_key_ = next.upper;
  }
  milestone_ = options_.scan->Milestone(milestone_key_);
  at_milestone_ = true;
  return IterState::kEntry;
}

// To the first entry of the files from `index` on, at or behind `key`; nothing: behind the files in front.
IterState LevelIterator::EnterFrom(size_t index, std::optional<std::string_view> key) {
  current_ = nullptr;
  table_ = nullptr;
  for (at_ = index; at_ < files_.size() && !BeyondUntil(*files_[at_]); ++at_) {
    const FileRef& file = *files_[at_];
    // Of what is begun it was asked before.
    const bool begun = next_ != nullptr && next_at_ == at_;
    if (!begun && PassOver(file)) {
      if (at_ >= passed_to_) {
        passed_to_ = at_ + 1;
        ++options_.scan->counts.files_skipped;
        options_.scan->counts.blocks_skipped += file.table->properties().data_blocks;
      }
      const size_t cost = 8 * (2 + options_.scan->predicate->cost()) + beneath_->TakeCost();
      if (!options_.scan->Passed(cost) || at_ + 1 == files_.size()) continue;
      ++at_;
      return ShowMilestone();
    }
    const IterState state = OpenAt(key);
    if (state != IterState::kEnd) return state;
  }
  return IterState::kEnd;
}

// ---- Moving.

void LevelIterator::Open() {
  const FileRef& file = *files_[at_];
  table_ = nullptr;
  if (file.table == nullptr) {
    current_ = NewFileIterator(file, direction_, options_);
  } else {
    UseTable(NewTableIterator(file, direction_, options_));
  }
}

void LevelIterator::UseTable(std::unique_ptr<TableIterator> table) {
  table_ = table.get();
  current_ = std::move(table);
}

IterState LevelIterator::OpenAt(std::optional<std::string_view> key) {
  if (next_ == nullptr || next_at_ != at_) {
    next_ = nullptr;
    Open();
    return key ? current_->Seek(*key) : current_->SeekToFirst();
  }
  UseTable(std::move(next_));
  return current_->state();
}

// Has what the next file begins with read while what is left of this one is scanned.
void LevelIterator::AnticipateNext() {
  if (table_ == nullptr || !table_->ReadsToEnd()) return;
  if (next_at_ != at_ + 1) {
    next_at_ = at_ + 1;
    if (next_at_ == files_.size()) return;
    const FileRef& file = *files_[next_at_];
    if (file.table == nullptr || BeyondUntil(file) || PassOver(file)) return;
    IterOptions options = options_;
    options.read_in_stride = table_->read_in_stride();
    next_ = NewTableIterator(file, direction_, options);
  }
  if (next_ != nullptr) next_->Anticipate();
}

// From here on nothing is known of how the scan goes on.
void LevelIterator::Jump() {
  at_milestone_ = false;
  options_.read_in_stride = 0;
  options_.entries_expected = entries_expected_;
  options_.raw_bytes_expected = raw_bytes_expected_;
  next_ = nullptr;
  next_at_ = 0;
}

IterState LevelIterator::Settle(IterState state) {
  if (state == IterState::kEnd) {
    if (table_ != nullptr) {
      options_.read_in_stride = table_->read_in_stride();
      // The rest is a scan that expects nothing.
      if (table_->IsBeyondExpected()) options_.entries_expected = options_.raw_bytes_expected = 0;
    }
    state = EnterFrom(at_ + 1);
  }
  return state_ = state;
}

IterState LevelIterator::SeekToFirst() {
  Jump();
  return state_ = EnterFrom(0);
}

IterState LevelIterator::Seek(std::string_view user_key) {
  Jump();
  // Files wholly in front of the key are skipped unopened.
  const auto in_front = [&](const FileRef* file) {
    if (direction_ == Direction::kBackward) return file->first() >= user_key;
    return file->info->largest < user_key || (!file->upper.empty() && file->upper <= user_key);
  };
  const auto first = std::partition_point(files_.begin(), files_.end(), in_front);
  return state_ = EnterFrom(static_cast<size_t>(first - files_.begin()), user_key);
}

IterState LevelIterator::Next() {
  if (!at_milestone_) return Settle(current_->Next());
  at_milestone_ = false;
  return state_ = EnterFrom(at_);
}

Task<Status> LevelIterator::Fetch() {
  PARTITA_CO_TRY(co_await current_->Fetch());
  AnticipateNext();
  Settle(current_->state());
  co_return Status();
}

}  // namespace partita
