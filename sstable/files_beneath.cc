#include "sstable/files_beneath.h"

#include <algorithm>
#include <utility>

namespace partita {

namespace {

// Files that are asked of one span: a span over more counts as one with a match beneath.
constexpr size_t kFilesMax = 64;
// Comparisons that one question may take, some 50 us of them: what is not looked at by then may match.
constexpr size_t kCostMax = 4096;

bool Reaches(const FileRef& file, std::string_view first, std::string_view last) {
  return file.first() <= last && file.info->largest >= first && (file.upper.empty() || file.upper > first);
}

}  // namespace

FilesBeneath::FilesBeneath(const LevelSet& set, size_t level, const FileRef* self,
                           const BlockPredicate& predicate)
    : set_(set), level_(level), self_(self), predicate_(predicate) {
  if (self_ != nullptr && set_.level(0).size() > 1) nothing_ = false;
  for (size_t deeper = level_ + 1; deeper < kLevels; ++deeper) {
    if (!set_.level(deeper).empty()) nothing_ = false;
  }
}

bool FilesBeneath::MayMatch(std::string_view first, std::string_view last, Version version) {
  if (nothing_) return false;
  cost_end_ = cost_ + kCostMax;
  if (self_ != nullptr && !older_at_zero_) FindOlderAtZero();
  if (self_ != nullptr) {
    for (Asked& asked : *older_at_zero_) {
      ++cost_;
      if (asked.file->info->version_min >= version || !Reaches(*asked.file, first, last)) continue;
      if (FileMayMatch(*asked.file, first, last, &asked)) return true;
    }
  }
  for (size_t deeper = level_ + 1; deeper < kLevels; ++deeper) {
    if (LevelMayMatch(deeper, first, last)) return true;
  }
  return false;
}

void FilesBeneath::FindOlderAtZero() {
  older_at_zero_.emplace();
  for (const FileRef* file : set_.Overlapping(0, self_->first(), self_->end())) {
    ++cost_;
    if (file == self_ || file->info->version_min >= self_->info->version_max) continue;
    older_at_zero_->push_back({.file = file});
  }
}

bool FilesBeneath::LevelMayMatch(size_t level, std::string_view first, std::string_view last) {
  const std::vector<FileRef>& files = set_.level(level);
  if (files.empty()) return false;
  const auto behind = std::partition_point(files.begin(), files.end(),
                                           [&](const FileRef& file) { return file.first() <= last; });
  cost_ += 4;  // Comparisons of keys, of which some lie out of cache.
  size_t looked_at = 0;
  for (auto file = behind; file != files.begin() && Reaches(*(file - 1), first, last); --file) {
    if (++looked_at > kFilesMax || FileMayMatch(*(file - 1), first, last, &asked_[level])) return true;
  }
  return false;
}

bool FilesBeneath::FileMayMatch(const FileRef& file, std::string_view first, std::string_view last,
                                Asked* asked) {
  // What a damaged file holds is not known.
  if (file.table == nullptr) return true;
  if (asked->file != &file || !asked->zones) {
    cost_ += 8 * (1 + predicate_.properties().size());
    asked->file = &file;
    asked->index_pin.Release();
    asked->zones.emplace(predicate_, file.table->properties());
    asked->may_match = asked->zones->FileMayMatch();
  }
  return asked->may_match && BlocksMayMatch(first, last, asked);
}

// Of the file's blocks from the first that reaches `first` to the first that reaches `last`.
bool FilesBeneath::BlocksMayMatch(std::string_view first, std::string_view last, Asked* asked) {
  const TableReader& table = *asked->file->table;
  const DataBlock& top = table.top_index();
  for (uint32_t top_at = top.LowerBound(first); top_at < top.size(); ++top_at) {
    if (asked->top_at != top_at || !asked->index_pin) asked->index_pin = table.CachedIndex(top_at);
    asked->top_at = top_at;
    if (!asked->index_pin) return true;
    const DataBlock index(asked->index_pin.content());
    cost_ += 4;
    for (uint32_t at = index.LowerBound(first); at < index.size(); ++at) {
      cost_ += predicate_.cost();
      if (cost_ > cost_end_ || asked->zones->BlockMayMatch(index.value(at))) return true;
      if (index.CompareKey(at, last) >= 0) return false;
    }
  }
  return false;
}

size_t FilesBeneath::TakeCost() { return std::exchange(cost_, 0); }

}  // namespace partita
