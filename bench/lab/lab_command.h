#pragma once
#include <string>
#include <vector>

#include "api/cli/command_line.h"
#include "api/cli/console.h"

namespace partita::lab {

// `partita lab`: compares key layouts. `words` are those behind `lab`; --help explains. Never throws.
ExitCode RunLab(const std::vector<std::string>& words, Console& console);

// The same as a command of the program `partita`.
OtherCommand LabCommand();

}  // namespace partita::lab
