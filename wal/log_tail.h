#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>

#include "engine/base/log_store.h"
#include "engine/io/file.h"
#include "wal/tail_format.h"

namespace partita {

// The tail of a log (level `process`, F3): records copied into a shared mapping, which the kernel
// keeps when the process dies. Two halves, used in turn; a half is used again once segments hold
// all its records flushed.
//
// Mapped, not written by system calls: encoding and storing a record of 1 KiB costs 0.11 us of CPU,
// a buffered pwrite of it 4.5 us (BM_AppendTail against BM_TailByPwrite in bench/micro/log_bench.cc,
// a busy 2-core virtual machine), and AppendTail may be a plain function. The price: a read error of
// an evicted page would end the process by SIGBUS. Open reads the file by a call first, where that is an
// error only; a page that is evicted later may still do it. The blocks are written once when the file is
// made, so a full disk cannot; file systems that write a page elsewhere each time get it by calls
// (engine/io/written_mapping.h).
//
// Append belongs to the holder of the tail token; ReadAll to recovery, before the first Append.
class LogTail {
 public:
  // Makes the file when it is missing, or says kCorruption when it `must_exist`.
  static Task<Result<std::unique_ptr<LogTail>>> Open(FileSystem& files, std::string directory,
                                                     const LogIdentity& owner, Incarnation incarnation,
                                                     uint64_t size, bool must_exist);

  // The tail as it stands, for ReadAll alone: nothing is mapped or made. A missing one is empty unless it
  // `must_exist`.
  static Task<Result<std::unique_ptr<LogTail>>> OpenForReading(FileSystem& files, std::string directory,
                                                               const LogIdentity& owner, bool must_exist);

  // Every good record of that incarnation, by position, also behind bad ones. Views into the mapping, valid
  // until Append.
  std::map<LogPosition, TailRecord> ReadAll(Incarnation incarnation) const;

  // Of the records that stand first in the halves; 0: there are none.
  Incarnation NewestIncarnation() const;

  // Copies all of `records` but those up to end(), or none: kBusy. `durable_end`: what segments hold flushed.
  // Another error: up to end() they are copied, and the others may be tried again.
  Status Append(std::span<const LogRecord> records, LogPosition durable_end);

  // The last position copied since Open; 0 when none.
  LogPosition end() const { return end_; }

 private:
  LogTail(const LogIdentity& owner, Incarnation incarnation, std::unique_ptr<SharedMapping> mapping);

  struct Half {
    uint64_t used = 0;
    LogPosition last;  // Highest position in it.
  };
  bool Fits(std::span<const LogRecord> records, LogPosition durable_end) const;
  Status Write(const LogRecord& record);

  const LogIdentity owner_;
  const Incarnation incarnation_;
  std::unique_ptr<SharedMapping> mapping_;
  std::span<uint8_t> bytes_;
  uint64_t half_size_;
  Half halves_[2];
  size_t current_ = 0;
  LogPosition end_;
};

}  // namespace partita
