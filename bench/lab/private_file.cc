#include "bench/lab/private_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/assert.h"

namespace partita::lab {
namespace {

constexpr size_t kPendingMax = 1 << 20;

std::string DirectoryForFiles() {
  const char* given = std::getenv("TMPDIR");
  return given == nullptr || *given == '\0' ? "/var/tmp" : given;
}

}  // namespace

Result<std::unique_ptr<PrivateFile>> PrivateFile::Make() {
  const std::string directory = DirectoryForFiles();
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // A file system that knows no file without a name.
    std::string path = directory + "/partita-lab-XXXXXX";
    fd = ::mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) ::unlink(path.c_str());
  }
  if (fd < 0) return Status::IoError(directory + ": no file can be made there: " + std::strerror(errno));
  return std::unique_ptr<PrivateFile>(new PrivateFile(fd, directory));
}

PrivateFile::~PrivateFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  ::close(fd_);
}

Status PrivateFile::Append(std::string_view bytes) {
  pending_.append(bytes);
  size_ += bytes.size();
  return pending_.size() < kPendingMax ? Status() : Flush();
}

Status PrivateFile::Flush() {
  for (std::string_view left = pending_; !left.empty();) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string why = directory_ + ": a file there cannot be written: " + std::strerror(errno);
      return errno == ENOSPC || errno == EDQUOT ? Status::NoSpace(why) : Status::IoError(why);
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  pending_.clear();
  return Status();
}

Status PrivateFile::Seal() {
  PARTITA_ASSERT(bytes_.empty());
  PARTITA_TRY(Flush());
  pending_.shrink_to_fit();
  if (size_ == 0) return Status();
  void* const start = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (start == MAP_FAILED) return Status::IoError(directory_ + ": mapping failed: " + std::strerror(errno));
  bytes_ = {static_cast<const char*>(start), size_};
  return Status();
}

}  // namespace partita::lab
