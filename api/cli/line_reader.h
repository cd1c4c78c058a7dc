#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita {

// Where bytes come from. Used by one thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `size` bytes to `to`; 0 is the end. kIoError. REQUIRES: size > 0.
  virtual Result<size_t> Read(char* to, size_t size) = 0;
  // Skips up to `count` bytes without reading them where the source can; returns how many it skipped.
  virtual Result<uint64_t> Skip(uint64_t count) { return uint64_t{0}; }
};

// A file descriptor, read from where it stands; standard input is 0. Does not close it.
class FdSource : public ByteSource {
 public:
  // With a `stop_fd` a Read, also one that waits for input, ends with kCancelled once that is readable.
  explicit FdSource(int fd, int stop_fd = -1) : fd_(fd), stop_fd_(stop_fd) {}
  Result<size_t> Read(char* to, size_t size) override;
  Result<uint64_t> Skip(uint64_t count) override;

 private:
  Status WaitForInput();

  int fd_;
  int stop_fd_;
};

// Bytes in memory that outlive the source.
class MemorySource : public ByteSource {
 public:
  // `step`: at most so many bytes a read.
  explicit MemorySource(std::string_view bytes, size_t step = SIZE_MAX) : bytes_(bytes), step_(step) {}
  Result<size_t> Read(char* to, size_t size) override;

 private:
  std::string_view bytes_;
  size_t step_;
};

// One line of the input.
struct Line {
  std::string_view text;    // Without its ending.
  std::string_view ending;  // LF, CR LF, or nothing at the end of the input.
  bool continues = false;   // A piece of a line; the next piece follows (LongLines::kSplit).
  uint64_t number = 0;      // From 1.
  uint64_t offset = 0;      // Of its first byte.
};

// What happens to a line above the maximum.
enum class LongLines : uint8_t {
  kRefuse,  // It is told as an error and skipped to its end.
  kSplit,   // It is given in pieces of at most the maximum.
};

// Cuts an input into lines. Holds at most one line of the given maximum and a read buffer. A UTF-8 byte
// order mark at the very start is not part of the first line. Used by one thread.
class LineReader {
 public:
  LineReader(std::unique_ptr<ByteSource> source, size_t line_bytes_max,
             LongLines long_lines = LongLines::kRefuse);

  // The next line, nothing at the end. The views are valid until the next call. A refused long line is
  // kInvalidArgument naming its number. kIoError: the input failed; nothing follows.
  std::optional<Result<Line>> Next();

  // Of the line given last.
  uint64_t line_number() const { return line_number_; }
  // Of the first byte after it.
  uint64_t offset() const { return offset_; }

  // Goes on at `offset`, where line number `line` starts. kInvalidArgument when that lies behind, or
  // after the input's end.
  Status SkipTo(uint64_t offset, uint64_t line);

 private:
  Status Fill();
  std::string_view window() const { return std::string_view(buffer_).substr(begin_, end_ - begin_); }
  void Consume(size_t count) {
    begin_ += count;
    offset_ += count;
  }
  std::optional<Result<Line>> GiveLine(size_t text_size, size_t ending_size);
  std::optional<Result<Line>> TakeLongLine();
  std::optional<Result<Line>> SkipLongLine();

  std::unique_ptr<ByteSource> source_;
  size_t line_bytes_max_;
  LongLines long_lines_;
  bool within_line_ = false;  // The piece given last continues.
  std::string buffer_;        // [begin_, end_) is input not yet given.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;  // The source has no more.
  bool failed_ = false;
  uint64_t line_number_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace partita
