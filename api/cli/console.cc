#include "api/cli/console.h"

#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "engine/base/assert.h"

namespace partita {

bool WouldWait(int descriptor) {
  // A pipe that is not full takes PIPE_BUF bytes at once.
  pollfd wanted{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return descriptor >= 0 && ::poll(&wanted, 1, /*timeout=*/0) == 0;
}

void Tell(Console& console, std::string_view line) {
  if (WouldWait(console.out_descriptor)) return;  // Nothing else is held back in the stream.
  console.out << line << std::endl;
}

ExitCode Fail(Console& console, const Status& status) {
  PARTITA_ASSERT(!status.ok());
  console.err << "partita: " << status.message();
  switch (status.code()) {
    case Code::kInvalidArgument:
      console.err << "\n";
      return ExitCode::kUsage;
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kPreconditionFailed:
    case Code::kCorruption:
      console.err << " (" << CodeName(status.code()) << ")\n";
      return ExitCode::kFindings;
    default:
      console.err << " (" << CodeName(status.code()) << ")\n";
      return ExitCode::kFailed;
  }
}

ExitCode FailToStart(Console& console, const Status& status) {
  const ExitCode code = Fail(console, status);
  return status.code() == Code::kNotFound ? ExitCode::kFailed : code;
}

ExitCode FailUsage(Console& console, std::string_view message) {
  console.err << "partita: " << message << "\n";
  return ExitCode::kUsage;
}

ExitCode FinishOutput(Console& console, ExitCode so_far) {
  errno = 0;
  console.out.flush();
  // The reason of an earlier write's failure is not known any more: then flushing does nothing.
  const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  const bool has_failed = so_far == ExitCode::kUsage || so_far == ExitCode::kFailed;
  if (console.out || has_failed || console.out_may_be_lost) return so_far;
  console.err << "partita: cannot write to standard output" << why << "\n";
  return ExitCode::kFailed;
}

}  // namespace partita
