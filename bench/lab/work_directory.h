#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace partita::lab {

// A directory of its own for the stores of one run, with a name that nothing else has, so that runs beside
// each other and what a killed one left do not meet. Removed with all that is in it, which only this run put
// there.
//
// It holds a file, partita-lab, that is locked for as long as the process lives: what has the file, and no
// lock on it, is what a killed run left.
class WorkDirectory {
 public:
  // Makes it in `parent`, which is made too where it is missing, and stays. What killed runs left there is
  // removed.
  static Result<WorkDirectory> Make(const std::string& parent);
  // Those in `parent` that a killed run left; nothing where there is no such directory.
  static std::vector<std::string> LeftIn(const std::string& parent);
  // One of LeftIn. kBusy: it is none, or none any more.
  static Status RemoveLeft(const std::string& path);

  WorkDirectory(WorkDirectory&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {
    other.path_.clear();
  }
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::string& path() const { return path_; }

 private:
  WorkDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;  // Empty when moved from.
  int lock_ = -1;
};

}  // namespace partita::lab
