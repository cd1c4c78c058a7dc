#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/async_mutex.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/file.h"
#include "wal/log_identity.h"

namespace partita {

// The files of a log that no segment uses now, and the making of further ones.
//
// A file is zero-written and flushed, with its name, before it is handed out, and then used again
// and again: a segment is never extended while committing (F57). What a spare still holds is of a
// segment that was trimmed; the identity in each seal keeps it from passing for anything else (F30).
//
// Thread-safe: PrepareNext runs beside the holder of the flush token. `mutex_` guards the spares and
// the counters and is never held across an await; `making_` is held while a file is made, so that who
// needs one gets the one that is nearly ready; where the disk does not answer to that, he waits as long as
// it.
class SegmentPool {
 public:
  SegmentPool(FileSystem& files, std::string directory, const LogIdentity& owner, Incarnation incarnation,
              uint64_t segment_size);

  // Opens a segment file: with direct I/O, or through the page cache where the file system knows
  // no other way.
  static Task<Result<std::unique_ptr<File>>> OpenFile(FileSystem& files, std::string path, OpenMode mode);

  // Names: the directory, then a number that means nothing, e.g. "000007.log". Nothing: it names no segment.
  static std::optional<uint64_t> NumberOf(std::string_view name);

  // File numbers up to here are taken. Before anything is handed out.
  void SkipNumbers(uint64_t number);

  // A spare file, or a new one.
  Task<Result<std::unique_ptr<File>>> Acquire();

  // Makes one file when there is no spare.
  Task<Status> PrepareNext();

  // Gives back a file whose segment is trimmed.
  void Release(std::unique_ptr<File> file);

  // Removes a file that failed, as well as it can be done: it must not be used again (F20).
  Task<void> Discard(std::unique_ptr<File> file);

  // Removes spares above `spares_max`.
  Task<Status> RemoveBeyond(uint32_t spares_max);

  size_t spares() const;
  uint64_t created() const;
  void Close();  // Closes the spares.

 private:
  Task<Result<std::unique_ptr<File>>> Create();
  Task<Status> ZeroWrite(File* file);
  std::unique_ptr<File> TakeSpare();

  FileSystem& files_;
  const std::string directory_;
  const LogIdentity owner_;
  const Incarnation incarnation_;
  const uint64_t segment_size_;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<File>> spares_;
  uint64_t next_number_ = 1;
  uint64_t created_ = 0;
  AsyncMutex making_;
};

}  // namespace partita
