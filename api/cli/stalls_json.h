#pragma once
#include <string>
#include <string_view>

#include "api/partita.h"

namespace partita {

// {"shards":[{"stalls":3,"own":1,"lasted_ms":..,"ran_ms":..,"longest_ms":..},...],
//  "places":[{"place":"engine/shard_write.cc:12 Shard::Write","stalls":3,...},...],
//  "last":[{"shard":0,"began":"2026-11-22T19:00:00Z","from":..,"to":..,"lasted_ms":..,"ran_ms":..},...]}
//
// What each means: api/stalls.h.
std::string StallsJson(const StallSummary& stalls);
// The same back. kInvalidArgument: it is none.
Result<StallSummary> ParseStallsJson(std::string_view json);

}  // namespace partita
