#include "bench/lab/work_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace partita::lab {

Result<WorkDirectory> WorkDirectory::Make(const std::string& parent) {
  std::error_code failed;
  std::filesystem::create_directories(parent, failed);
  if (failed) return Status::IoError(parent + ": " + failed.message());
  std::string path = parent + "/work-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Status::IoError(path + ": " + std::strerror(errno));
  return WorkDirectory(std::move(path));
}

WorkDirectory::~WorkDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace partita::lab
