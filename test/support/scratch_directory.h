#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace partita {

// A fresh directory on a real disk, removed with everything in it. Not /tmp, which may be a tmpfs
// that refuses direct I/O: PARTITA_SCRATCH or the working directory.
class ScratchDirectory {
 public:
  ScratchDirectory() : ScratchDirectory(DefaultBase()) {}
  explicit ScratchDirectory(const std::string& base) {
    std::string pattern = base + "/partita-test-XXXXXX";
    char* made = mkdtemp(pattern.data());
    path_ = made != nullptr ? made : "";
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  static std::string DefaultBase() {
    const char* base = std::getenv("PARTITA_SCRATCH");
    return base != nullptr ? std::string(base) : std::filesystem::current_path().string();
  }

  std::string path_;
};

}  // namespace partita
