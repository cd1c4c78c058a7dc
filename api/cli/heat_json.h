#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/partita.h"

namespace partita {

// What the admin address tells of heat, and `partita heat` shows.
struct HeatReport {
  HeatPicture picture;
  HeatValues total{};                                       // A second, over the same time as `top`.
  std::array<std::vector<HotPartition>, kHeatMetrics> top;  // By metric, the hottest first.
};

// All that a picture of this window needs. As Database::Heat.
Result<HeatReport> CollectHeat(const Database& database, const HeatWindow& window, uint32_t top);

// {"begin":"2026-11-22T19:00:00Z","column_seconds":1,"columns":300,
//  "buckets":[{"table":"Orders","from":"customer-7"},...],
//  "cells":{"reads":[12.5,...],...},       a second, by column, then bucket
//  "total":{"reads":812,...},              a second
//  "top":{"reads":[{"table":..,"partition":..,"cut":false,"per_second":..,"above":..},...],...}}
//
// Keys that are no text have other bytes than characters as \xHH.
std::string HeatJson(const HeatReport& report);
// The same back. kInvalidArgument: it is none.
Result<HeatReport> ParseHeatJson(std::string_view json);

// A list of {"table","from","to","shard"}, in the order of keys.
std::string RangesJson(const std::vector<RangeDescription>& ranges);
Result<std::vector<RangeDescription>> ParseRangesJson(std::string_view json);

}  // namespace partita
