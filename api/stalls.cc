#include "api/stalls.h"

#include <algorithm>
#include <map>

#include "api/database_impl.h"
#include "engine/base/clock.h"

namespace partita {

namespace {

constexpr double kNanosPerMilli = 1e6;

StallCount CountOf(const StallCounts& counts) {
  return {counts.stalls, counts.own, static_cast<double>(counts.lasted_ns) / kNanosPerMilli,
          static_cast<double>(counts.ran_ns) / kNanosPerMilli,
          static_cast<double>(counts.lasted_ns_max) / kNanosPerMilli};
}

std::vector<StallPlace> PlacesOf(const std::vector<StallReport>& reports) {
  std::map<std::string, StallCounts> by_name;
  for (const StallReport& report : reports) {
    for (const StallReport::Place& place : report.places) by_name[PlaceName(place.from)].Add(place.counts);
  }
  std::vector<StallPlace> places;
  for (const auto& [name, counts] : by_name) places.push_back({name, CountOf(counts)});
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.count.lasted_ms > b.count.lasted_ms; });
  return places;
}

}  // namespace

StallSummary Database::Stalls() const {
  if (!impl_->is_usable()) return {};
  const std::vector<StallReport> reports = impl_->store->Stalls();
  Clock& clock = impl_->runtime->clock();
  const uint64_t now_ns = clock.MonotonicNanos();
  const uint64_t now_ticks = clock.WallTicks();
  StallSummary summary;
  summary.places = PlacesOf(reports);
  for (const StallReport& report : reports) {
    const auto shard = static_cast<uint32_t>(summary.shards.size());
    summary.shards.push_back(CountOf(report.total));
    for (const Stall& stall : report.last) {
      summary.last.push_back({shard, now_ticks - (now_ns - std::min(now_ns, stall.began_ns)) / kNanosPerTick,
                              PlaceName(stall.from), PlaceName(stall.to),
                              static_cast<double>(stall.lasted_ns) / kNanosPerMilli,
                              static_cast<double>(stall.ran_ns) / kNanosPerMilli});
    }
  }
  std::sort(summary.last.begin(), summary.last.end(),
            [](const auto& a, const auto& b) { return a.began_ticks > b.began_ticks; });
  return summary;
}

}  // namespace partita
