#pragma once
#include <cstdint>
#include <functional>
#include <map>

#include "engine/base/ids.h"
#include "engine/object_references.h"
#include "engine/read_view.h"

namespace partita {

// What files hold that serves no range of a shard any more, as that of tables that were dropped, and takes
// room as long as one slice of its file is referred to (DESIGN 7). Each slice has a part of it by its size:
// so all slices of a file keep too much or none, and once the last is written anew the file goes.
//
// Of one moment. Of files that something else refers to, as another shard, and of those with a slice that
// cannot be read, nothing is told: writing slices anew may free nothing there. Slices of files that were
// written before the store was opened count whole index blocks (TableReader::BytesWithin), so what many small
// ones keep there is not seen.
class ForeignBytes {
 public:
  ForeignBytes(const ReadView& view, const ObjectReferences& references,
               const std::function<bool(const FileRef& slice)>& is_set_aside);

  // REQUIRES: the view has the reference.
  uint64_t Of(const FileRef& slice) const;

 private:
  struct Sliced {
    uint64_t bytes = 0;
    uint64_t used = 0;
    bool is_stuck = false;  // A slice stays whatever is done.
  };
  std::map<ObjectId, Sliced> files_;  // Those of which a part is used.
};

}  // namespace partita
