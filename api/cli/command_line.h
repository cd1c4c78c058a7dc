#pragma once
#include <string>
#include <vector>

#include "api/cli/console.h"

namespace partita {

// The program `partita`: understands the words after its name and runs the command they give.
// Each command explains itself with --help, with an example. Never throws.
ExitCode RunCommandLine(const std::vector<std::string>& words, Console& console);

// The names of all commands, as `partita --help` lists them.
std::vector<std::string> CommandNames();

}  // namespace partita
