#include "bench/compare/child_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bench/load/child_process.h"

namespace partita::bench {
namespace {

// What a child sends: its figures and the first error, or why it could not run.
struct Message {
  Figures figures;
  Code code = Code::kOk;
  std::array<char, 512> error{};
};
static_assert(std::is_trivially_copyable_v<Message>);

void Copy(const std::string& text, std::array<char, 512>* to) {
  const size_t size = std::min(text.size(), to->size() - 1);
  std::memcpy(to->data(), text.data(), size);
  (*to)[size] = '\0';
}

Message Refusal(const Status& status) {
  Message message;
  message.code = status.code();
  Copy(status.message(), &message.error);
  return message;
}

Message RunHere(const LoadConfig& load, const std::string& workload, const MemoryGroup* group) {
  if (const Status entered = group == nullptr ? Status() : group->Enter(); !entered.ok()) {
    return Refusal(entered);
  }
  LoadRunner runner(load);
  Result<Measurement> measured = runner.Run(workload);
  const Status closed = runner.Close();
  if (!measured.ok() || !closed.ok()) {
    return Refusal(measured.ok() ? closed : measured.status());
  }
  Message message;
  message.figures = std::as_const(*measured);
  Copy(measured->first_error, &message.error);
  return message;
}

bool WriteAll(int descriptor, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = write(descriptor, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool ReadAll(int descriptor, void* bytes, size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = read(descriptor, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

Result<Measurement> RunInChild(const LoadConfig& load, const std::string& workload, const MemoryGroup* group,
                               uint32_t seconds_max) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return Status::IoError(std::string("pipe: ") + std::strerror(errno));
  Result<pid_t> child = StartChild([&] {
    close(ends[0]);
    alarm(seconds_max);
    const Message message = RunHere(load, workload, group);
    return WriteAll(ends[1], &message, sizeof message) ? 0 : 1;
  });
  close(ends[1]);
  Message message;
  const bool complete = child.ok() && ReadAll(ends[0], &message, sizeof message);
  close(ends[0]);
  if (!child.ok()) return child.status();
  const int exit_status = WaitForChild(*child);
  if (!complete) {
    return Status::IoError(WIFSIGNALED(exit_status)
                               ? std::string("ended by signal ") + strsignal(WTERMSIG(exit_status))
                               : "ended without a result");
  }
  if (message.code != Code::kOk) return Status(message.code, message.error.data());
  Measurement measurement;
  static_cast<Figures&>(measurement) = message.figures;
  measurement.engine = load.engine;
  measurement.workload = workload;
  measurement.first_error = message.error.data();
  return measurement;
}

}  // namespace partita::bench
