#include <unistd.h>

#include <csignal>
#include <iostream>

#include "api/cli/command_line.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

void NoteInterrupt(int) { interrupted = 1; }

// Ctrl-C and a polite kill are noted once; the second one ends the process.
class SignalInterrupts final : public partita::InterruptSource {
 public:
  void Arm() override {
    struct sigaction action {};
    action.sa_handler = NoteInterrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  bool Requested() override { return interrupted != 0; }
};

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is a failed write, and the store is closed in order.
  SignalInterrupts interrupts;
  partita::Console console{.out = std::cout,
                           .err = std::cerr,
                           .err_is_terminal = isatty(STDERR_FILENO) == 1,
                           .interrupts = interrupts};
  const partita::ExitCode code = partita::RunCommandLine({argv + 1, argv + argc}, console);
  std::cout.flush();
  return static_cast<int>(code);
}
