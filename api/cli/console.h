#pragma once
#include <cstdint>
#include <ostream>
#include <string_view>

#include "engine/base/status.h"

namespace partita {

// What the program `partita` ends with.
enum class ExitCode : int {
  kOk = 0,
  kFindings = 1,  // Some records were bad, damage was found, or what was asked for does not exist.
  kUsage = 2,     // The command line, or a name or value on it, breaks a rule.
  kFailed = 3,    // Disk, lock, memory, interruption: the command could not finish.
};

// Whether the user asked to stop (Ctrl-C). Used by one thread.
class InterruptSource {
 public:
  virtual ~InterruptSource() = default;
  // From here on a first interrupt is only noted; before, and for the second one, it ends the program.
  virtual void Arm() {}
  virtual bool Requested() { return false; }
  // Becomes readable with the first interrupt that is noted, and stays so, for who waits for something else
  // as well; -1: it cannot be waited for.
  virtual int Descriptor() { return -1; }

  // For a command that runs until it is told otherwise: from here on SIGHUP is noted too, as a wish to
  // read certificates and open logs anew; else it ends the program.
  virtual void ArmReload() {}
  enum class Wish : uint8_t { kStop, kReload };
  // Blocks until there is a wish. REQUIRES: Arm was called.
  virtual Wish Wait() { return Wish::kStop; }
};

// Where a command reads and writes. Outlives the command.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  // Progress is drawn in place, else told in lines.
  bool out_is_terminal = false;  // Pictures are drawn in colours.
  InterruptSource& interrupts;
  // Set by a command whose output is news, not its result: that nobody reads on does not make it fail.
  bool out_may_be_lost = false;
  // Where `out` and `err` write to, if that may wait for a reader.
  int out_descriptor = -1, err_descriptor = -1;
};

// Whether what is printed there now would wait for a reader; of -1 nothing does.
bool WouldWait(int descriptor);

// Prints a line of news, and flushes it. Lost where what was printed before is not read, as by a logger that
// hangs: a command that must go on does not wait for it.
void Tell(Console& console, std::string_view line);

// Prints "partita: <message>" and returns the exit code for it: kUsage for kInvalidArgument, kFindings for
// kNotFound, kAlreadyExists, kPreconditionFailed and kCorruption, else kFailed. REQUIRES: !status.ok().
ExitCode Fail(Console& console, const Status& status);
// The same for what a command needs to begin, a store or an input file: kFailed also when that is not there.
ExitCode FailToStart(Console& console, const Status& status);
ExitCode FailUsage(Console& console, std::string_view message);

// Ends the output of a command that ended with `so_far`: writes what is still held back of it. kFailed, and a
// line that says so, when not all of it could be written, unless the command has failed in any case.
ExitCode FinishOutput(Console& console, ExitCode so_far);

}  // namespace partita
