#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::lab {

// Bytes that are written once and then read as if they lay in memory: in a file without a name below $TMPDIR,
// else /var/tmp, which is gone when the process is. Nobody else can change or cut it, which is why it may be
// mapped; the kernel drops its pages when memory is short. A disk that fails to give them back ends the
// process (SIGBUS).
class PrivateFile {
 public:
  // kIoError.
  static Result<std::unique_ptr<PrivateFile>> Make();
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  // kNoSpace, kIoError; the file is then of no use. REQUIRES: Seal was not called.
  Status Append(std::string_view bytes);
  uint64_t size() const { return size_; }  // With what is not written yet.
  // From here on bytes() are all of them. kNoSpace, kIoError.
  Status Seal();
  std::string_view bytes() const { return bytes_; }

 private:
  PrivateFile(int fd, std::string directory) : fd_(fd), directory_(std::move(directory)) {}
  Status Flush();

  const int fd_;
  const std::string directory_;
  std::string pending_;
  uint64_t size_ = 0;
  std::string_view bytes_;
};

}  // namespace partita::lab
