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
  static CommandOutcome Lab(const std::vector<std::string>& words) { return LabUntil(UINT64_MAX, words); }
  // The user asks it to stop when it has looked so many times.
  static CommandOutcome LabUntil(uint64_t interrupt_after, const std::vector<std::string>& words) {
    CountdownInterrupts interrupts(interrupt_after);
    return LabUntil(interrupts, words);
  }
  static CommandOutcome LabUntil(InterruptSource& interrupts, const std::vector<std::string>& words) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .interrupts = interrupts};
    const ExitCode code = RunLab(words, console);
    return {.code = code, .out = out.str(), .err = err.str()};
  }
};

}  // namespace partita::lab
