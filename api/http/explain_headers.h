#pragma once
#include <string>

#include "api/http/http_message.h"
#include "api/query.h"
#include "api/query_plan.h"

namespace partita::http {

// How a query was answered, for who asks with the request header `x-partita-explain: true`; an extension of
// ours to Query Entities. The answer's body and its other headers are as without. It gains:
//
//   x-partita-plan       the kind: empty, point, points, row-range, row-ranges, partition, partition-range,
//                        ranges, table-scan
//   x-partita-bounds     the intervals of keys that are read, as conditions, with "; " between them
//   x-partita-residual   what is asked of each entity there; not there when the bounds say it all
//   x-partita-zone-maps  the properties whose zone maps may spare reading blocks, with ", " between them; not
//                        there when there is none
//   x-partita-cost       of this page: scanned=N, returned=N, density=0.123, blocks-read=N,
//                        blocks-skipped=N, files-skipped=N, bytes-read=N, microseconds=N
//
// Values are ASCII: what is not printable, not ASCII, or a percent sign stands as %HH of its UTF-8. Each is
// at most kExplainValueMax bytes; a longer one is cut, and ends in "...".
inline constexpr size_t kExplainValueMax = 1024;

// False for any other value of the header, which is then ignored as unknown headers are.
bool AsksForExplanation(const HttpRequest& request);

void AppendExplanation(const QueryPlan& plan, const QueryPage& page, std::string* headers);

}  // namespace partita::http
