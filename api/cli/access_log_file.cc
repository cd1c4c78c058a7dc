#include "api/cli/access_log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include "engine/world.h"

namespace partita {

namespace {

constexpr std::chrono::milliseconds kGatherTime{100};
constexpr int kPatienceMs = 1'000;  // At the end, and where it leaves a file.

bool IsPipe(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
}

Result<int> OpenForAppend(const std::string& path) {
  if (path == "-") return STDOUT_FILENO;
  // Else opening a pipe waits for its reader.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0640);
  if (descriptor < 0 && errno == ENXIO && IsPipe(path)) {
    return Status::IoError("access log " + path + ": nobody reads the pipe");
  }
  // A write that finds no room waits, as WriteAll has it.
  if (descriptor >= 0 && ::fcntl(descriptor, F_SETFL, O_APPEND) == 0) return descriptor;
  const Status failed = Status::IoError("access log " + path + ": " + std::strerror(errno));
  if (descriptor >= 0) ::close(descriptor);
  return failed;
}

void CloseUnlessStandard(int descriptor) {
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

// The text of a second is made once a second on each thread.
void AppendTime(std::string* out) {
  struct Second {
    std::time_t at = -1;
    char text[40] = {};
    size_t size = 0;
  };
  thread_local Second second;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = us / 1'000'000;
  if (seconds != second.at) {
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    second.size = std::strftime(second.text, sizeof second.text, "%Y-%m-%dT%H:%M:%S", &parts);
    second.at = seconds;
  }
  out->append(second.text, second.size);
  char fraction[] = ".000000Z";
  auto rest = static_cast<uint32_t>(us % 1'000'000);
  for (size_t i = 6; i > 0; --i, rest /= 10) fraction[i] = static_cast<char>('0' + rest % 10);
  out->append(fraction);
}

// A byte that would break the line, or end a field; it stands as %XX.
bool Breaks(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= 0x20 || byte == 0x7f;
}

void AppendEscaped(std::string* out, std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  if (text.empty()) out->push_back('-');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && !Breaks(text[plain])) ++plain;
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const auto byte = static_cast<unsigned char>(text[0]);
    out->push_back('%');
    out->push_back(kHex[byte >> 4]);
    out->push_back(kHex[byte & 15]);
    text.remove_prefix(1);
  }
}

void AppendField(std::string* out, std::string_view text) {
  out->push_back(' ');
  AppendEscaped(out, text);
}

void AppendNamed(std::string* out, std::string_view name, uint64_t value) {
  out->push_back(' ');
  out->append(name).push_back('=');
  out->append(std::to_string(value));
}

void AppendNamed(std::string* out, std::string_view name, std::string_view value) {
  out->push_back(' ');
  out->append(name).push_back('=');
  AppendEscaped(out, value);
}

std::string LineOf(const http::AccessRecord& record) {
  std::string line;
  line.reserve(256 + record.target.size());
  AppendTime(&line);
  AppendField(&line, record.remote_address);
  AppendField(&line, record.account);
  AppendField(&line, http::RequestKindName(record.kind));
  AppendField(&line, record.method);
  AppendField(&line, record.target);
  line.append(" ").append(std::to_string(record.status));
  AppendNamed(&line, "in", record.bytes_in);
  AppendNamed(&line, "out", record.bytes_out);
  AppendNamed(&line, "us", record.microseconds);
  AppendNamed(&line, "error", record.error_code);
  AppendNamed(&line, "id", record.request_id);
  AppendNamed(&line, "client", record.client_request_id);
  line.push_back('\n');
  return line;
}

// Of what a pipe takes at once: whole lines, so that what others write stands between them.
size_t SizeOfLines(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text.size();
  const size_t end = text.rfind('\n', PIPE_BUF - 1);
  return end == std::string_view::npos ? PIPE_BUF : end + 1;
}

bool IsRegularFile(int descriptor) {
  struct stat found {};
  return ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
}

}  // namespace

Result<std::unique_ptr<AccessLogFile>> AccessLogFile::Open(const std::string& path) {
  PARTITA_ASSIGN(const int descriptor, OpenForAppend(path));
  std::unique_ptr<AccessLogFile> log(new AccessLogFile(descriptor));
  PARTITA_ASSIGN(log->writer_, StartThread("partita-log", [log = log.get()] { log->WriteLoop(); }));
  return log;
}

AccessLogFile::AccessLogFile(int descriptor) : descriptor_(descriptor) {}

AccessLogFile::~AccessLogFile() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (writer_.joinable()) writer_.join();  // Else Open found no thread.
  if (replacement_ >= 0) CloseUnlessStandard(replacement_);
  CloseUnlessStandard(descriptor_);
}

void AccessLogFile::Add(const http::AccessRecord& record) {
  std::string line = LineOf(record);
  const std::lock_guard lock(mutex_);
  if (buffer_.size() + line.size() > kBufferBytesMax) {
    ++dropped_;
    return;
  }
  const size_t before = buffer_.size();
  buffer_.append(line);
  if (before == 0 || (before < kGatherBytes && buffer_.size() >= kGatherBytes)) wake_.notify_one();
}

Status AccessLogFile::Reopen(const std::string& path) {
  PARTITA_ASSIGN(const int descriptor, OpenForAppend(path));
  const std::lock_guard lock(mutex_);
  if (replacement_ >= 0) CloseUnlessStandard(replacement_);
  replacement_ = descriptor;
  wake_.notify_one();
  return Status();
}

// False: nobody takes anything, and the log is to end, or goes on elsewhere. A pipe that can be written to
// takes PIPE_BUF bytes at once; of more a write would wait for the reader, and could not be ended.
bool AccessLogFile::WaitUntilTaken() {
  pollfd wanted{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  while (true) {
    const int ready = ::poll(&wanted, 1, kPatienceMs);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // The write will tell why.
    const std::lock_guard lock(mutex_);
    if (ready == 0 && (stopping_ || replacement_ >= 0)) return false;
  }
}

// On the writer, without the lock: no other thread changes `descriptor_`. Returns what could not be written.
std::string_view AccessLogFile::WriteAll(std::string_view text) {
  const bool may_hang = !IsRegularFile(descriptor_);
  while (!text.empty()) {
    given_up_ = may_hang && !WaitUntilTaken();
    if (given_up_) break;
    const size_t size = may_hang ? SizeOfLines(text) : text.size();
    const ssize_t written = ::write(descriptor_, text.data(), size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return text;
}

void AccessLogFile::WriteLoop() {
  std::string taken;
  bool cut = false;  // What the file ends with is the begin of a line.
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !buffer_.empty() || replacement_ >= 0; });
    wake_.wait_for(lock, kGatherTime,
                   [this] { return stopping_ || buffer_.size() >= kGatherBytes || replacement_ >= 0; });
    taken.clear();
    taken.swap(buffer_);
    if (cut) taken.insert(0, 1, '\n');
    // What was logged before the change is in `taken`, and the last that the old file gets, however much has
    // come when it is written.
    const bool leaves = replacement_ >= 0;
    const uint64_t told = std::exchange(dropped_, 0);
    const size_t lines_begin = cut ? 1 : 0, lines_end = taken.size();
    if (told > 0) taken += "# " + std::to_string(told) + " lines were dropped: the log could not keep up\n";
    const bool done = stopping_;
    lock.unlock();
    const std::string_view lost = WriteAll(taken);
    lock.lock();
    if (!lost.empty()) {
      // A disk that is full, say. Told once there is room.
      const size_t from = std::clamp(taken.size() - lost.size(), lines_begin, lines_end);
      const std::string_view lost_lines = std::string_view(taken).substr(from, lines_end - from);
      dropped_ += told + static_cast<uint64_t>(std::count(lost_lines.begin(), lost_lines.end(), '\n'));
    }
    cut = taken.size() > lost.size() ? taken[taken.size() - lost.size() - 1] != '\n' : cut;
    if (leaves || (given_up_ && replacement_ >= 0)) {
      CloseUnlessStandard(descriptor_);
      descriptor_ = std::exchange(replacement_, -1);
      cut = given_up_ = false;
      continue;  // Also at the end: how many were lost is told here.
    }
    if (given_up_ || (done && buffer_.empty())) return;
  }
}

}  // namespace partita
