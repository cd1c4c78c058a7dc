#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>

#include "api/cli/command_line.h"
#include "bench/lab/lab_command.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t reload_wanted = 0;
int wake_pipe[2] = {-1, -1};  // A byte for each signal: what wakes who waits.

void Wake() {
  const int saved = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(wake_pipe[1], &byte, 1);
  errno = saved;
}

void NoteInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  Wake();
}

void NoteReload(int) {
  reload_wanted = 1;
  Wake();
}

// Ctrl-C and a polite kill are noted once; the second one ends the process.
class SignalInterrupts final : public partita::InterruptSource {
 public:
  void Arm() override {
    OpenPipe();
    struct sigaction action {};
    action.sa_handler = NoteInterrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  bool Requested() override { return interrupted != 0; }
  // Nothing takes a byte out again but Wait, which is called by other commands.
  int Descriptor() override {
    OpenPipe();
    return wake_pipe[0];
  }

  void ArmReload() override {
    OpenPipe();
    struct sigaction action {};
    action.sa_handler = NoteReload;
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, nullptr);
  }
  Wish Wait() override {
    while (true) {
      if (interrupted != 0) return Wish::kStop;
      if (reload_wanted != 0) {
        reload_wanted = 0;
        return Wish::kReload;
      }
      char byte;
      if (read(wake_pipe[0], &byte, 1) < 0 && errno != EINTR) return Wish::kStop;
    }
  }

 private:
  static void OpenPipe() {
    if (wake_pipe[0] >= 0) return;
    // A full pipe wakes as well as a fuller one would: the writing end never blocks.
    if (pipe2(wake_pipe, O_CLOEXEC) == 0) fcntl(wake_pipe[1], F_SETFL, O_NONBLOCK);
  }
};

// A standard stream that was closed must not lend its number to a file of the store: what is printed would be
// written into that. Held so that using it fails, as it does when it is closed.
void HoldClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Gets the lowest number that is free, which is this one: those below it are taken by now.
    [[maybe_unused]] const int held = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  HoldClosedStreams();
  std::ios::sync_with_stdio(false);
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is a failed write, and the store is closed in order.
  SignalInterrupts interrupts;
  partita::Console console{.out = std::cout,
                           .err = std::cerr,
                           .err_is_terminal = isatty(STDERR_FILENO) == 1,
                           .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                           .interrupts = interrupts,
                           .out_descriptor = STDOUT_FILENO,
                           .err_descriptor = STDERR_FILENO};
  const partita::ExitCode code =
      partita::RunCommandLine({argv + 1, argv + argc}, console, {partita::lab::LabCommand()});
  return static_cast<int>(partita::FinishOutput(console, code));
}
