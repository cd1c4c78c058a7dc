#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/base/block_predicate.h"
#include "engine/base/ids.h"
#include "sstable/level_set.h"
#include "sstable/table_zones.h"

namespace partita {

// What lies beneath one file of level 0, or beneath one deeper level, in a level set: where a block that a
// scan passes over may hide something older.
//
// Passing over a block whose puts do not match is right only when nothing older *that may match* has a key
// in the block's span: else the block's newer rows and tombstones must go on hiding it (DESIGN 9). Memtables
// are newer than all files. Of the files of level 0 the versions tell which may hold something older; deeper
// levels are older as such. Whether something there may match, the zone maps tell: of the files, and then of
// the blocks in the span, as far as the index blocks that hold them are in memory (the scan's cursor over
// that level brings them). Nothing is read for it: what is not known may match.
//
// Belongs to one cursor. The set and the predicate outlive it.
class FilesBeneath {
 public:
  // `self`: the file of level 0; null for a deeper level.
  FilesBeneath(const LevelSet& set, size_t level, const FileRef* self, const BlockPredicate& predicate);

  // True when nothing at all lies beneath, whatever the keys.
  bool nothing() const { return nothing_; }

  // False: surely no entry beneath with a version below `version` and a key in [first, last] matches.
  bool MayMatch(std::string_view first, std::string_view last, Version version);

  // Comparisons that MayMatch made since TakeCost was last called.
  size_t cost() const { return cost_; }
  size_t TakeCost();

 private:
  // A file that was asked, and where in it.
  struct Asked {
    const FileRef* file = nullptr;
    bool may_match = true;
    std::optional<TableZones> zones;
    BlockPin index_pin;  // Of entry `top_at` of its top index.
    uint32_t top_at = 0;
  };
  void FindOlderAtZero();
  bool LevelMayMatch(size_t level, std::string_view first, std::string_view last);
  bool FileMayMatch(const FileRef& file, std::string_view first, std::string_view last, Asked* asked);
  bool BlocksMayMatch(std::string_view first, std::string_view last, Asked* asked);

  const LevelSet& set_;
  const size_t level_;
  const FileRef* self_;
  const BlockPredicate& predicate_;
  bool nothing_ = true;
  size_t cost_ = 0;
  size_t cost_end_ = 0;                              // Of the question at hand.
  std::array<Asked, kLevels> asked_;                 // Last of each deeper level.
  std::optional<std::vector<Asked>> older_at_zero_;  // Files of level 0; nothing: not looked for yet.
};

}  // namespace partita
