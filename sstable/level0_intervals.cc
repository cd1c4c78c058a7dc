#include "sstable/level0_intervals.h"

#include <algorithm>
#include <utility>

#include "engine/base/heap_bytes.h"
#include "sstable/level_set.h"

namespace partita {

namespace {

Level0Intervals::Bound FirstOf(const FileRef& file) { return {file.first(), false}; }

Level0Intervals::Bound EndOf(const FileRef& file) {
  const bool is_cut = !file.upper.empty() && file.upper <= file.info->largest;
  return is_cut ? Level0Intervals::Bound{file.upper, false}
                : Level0Intervals::Bound{file.info->largest, true};
}

}  // namespace

Level0Intervals::Level0Intervals(const std::vector<FileRef>& files) {
  if (files.empty()) return;
  bounds_.reserve(2 * files.size());
  by_first_.reserve(files.size());
  for (const FileRef& file : files) {
    bounds_.push_back(FirstOf(file));
    bounds_.push_back(EndOf(file));
    by_first_.push_back(static_cast<uint32_t>(by_first_.size()));
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  bounds_.shrink_to_fit();
  fences_ = KeyFences(bounds_.size(), [this](size_t i) { return bounds_[i].key; });
  std::sort(by_first_.begin(), by_first_.end(),
            [&](uint32_t a, uint32_t b) { return files[a].first() < files[b].first(); });

  const auto index_of = [&](const Bound& bound) {
    return static_cast<uint32_t>(std::lower_bound(bounds_.begin(), bounds_.end(), bound) - bounds_.begin());
  };
  std::vector<std::pair<uint32_t, uint32_t>> spans;  // Of each file: its intervals.
  std::vector<uint32_t> counts(bounds_.size());
  for (size_t file = 0; file < files.size(); ++file) {
    spans.emplace_back(index_of(FirstOf(files[file])), index_of(EndOf(files[file])));
    for (uint32_t i = spans[file].first; i < spans[file].second; ++i) ++counts[i];
  }
  begins_.reserve(bounds_.size() + 1);
  begins_.push_back(0);
  for (const uint32_t count : counts) begins_.push_back(begins_.back() + count);
  files_.resize(begins_.back());
  std::vector<uint32_t> at = begins_;
  for (uint32_t file = 0; file < files.size(); ++file) {
    for (uint32_t i = spans[file].first; i < spans[file].second; ++i) files_[at[i]++] = file;
  }
  firsts_.reserve(bounds_.size());
  uint32_t first = 0;
  for (uint32_t i = 0; i < bounds_.size(); ++i) {
    while (first < by_first_.size() && spans[by_first_[first]].first < i) ++first;
    firsts_.push_back(first);
  }
}

// The interval that holds the key; bounds_.size() when it is in front of all.
size_t Level0Intervals::IntervalOf(std::string_view user_key) const {
  const size_t up_to = fences_.CountUpTo(user_key, [&](size_t i) { return bounds_[i].IsUpTo(user_key); });
  return up_to == 0 ? bounds_.size() : up_to - 1;
}

std::span<const uint32_t> Level0Intervals::FilesOf(size_t interval) const {
  return std::span(files_).subspan(begins_[interval], begins_[interval + 1] - begins_[interval]);
}

std::span<const uint32_t> Level0Intervals::FilesAt(std::string_view user_key) const {
  const size_t interval = IntervalOf(user_key);
  if (interval == bounds_.size()) return {};
  return FilesOf(interval);
}

const Level0Intervals::Bound* Level0Intervals::EndOfInterval(std::string_view user_key) const {
  const size_t interval = IntervalOf(user_key);
  const size_t next = interval == bounds_.size() ? 0 : interval + 1;
  return next < bounds_.size() ? &bounds_[next] : nullptr;
}

std::vector<uint32_t> Level0Intervals::FilesIn(std::string_view lower, std::string_view upper) const {
  if (!upper.empty() && upper <= lower) return {};
  const size_t interval = IntervalOf(lower);
  const bool in_front = interval == bounds_.size();
  // No file begins just behind another's last key but at a bound of its own.
  const auto is_below = [&](const Bound& bound) { return upper.empty() || bound.key < upper; };
  const auto behind = std::partition_point(bounds_.begin(), bounds_.end(), is_below);
  const auto first_at = [&](size_t i) { return i < firsts_.size() ? firsts_[i] : by_first_.size(); };
  std::vector<uint32_t> files;
  if (!in_front) files.assign(FilesOf(interval).begin(), FilesOf(interval).end());
  const size_t begin = first_at(in_front ? 0 : interval + 1);
  const size_t end = first_at(static_cast<size_t>(behind - bounds_.begin()));
  for (size_t i = begin; i < end; ++i) files.push_back(by_first_[i]);
  std::sort(files.begin(), files.end());
  return files;
}

size_t Level0Intervals::memory_bytes() const {
  return fences_.memory_bytes() + HeapBytes(bounds_) + HeapBytes(begins_) + HeapBytes(files_) +
         HeapBytes(by_first_) + HeapBytes(firsts_);
}

}  // namespace partita
