#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sstable/key_fences.h"

namespace partita {

struct FileRef;

// Which files of level 0 hold a key: a table that is filled in key order has hundreds there, of which one
// does. Their ends cut the keys into intervals, each of which knows its files.
//
//     key ->      a     c     f     k     p
//     newest 0          [-----------]             a..c {1}
//            1    [-----------]                   c..f {0, 1}
//     oldest 2                      [-----)       f..k {0}      k..p {2}
//
// Takes up to 2 * files * depth numbers; pacing keeps the depth near kLevel0SublevelsMax. Immutable. The
// files outlive it, and stay where they are: thousands of ranges have one of these, too many for copies of
// keys.
class Level0Intervals {
 public:
  // An end of a file.
  struct Bound {
    std::string_view key;  // The file's.
    bool is_behind;        // Just behind the key, else at it.

    bool IsUpTo(std::string_view user_key) const { return is_behind ? key < user_key : key <= user_key; }
    friend auto operator<=>(const Bound&, const Bound&) = default;
  };

  Level0Intervals() = default;
  explicit Level0Intervals(const std::vector<FileRef>& files);

  // Indices of the files, in their order: those that hold the key, or any key in [lower, upper), where an
  // empty upper is no bound.
  std::span<const uint32_t> FilesAt(std::string_view user_key) const;
  std::vector<uint32_t> FilesIn(std::string_view lower, std::string_view upper) const;
  // Where the interval ends that holds the key: all keys from it up to there have the same files. Null: it
  // has no end.
  const Bound* EndOfInterval(std::string_view user_key) const;

  // Of the heap.
  size_t memory_bytes() const;

  friend bool operator==(const Level0Intervals&, const Level0Intervals&) = default;

 private:
  size_t IntervalOf(std::string_view user_key) const;
  std::span<const uint32_t> FilesOf(size_t interval) const;

  KeyFences fences_;              // Of bounds_.
  std::vector<Bound> bounds_;     // Interval i is of [bounds_[i], bounds_[i + 1]),
  std::vector<uint32_t> begins_;  // and has files_[begins_[i]] to files_[begins_[i + 1]].
  std::vector<uint32_t> files_;
  std::vector<uint32_t> by_first_;  // All files; those from by_first_[firsts_[i]] on begin at bounds_[i] or
  std::vector<uint32_t> firsts_;    // behind it.
};

}  // namespace partita
