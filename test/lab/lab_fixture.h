#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "bench/lab/lab_command.h"
#include "test/cli/command_fixture.h"

namespace partita::lab {

class LabCommandTest : public CommandTest {
 protected:
  // Runs `partita lab` with these words.
  static CommandOutcome Lab(const std::vector<std::string>& words) {
    std::ostringstream out, err;
    CountdownInterrupts interrupts;
    Console console{.out = out, .err = err, .interrupts = interrupts};
    const ExitCode code = RunLab(words, console);
    return {.code = code, .out = out.str(), .err = err.str()};
  }
};

}  // namespace partita::lab
