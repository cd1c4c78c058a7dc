#pragma once
#include <CLI/CLI.hpp>
#include <memory>

namespace partita::bench {

// `partita-bench` without a subcommand: measures workloads on one engine.
class LoadCommand {
 public:
  // Declares its options; both must outlive parsing.
  explicit LoadCommand(CLI::App* app);
  ~LoadCommand();

  // Runs it in a process of its own and writes what was asked for; a signal ends it, and what it made is
  // removed. The exit code: 0; 1 when something failed, other than for want of support, or an answer was
  // wrong; 128 and the signal. What was measured before a failure is written. REQUIRES: no other thread runs
  // in this process, which forks.
  int Run() const;

 private:
  struct Arguments;
  std::unique_ptr<Arguments> arguments_;
};

}  // namespace partita::bench
