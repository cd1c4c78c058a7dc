#pragma once
#include <array>
#include <string>
#include <vector>

#include "api/cli/process_heap.h"
#include "api/http/http_server.h"
#include "api/http/service_counters.h"
#include "api/partita.h"

namespace partita {

// What a server tells a monitoring system.
struct ServerMetrics {
  http::ServiceCounters::Totals service;
  http::HttpCounters http;  // Of all addresses together.
  DatabaseStats database;
  HeapFigures heap;
  HeatValues load{};                                            // Database::LoadPerSecond.
  std::array<std::vector<HotPartition>, kHeatMetrics> hottest;  // By metric; kHottest of each at most.
  static constexpr uint32_t kHottest = 10;
  StallSummary stalls;
  bool accepting = false;
  uint64_t uptime_seconds = 0;
  std::string version;
};

// The text form of Prometheus (version 0.0.4). Every name begins with partita_ and ends with its unit;
// what only grows ends with _total. An operation that was never asked for has counts but no histogram.
std::string MetricsText(const ServerMetrics& metrics);

// a += b, field by field.
void AddCounters(http::HttpCounters* sum, const http::HttpCounters& one);

}  // namespace partita
