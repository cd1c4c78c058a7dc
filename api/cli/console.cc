#include "api/cli/console.h"

#include "engine/base/assert.h"

namespace partita {

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

}  // namespace partita
