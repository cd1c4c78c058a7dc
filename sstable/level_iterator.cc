#include "sstable/level_iterator.h"

#include <algorithm>

namespace partita {

namespace {

// Stands in for a file that could not be opened: any entry it may hold is a read that fails (F43).
class DamagedFileIterator : public EntryIterator {
 public:
  explicit DamagedFileIterator(Status damage) : damage_(std::move(damage)) {}
  IterState SeekToFirst() override { return IterState::kNeedsIo; }
  IterState Seek(std::string_view) override { return IterState::kNeedsIo; }
  IterState Next() override { return IterState::kNeedsIo; }
  IterState state() const override { return IterState::kNeedsIo; }
  Task<Status> Fetch() override { co_return damage_; }
  const Entry& entry() const override { return entry_; }

 private:
  Status damage_;
  Entry entry_;
};

}  // namespace

std::unique_ptr<EntryIterator> NewFileIterator(const FileRef& file, Direction direction,
                                               const IterOptions& options) {
  if (file.table == nullptr) return std::make_unique<DamagedFileIterator>(file.damage);
  IterOptions clipped = options;
  clipped.lower = std::max(options.lower, file.lower);
  if (clipped.upper.empty() || (!file.upper.empty() && file.upper < clipped.upper))
    clipped.upper = file.upper;
  return file.table->NewIterator(direction, std::move(clipped));
}

LevelIterator::LevelIterator(std::vector<const FileRef*> files, Direction direction, IterOptions options)
    : files_(std::move(files)), direction_(direction), options_(std::move(options)) {
  if (direction_ == Direction::kBackward) std::reverse(files_.begin(), files_.end());
}

void LevelIterator::OpenAt(size_t index) {
  at_ = index;
  current_ = index < files_.size() ? NewFileIterator(*files_[index], direction_, options_) : nullptr;
}

IterState LevelIterator::Settle(IterState state) {
  while (state == IterState::kEnd && at_ + 1 < files_.size()) {
    OpenAt(at_ + 1);
    state = current_->SeekToFirst();
  }
  return state_ = state;
}

IterState LevelIterator::SeekToFirst() {
  OpenAt(0);
  return Settle(current_ == nullptr ? IterState::kEnd : current_->SeekToFirst());
}

IterState LevelIterator::Seek(std::string_view user_key) {
  // Files wholly in front of the key are skipped unopened.
  const auto in_front = [&](const FileRef* file) {
    return direction_ == Direction::kForward ? std::string_view(file->info.largest) < user_key
                                             : file->first() >= user_key;
  };
  const auto first = std::partition_point(files_.begin(), files_.end(), in_front);
  OpenAt(static_cast<size_t>(first - files_.begin()));
  return Settle(current_ == nullptr ? IterState::kEnd : current_->Seek(user_key));
}

IterState LevelIterator::Next() { return Settle(current_->Next()); }

Task<Status> LevelIterator::Fetch() {
  PARTITA_CO_TRY(co_await current_->Fetch());
  Settle(current_->state());
  co_return Status();
}

}  // namespace partita
