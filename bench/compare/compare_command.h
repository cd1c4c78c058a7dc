#pragma once
#include <CLI/CLI.hpp>
#include <memory>

namespace partita::bench {

// `partita-bench compare`: the comparison with peers that anyone can repeat.
class CompareCommand {
 public:
  // Declares it and its options; both must outlive parsing. Options that the program has by then do not go
  // with it.
  explicit CompareCommand(CLI::App* app);
  ~CompareCommand();

  bool is_asked_for() const { return command_->parsed(); }

  // Runs it and writes what was asked for. The exit code: 0; 1 when something failed, other than for want of
  // support, or an answer was wrong.
  int Run() const;

 private:
  struct Arguments;
  CLI::App* command_;
  std::unique_ptr<Arguments> arguments_;
};

}  // namespace partita::bench
