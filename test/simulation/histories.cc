#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/support/concurrent_histories.h"
#include "test/support/scratch_directory.h"

// Concurrent histories on real threads, checked for linearizability; a store for each two thousand of them.
// What threads do is not drawn from the seed, so a failing history is printed whole.

namespace partita {
namespace {

constexpr const char* kUsage =
    "usage: histories [--minutes M] [--seed N] [--backend ring|threads] [--faults]\n"
    "\n"
    "Prints one line of JSON. Exit code 0: all linearizable; 1: one is not, and is printed.\n"
    "  --minutes M   default 1\n"
    "  --faults      log writes and flushes fail at times, which leaves writes in doubt\n";

int Main(int count, char** given) {
  double minutes = 1;
  HistoryOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string option = given[i];
    const std::string value = i + 1 < count ? given[i + 1] : "";
    if (option == "--faults") {
      options.faults = true;
      continue;
    }
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    ++i;
    if (option == "--minutes" && std::atof(value.c_str()) > 0) {
      minutes = std::atof(value.c_str());
    } else if (option == "--seed" && !value.empty()) {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (option == "--backend" && (value == "ring" || value == "threads")) {
      options.backend = value == "ring" ? IoBackend::kUring : IoBackend::kThreads;
    } else {
      std::fprintf(stderr, "histories: what is '%s %s'? (try --help)\n", option.c_str(), value.c_str());
      return 2;
    }
  }
  const auto begun = std::chrono::steady_clock::now();
  auto seconds = [begun] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  HistoryReport total;
  while (seconds() < minutes * 60 && total.violations.empty()) {
    ScratchDirectory directory;
    options.directory = directory.path();
    options.histories = 2000;
    options.seconds_max = minutes * 60 - seconds();
    HistoryReport report = RunHistories(options);
    total.histories += report.histories;
    total.calls += report.calls;
    total.transactions += report.transactions;
    total.refused += report.refused;
    total.in_doubt += report.in_doubt;
    total.pages += report.pages;
    total.overlapping += report.overlapping;
    total.faults += report.faults;
    total.flushes += report.flushes;
    total.violations = std::move(report.violations);
    ++options.seed;
  }
  if (!total.violations.empty()) std::fprintf(stderr, "histories: %s\n", total.violations[0].c_str());
  std::printf("{\"group\": \"histories\", \"failed\": %d, \"seconds\": %.0f, \"histories\": %" PRIu64
              ", \"calls\": %" PRIu64 ", \"overlapping\": %" PRIu64 ", \"transactions\": %" PRIu64
              ", \"refused\": %" PRIu64 ", \"in_doubt\": %" PRIu64 ", \"pages\": %" PRIu64
              ", \"faults\": %" PRIu64 ", \"flushes\": %" PRIu64 "}\n",
              total.violations.empty() ? 0 : 1, seconds(), total.histories, total.calls, total.overlapping,
              total.transactions, total.refused, total.in_doubt, total.pages, total.faults, total.flushes);
  return total.violations.empty() ? 0 : 1;
}

}  // namespace
}  // namespace partita

int main(int count, char** given) { return partita::Main(count, given); }
