#include "bench/lab/conditions.h"

#include <cstdio>

#include "api/cli/open_store.h"
#include "bench/lab/result_text.h"
#include "engine/base/checksum.h"

namespace partita::lab {
namespace {

std::string Shortest(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

std::string HashOfTimes(const std::vector<double>& times) {
  StreamHash hash;
  for (const double time : times) hash.Update({reinterpret_cast<const char*>(&time), sizeof(time)});
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash.Digest()));
  return digits;
}

// All that an arrival is but for its rates, which name the cells, and how long it lasts, which is that of
// all.
std::string ShapeText(const Arrival& arrival) {
  std::string text = ArrivalModelName(arrival.model);
  if (arrival.model == ArrivalModel::kBurst) {
    text += ", on " + Shortest(arrival.on_s) + " s, off " + Shortest(arrival.off_s) + " s";
  }
  if (arrival.model == ArrivalModel::kDiurnal) {
    text += ", amplitude " + Shortest(arrival.amplitude) + ", period " + Shortest(arrival.period_s) + " s";
  }
  if (arrival.model == ArrivalModel::kReplay) {
    text += ", " + std::to_string(arrival.times.size()) + " times (" + HashOfTimes(arrival.times) +
            "), scale " + Shortest(arrival.scale);
  }
  if (arrival.model == ArrivalModel::kClosed) {
    text +=
        ", " + std::to_string(arrival.clients) + " clients that think " + Shortest(arrival.think_s) + " s";
  }
  return text;
}

}  // namespace

Conditions AskedForBy(const Experiment& experiment) {
  Conditions all = {
      {"records", std::to_string(experiment.records)},
      {"seconds of warm-up", Shortest(experiment.arrival.warmup_s)},
      {"seconds", Shortest(experiment.arrival.duration_s)},
      {"arrival", ShapeText(experiment.arrival)},
      {"limits", ThroughputText(experiment.limits)},
      {"throttled", experiment.on_throttled == OnThrottled::kDrop ? "drop" : "retry"},
      {"durability", std::string(DurabilityName(static_cast<Durability>(experiment.durability)))}};
  for (const Layout& layout : experiment.layouts) {
    // Written of each, so that it differs from a run in which the layout has none.
    const std::string own =
        layout.arrival ? OwnArrivalText(layout) + ": " + ShapeText(*layout.arrival) : "as all";
    all.emplace_back("arrival of " + layout.name, own);
  }
  return all;
}

Conditions RanOn(const Experiment& experiment, const RunResult& result) {
  Conditions all = {{"target", result.target}};
  if (experiment.arrival.model != ArrivalModel::kClosed) {
    all.emplace_back("clients", std::to_string(experiment.arrival.clients));
  }
  if (result.kind == TargetKind::kHttp) return all;
  all.emplace_back("memory", std::to_string(experiment.memory_bytes >> 20) + " MiB");
  if (!result.is_embedded()) return all;
  all.emplace_back("shards", experiment.shards > 0 ? std::to_string(experiment.shards) : "by the machine");
  all.emplace_back("io", result.io_backend == IoBackend::kUring ? "uring" : "threads");
  return all;
}

}  // namespace partita::lab
