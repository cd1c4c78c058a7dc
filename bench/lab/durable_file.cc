#include "bench/lab/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "api/cli/whole_stream.h"

namespace partita::lab {
namespace {

Status Failed(const std::string& path) {
  const std::string what = path + ": it cannot be written: " + std::strerror(errno);
  return errno == ENOSPC || errno == EDQUOT ? Status::NoSpace(what) : Status::IoError(what);
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

}  // namespace

Status WriteDurably(const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return Failed(fresh);
  Status status = WriteAll(file, bytes) && ::fsync(file) == 0 ? Status() : Failed(fresh);
  ::close(file);
  if (status.ok() && std::rename(fresh.c_str(), path.c_str()) != 0) status = Failed(path);
  if (!status.ok()) {
    ::unlink(fresh.c_str());
    return status;
  }
  const std::string parent = std::filesystem::path(path).parent_path();
  const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Failed(parent);
  if (::fsync(directory) != 0) status = Failed(parent);
  ::close(directory);
  return status;
}

Result<std::string> ReadWholeFile(const std::string& path) {
  std::error_code ignored;  // Opening tells what there is to it.
  if (std::filesystem::is_directory(path, ignored)) {
    return Status::InvalidArgument(path + ": a directory; the path of a file is wanted");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return errno == ENOENT ? Status::NotFound(path + ": there is no such file")
                           : Status::IoError(path + ": " + std::strerror(errno));
  }
  std::string text;
  if (!ReadWhole(file, &text)) return Status::IoError(path + ": it cannot be read");
  return text;
}

Status CheckIsNew(const std::string& path, const std::string& otherwise) {
  std::error_code failed;
  const bool is_there = std::filesystem::exists(path, failed);
  if (failed) return Status::IoError(path + ": " + failed.message());
  return is_there ? Status::AlreadyExists(path + otherwise) : Status();
}

Status MakeNewDirectory(const std::string& path) {
  std::error_code failed;
  const bool is_new = std::filesystem::create_directory(path, failed);
  if (failed) return Status::IoError(path + ": " + failed.message());
  return is_new ? Status() : Status::AlreadyExists(path + " exists");
}

}  // namespace partita::lab
