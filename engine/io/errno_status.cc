#include "engine/io/errno_status.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace partita {

namespace {

Code CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return Code::kNoSpace;
    case ENOENT:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::kUnsupported;
    default:
      return Code::kIoError;
  }
}

std::string_view Advice(int error) {
  switch (error) {
    case ENOSPC:
      return "; the disk is full: free space on it";
    case EMFILE:
      return "; the process has no file descriptors left: raise `ulimit -n` (LimitNOFILE= in a service unit)";
    case ENFILE:
      return "; the machine has no file descriptors left: raise the sysctl fs.file-max";
    case EROFS:
      return "; the file system is mounted read-only, perhaps after an error: see `dmesg`";
    case EACCES:
    case EPERM:
      return "; the store's files must belong to the user who runs this process";
    case EDQUOT:
      return "; the user's disk quota is used up";
    default:
      return "";
  }
}

}  // namespace

Status ErrnoStatus(std::string_view operation, std::string_view path, int error) {
  char text[128] = "";
  const char* name = strerror_r(error, text, sizeof text);  // The GNU form.
  std::string message;
  message.append(operation).append(" \"").append(path).append("\": ").append(name);
  message.append(" (errno ").append(std::to_string(error)).append(")").append(Advice(error));
  return Status(CodeOf(error), std::move(message));
}

Status ErrnoStatusOfDirectory(std::string_view operation, std::string_view directory, int error) {
  Status status = ErrnoStatus(operation, directory, error);
  return error == ENOTDIR ? Status::InvalidArgument(status.message()) : status;
}

Status ErrnoStatusAt(std::string_view operation, std::string_view path, uint64_t offset, int error) {
  std::string place(operation);
  place.append(" at offset ").append(std::to_string(offset)).append(" of");
  return ErrnoStatus(place, path, error);
}

}  // namespace partita
