#pragma once
#include <string>
#include <string_view>

#include "engine/base/entry_iterator.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace partita {

// Where a scan goes on, as opaque text. Stateless: it names a key, so it never expires and survives
// restart, compaction and moves of ranges.
//
// Before base64url: u8 format · u8 direction · u32 table id · bytes of the user key after the table id
// · u32 checksum. The table binds it, so a token of another table is refused.
struct Continuation {
  Direction direction = Direction::kForward;
  TableId table;
  std::string user_key;  // Forward: inclusive lower bound; backward: exclusive upper bound.
};

std::string EncodeContinuation(const Continuation& continuation);
// kInvalidArgument for anything that EncodeContinuation did not write.
Result<Continuation> DecodeContinuation(std::string_view text);

}  // namespace partita
