#pragma once
#include <memory>
#include <vector>

#include "engine/base/entry_iterator.h"

namespace partita {

// One cursor over several: every entry of every source, in internal order (entry_iterator.h says
// what that is in each direction). Nothing is hidden or dropped here: all versions come out, and
// whoever reads decides.
//
// `sources` are all cursors of direction `direction`. Their order matters in one case only: two
// entries with the same key *and* version, which a healthy store does not have (asserted in debug
// builds), come out in the order of their sources, so the newer source belongs first.
//
// kNeedsIo: a source that must read makes the merged cursor ask for Fetch(), which fetches every
// source that waits (beside each other on an executor, one by one in blocking mode) and then goes
// on. A failed Fetch leaves the cursor asking; no entry is ever passed over (F43, F44, F46).
//
// Cost: Next() allocates nothing. One comparison an entry while one source leads, none while it is
// the only one left, about log2(sources) when the lead changes; keys are compared by their first
// 16 bytes, held as two integers, and only on a tie by the rest.
//
// Owns the sources. With no source it is at its end; with one it is that source.
std::unique_ptr<EntryIterator> MakeMergingIterator(std::vector<std::unique_ptr<EntryIterator>> sources,
                                                   Direction direction);

}  // namespace partita
