#include "bench/lab/work_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace partita::lab {
namespace {

constexpr const char* kMark = "/partita-lab";

Status WorkDirectoryError(const std::string& path) {
  return Status::IoError(path + ": " + std::strerror(errno));
}

// The file descriptor of the mark, locked; -1: it is not there, or another process holds it.
int LockMark(const std::string& path) {
  const int file = ::open((path + kMark).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return -1;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  ::close(file);
  return -1;
}

}  // namespace

Result<WorkDirectory> WorkDirectory::Make(const std::string& parent) {
  std::error_code failed;
  std::filesystem::create_directories(parent, failed);
  if (failed) return Status::IoError(parent + ": " + failed.message());
  // What cannot be removed is no hindrance.
  for (const std::string& left : LeftIn(parent)) (void)RemoveLeft(left);
  std::string path = parent + "/work-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return WorkDirectoryError(path);
  // It gets its name when it is locked: nobody sees it without.
  const std::string mark = path + kMark, fresh = mark + ".new";
  const int lock = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (lock < 0) return WorkDirectoryError(fresh);
  WorkDirectory directory(std::move(path), lock);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0 || std::rename(fresh.c_str(), mark.c_str()) != 0) {
    return WorkDirectoryError(mark);
  }
  return directory;
}

std::vector<std::string> WorkDirectory::LeftIn(const std::string& parent) {
  std::vector<std::string> left;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    const std::string path = entry.path();
    const bool has_name = entry.path().filename().string().starts_with("work-");
    if (!has_name || !entry.is_directory(ignored) || entry.is_symlink(ignored)) continue;
    const int lock = LockMark(path);
    if (lock < 0) continue;
    ::close(lock);
    left.push_back(path);
  }
  std::sort(left.begin(), left.end());
  return left;
}

Status WorkDirectory::RemoveLeft(const std::string& path) {
  const int lock = LockMark(path);
  if (lock < 0) return Status::Busy(path + ": is no directory that a killed run left");
  std::error_code failed;
  // The mark goes last: what is left of it by a kill is still known.
  for (const auto& entry : std::filesystem::directory_iterator(path, failed)) {
    if (entry.path() != path + kMark) std::filesystem::remove_all(entry.path(), failed);
  }
  if (!failed) std::filesystem::remove_all(path, failed);
  ::close(lock);
  return failed ? Status::IoError(path + ": " + failed.message()) : Status();
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace partita::lab
