#include "api/cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/names.h"

namespace partita {
namespace {

// Reads grow to this: small inputs take little memory, long ones few calls.
constexpr size_t kReadSizeMin = 4 << 10;
constexpr size_t kReadSizeMax = 256 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

// A signal may come before the wait as well as in it: by the descriptor it is not lost.
Status FdSource::WaitForInput() {
  pollfd both[] = {{.fd = fd_, .events = POLLIN, .revents = 0},
                   {.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  while (::poll(both, 2, /*timeout=*/-1) < 0) {
    if (errno != EINTR) return Status::IoError(std::string("waiting for input: ") + std::strerror(errno));
  }
  return both[1].revents == 0 ? Status() : Status::Cancelled("reading the input: interrupted");
}

Result<size_t> FdSource::Read(char* to, size_t size) {
  while (true) {
    if (stop_fd_ >= 0) PARTITA_TRY(WaitForInput());
    const ssize_t count = ::read(fd_, to, size);
    if (count >= 0) return static_cast<size_t>(count);
    // Bounded in practice: each interruption is a signal of this process (F24).
    if (errno != EINTR) return Status::IoError(std::string("reading the input: ") + std::strerror(errno));
  }
}

Result<uint64_t> FdSource::Skip(uint64_t count) {
  const off_t here = ::lseek(fd_, 0, SEEK_CUR);
  if (here < 0) return uint64_t{0};  // A pipe: it is read instead.
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  if (size < here) return Status::IoError("reading the input: cannot tell its size");
  const off_t target = here + static_cast<off_t>(std::min(count, static_cast<uint64_t>(size - here)));
  if (::lseek(fd_, target, SEEK_SET) != target) return Status::IoError("reading the input: cannot seek");
  return static_cast<uint64_t>(target - here);
}

Result<size_t> MemorySource::Read(char* to, size_t size) {
  const size_t count = std::min({size, step_, bytes_.size()});
  if (count > 0) std::memcpy(to, bytes_.data(), count);
  bytes_.remove_prefix(count);
  return count;
}

LineReader::LineReader(std::unique_ptr<ByteSource> source, size_t line_bytes_max, LongLines long_lines)
    : source_(std::move(source)), line_bytes_max_(line_bytes_max), long_lines_(long_lines) {}

// Reads more behind the window, moving it to the front or growing the buffer when there is no room.
Status LineReader::Fill() {
  const size_t wanted = std::clamp(buffer_.size(), kReadSizeMin, kReadSizeMax);
  if (begin_ > 0 && end_ + wanted > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + wanted > buffer_.size()) buffer_.resize(std::max(2 * buffer_.size(), end_ + wanted));
  Result<size_t> count = source_->Read(buffer_.data() + end_, wanted);
  if (!count.ok()) {
    failed_ = true;
    return count.status();
  }
  end_ += *count;
  at_end_ = *count == 0;
  return Status();
}

std::optional<Result<Line>> LineReader::Next() {
  if (failed_) return std::nullopt;
  size_t searched = 0;
  while (true) {
    const size_t newline = window().find('\n', searched);
    if (newline != std::string_view::npos && newline <= line_bytes_max_ + 1) {
      const bool has_return = newline > 0 && window()[newline - 1] == '\r';
      return GiveLine(newline - (has_return ? 1 : 0), has_return ? 2 : 1);
    }
    if (newline != std::string_view::npos || window().size() > line_bytes_max_ + 1) return TakeLongLine();
    if (at_end_) break;
    searched = window().size();
    if (Status status = Fill(); !status.ok()) return Result<Line>(status);
  }
  if (window().empty()) return std::nullopt;
  return GiveLine(window().size(), 0);
}

std::optional<Result<Line>> LineReader::GiveLine(size_t text_size, size_t ending_size) {
  if (text_size > line_bytes_max_) return TakeLongLine();
  Line line;
  line.offset = offset_;
  if (!within_line_) ++line_number_;
  within_line_ = false;
  line.number = line_number_;
  line.text = window().substr(0, text_size);
  line.ending = window().substr(text_size, ending_size);
  Consume(text_size + ending_size);
  if (line.offset == 0 && line.text.starts_with(kByteOrderMark)) {
    line.text.remove_prefix(kByteOrderMark.size());
  }
  return Result<Line>(line);
}

// REQUIRES: more than the maximum is in the window before the next line feed.
std::optional<Result<Line>> LineReader::TakeLongLine() {
  if (long_lines_ == LongLines::kRefuse) return SkipLongLine();
  Result<Line> piece = *GiveLine(line_bytes_max_, 0);
  piece->continues = true;
  within_line_ = true;
  return piece;
}

std::optional<Result<Line>> LineReader::SkipLongLine() {
  const uint64_t start = offset_;
  ++line_number_;
  while (true) {
    const size_t newline = window().find('\n');
    if (newline != std::string_view::npos) {
      Consume(newline + 1);
      break;
    }
    Consume(window().size());
    if (at_end_) break;
    if (Status status = Fill(); !status.ok()) return Result<Line>(status);
  }
  return Result<Line>(BrokenRule(Violation::kInvalidInput, "line " + std::to_string(line_number_) + ": has " +
                                                               std::to_string(offset_ - start) +
                                                               " bytes; allowed are " +
                                                               std::to_string(line_bytes_max_)));
}

Status LineReader::SkipTo(uint64_t offset, uint64_t line) {
  if (offset < offset_ || line == 0) {
    return Status::InvalidArgument("resume at byte " + std::to_string(offset) + ": lies behind byte " +
                                   std::to_string(offset_));
  }
  Consume(std::min<uint64_t>(window().size(), offset - offset_));
  if (offset > offset_) {
    PARTITA_ASSIGN(const uint64_t skipped, source_->Skip(offset - offset_));
    offset_ += skipped;
  }
  while (offset > offset_ && !at_end_) {
    PARTITA_TRY(Fill());
    Consume(std::min<uint64_t>(window().size(), offset - offset_));
  }
  if (offset > offset_) {
    return Status::InvalidArgument("resume at byte " + std::to_string(offset) + ": the input ends at byte " +
                                   std::to_string(offset_));
  }
  line_number_ = line - 1;
  return Status();
}

}  // namespace partita
