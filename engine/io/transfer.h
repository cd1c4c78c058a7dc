#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/result.h"

namespace partita {

// A descriptor, and what messages and transfers need to know of it. Closed by its owner.
struct FileHandle {
  int descriptor = -1;
  bool direct = false;  // O_DIRECT is in force: every piece must be page-aligned.
  std::string path;
};

// One read or write that may come in pieces. Whoever performs it, by a system call or on a ring,
// takes the next piece from here and reports its result, until finished():
//
//   while (!transfer.finished()) transfer.Take(pread(fd, transfer.data(), transfer.size(),
//   transfer.offset()));
//
// Here the rules of F24 live: a short piece is continued from where it stopped, no progress is the
// end of the file for a read and an error for a write, interruptions are retried a bounded number
// of times. With O_DIRECT a piece that stopped off a page is continued from that page's start.
class Transfer {
 public:
  enum class Kind : uint8_t { kRead, kWrite };

  // `file` and the buffer must outlive it. A write does not change its buffer.
  Transfer(const FileHandle& file, Kind kind, uint64_t offset, std::span<const uint8_t> buffer);

  bool finished() const { return finished_; }
  Kind kind() const { return kind_; }

  // The next piece. REQUIRES: !finished().
  uint64_t offset() const { return offset_ + next_; }
  uint8_t* data() const { return data_ + next_; }
  uint32_t size() const;

  // The piece's result: bytes moved, or a negative errno.
  void Take(int64_t result);

  // REQUIRES: finished().
  const Status& status() const { return status_; }
  size_t done() const { return done_; }  // Fewer than asked for at the end of the file.
  bool complete() const { return done_ == size_; }
  // kIoError saying that the file ends before what was asked for.
  Status PastEnd() const;

 private:
  void Fail(int error);
  const char* verb() const { return kind_ == Kind::kRead ? "read" : "write"; }

  const FileHandle* file_;
  Kind kind_;
  uint64_t offset_;
  uint8_t* data_;
  size_t size_;
  size_t done_ = 0;  // Moved so far.
  size_t next_ = 0;  // Where the next piece starts: done_, or the start of its page.
  uint32_t interruptions_ = 0;
  bool finished_ = false;
  Status status_;
};

// Plain system calls on the calling thread.
void BlockingTransfer(const FileHandle& file, Transfer& transfer);
Result<size_t> BlockingRead(const FileHandle& file, uint64_t offset, std::span<uint8_t> buffer);
Status BlockingWrite(const FileHandle& file, uint64_t offset, std::span<const uint8_t> bytes);
// fdatasync. Never retried, whatever it says: a second success would prove nothing (F20).
Status BlockingFlush(const FileHandle& file);

}  // namespace partita
