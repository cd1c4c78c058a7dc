#pragma once
#include <functional>
#include <string>
#include <vector>

#include "api/cli/console.h"

namespace partita {

// A command that this library does not know: it understands its words itself, --help among them.
struct OtherCommand {
  std::string name, description;
  std::function<ExitCode(const std::vector<std::string>& words, Console& console)> run;
};

// The program `partita`: understands the words after its name and runs the command they give.
// Each command explains itself with --help, with an example. Never throws.
ExitCode RunCommandLine(const std::vector<std::string>& words, Console& console,
                        const std::vector<OtherCommand>& others = {});

// The names of this library's own commands, for tests.
std::vector<std::string> CommandNames();

}  // namespace partita
