#include "api/cli/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "engine/base/result.h"

namespace partita {

namespace {

// What bears it is removed as a leftover of this: a usual one, such as .partial, may be of a download.
constexpr const char* kWorkingEnding = ".partita-partial";

// Where a name leads, through however many links.
struct Destination {
  std::string file;      // It need not be there.
  bool is_open = false;  // By way of a process's descriptors, as of /dev/stdout: what somebody has open.
};

// REQUIRES: no loop.
Destination Follow(const std::string& name) {
  constexpr int kLinksMax = 40;  // As many as the kernel follows.
  std::filesystem::path path = name;
  for (int followed = 0; followed < kLinksMax; ++followed) {
    if (path.string().starts_with("/proc/") || path.string().starts_with("/dev/fd/"))
      return {path.string(), /*is_open=*/true};
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) break;
    path = path.parent_path() / next;  // `next` alone where that begins at the root.
  }
  return {path.string(), /*is_open=*/false};
}

}  // namespace

bool FlushNameOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool flushed = ::fsync(fd) == 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  return flushed;
}

OutputFile::OutputFile(const std::string& name, Console& console)
    : file_(name == "-" ? "" : name), console_(console), working_name_(file_) {}

OutputFile::~OutputFile() {
  if (lock_ < 0) return;
  if (!finished_ && StillBearsItsName(lock_)) ::unlink(working_name_.c_str());
  ::close(lock_);
}

Status OutputFile::Open() {
  if (file_.empty()) return Status();
  PARTITA_TRY(ChooseNames());
  if (is_replaced_) PARTITA_TRY(MakeWorkingFile());
  stream_.open(working_name_, std::ios::binary | (is_replaced_ ? std::ios::trunc : std::ios::app));
  return stream_ ? Status() : Failure("cannot write");
}

Status OutputFile::Write(std::string_view text) {
  std::ostream& out = file_.empty() ? console_.out : stream_;
  errno = 0;
  if (out.write(text.data(), static_cast<std::streamsize>(text.size()))) return Status();
  return Failure("cannot write");
}

Status OutputFile::Finish() {
  errno = 0;
  if (file_.empty()) {
    console_.out.flush();
    return console_.out ? Status() : Failure("cannot write");
  }
  if (!stream_.flush()) return Failure("cannot write");  // Closing may forget why.
  stream_.close();
  if (!stream_) return Failure("cannot write");
  return is_replaced_ ? PutInPlace() : Status();
}

Status OutputFile::ChooseNames() {
  struct stat info {};
  const bool is_there = ::stat(file_.c_str(), &info) == 0;
  if (!is_there && errno != ENOENT) return Failure("cannot write");
  if (is_there && S_ISDIR(info.st_mode)) {
    return Status::InvalidArgument("'" + file_ + "' is a directory; name a file");
  }
  const Destination to = Follow(file_);
  is_replaced_ = !is_there || (S_ISREG(info.st_mode) && !to.is_open);
  if (!is_replaced_) return Status();
  final_name_ = to.file;
  working_name_ = final_name_ + kWorkingEnding;
  if (is_there) replaced_ = info;
  return Status();
}

// Private until it is whole, where it replaces a file, whose mode it then gets.
Status OutputFile::MakeWorkingFile() {
  PARTITA_TRY(RemoveLeftover());
  const mode_t mode = replaced_ ? S_IRUSR | S_IWUSR : 0666;
  const int fd = ::open(working_name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return errno == EEXIST ? InUse() : Failure("cannot write");
  const Status locked = LockWorkingFile(fd);
  if (locked.ok() && StillBearsItsName(fd)) {
    lock_ = fd;
    return Status();
  }
  ::close(fd);
  return locked.ok() ? InUse() : locked;
}

// What a killed command left, which nobody has locked.
Status OutputFile::RemoveLeftover() {
  const int fd = ::open(working_name_.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return Status();
  if (fd < 0 && errno != ELOOP) return Failure("cannot write");
  Status removed = fd < 0 ? Status() : LockWorkingFile(fd);
  if (removed.ok() && fd >= 0 && !StillBearsItsName(fd)) removed = InUse();
  if (removed.ok() && ::unlink(working_name_.c_str()) != 0) removed = Failure("cannot write");
  if (fd >= 0) ::close(fd);
  return removed;
}

Status OutputFile::LockWorkingFile(int fd) const {
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return taken ? InUse() : Status();  // Where nothing can be locked, the name tells in the end.
}

Status OutputFile::InUse() const {
  return Status::Busy("another command is writing '" + working_name_ +
                      "'; wait for it, or name another file");
}

bool OutputFile::StillBearsItsName(int fd) const {
  struct stat own {
  }, named{};
  return ::fstat(fd, &own) == 0 && ::lstat(working_name_.c_str(), &named) == 0 &&
         own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

// The mode of what is replaced, and its group: for another group its mode may be too wide.
bool OutputFile::TakeMode(int fd) const {
  if (!replaced_) return true;
  mode_t mode = replaced_->st_mode & 07777;
  struct stat own {};
  if (fstat(fd, &own) != 0) return false;
  const bool has_group = own.st_gid == replaced_->st_gid || ::fchown(fd, -1, replaced_->st_gid) == 0;
  if (!has_group) mode &= ~static_cast<mode_t>(S_IRWXG | S_ISGID);
  return ::fchmod(fd, mode) == 0;
}

Status OutputFile::PutInPlace() {
  if (!TakeMode(lock_) || ::fsync(lock_) != 0) return Failure("cannot write");
  if (!StillBearsItsName(lock_)) {
    return Status::IoError("'" + working_name_ + "' was removed or replaced while it was written");
  }
  if (std::rename(working_name_.c_str(), final_name_.c_str()) != 0) return Failure("cannot replace");
  finished_ = true;
  return FlushNameOf(final_name_) ? Status() : Failure("cannot flush the directory of");
}

Status OutputFile::Failure(const char* what) const {
  const std::string name = file_.empty() ? "standard output" : "'" + working_name_ + "'";
  const std::string text = std::string(what) + " " + name + ": " + std::strerror(errno);
  return errno == ENOSPC ? Status::NoSpace(text) : Status::IoError(text);
}

}  // namespace partita
