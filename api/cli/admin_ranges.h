#pragma once
#include <string_view>

#include "api/async_database.h"
#include "api/http/http_message.h"

namespace partita {

// Changes of ranges on the admin address, for `partita ranges --admin` and others:
//
//   POST /ranges/split   {"table":"Orders","partition":"m"}            cuts in front of the partition
//   POST /ranges/merge   {"table":"Orders","partition":"m"}            joins what begins there to the front
//   POST /ranges/move    {"table":"Orders","partition":"m","shard":1}  the answer tells what it took
//
// The checks are those of Database::SplitRange and its like. Who may: admin_post.h.

// What follows /ranges/ in a path of these; empty: it is none.
std::string_view RangeChangeOf(std::string_view path);

// REQUIRES: !RangeChangeOf(path).empty(), MayPost.
Task<void> ChangeRange(AsyncDatabase database, std::string_view change, const http::HttpRequest& request,
                       http::HttpResponse* response);

}  // namespace partita
