// partita-bench: measures a whole engine under load; `compare` compares several.
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include "bench/compare/compare_command.h"
#include "bench/load/load_command.h"

namespace partita::bench {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Measures a storage engine under load; compare holds it against others.", "partita-bench");
  const LoadCommand load(&app);
  const CompareCommand compare(&app);
  CLI11_PARSE(app, argc, argv);
  return compare.is_asked_for() ? compare.Run() : load.Run();
}

}  // namespace
}  // namespace partita::bench

int main(int argc, char** argv) {
  // Every engine keeps its table files open; the usual limit is 1,024.
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return partita::bench::Main(argc, argv);
}
