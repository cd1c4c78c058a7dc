#pragma once
#include <string>

#include "engine/base/result.h"

namespace partita::lab {

// A directory of its own for the stores of one run, with a name that nothing else has, so that runs beside
// each other and what a killed one left do not meet. Removed with all that is in it, which only this run put
// there.
class WorkDirectory {
 public:
  // Makes it in `parent`, which is made too where it is missing, and stays.
  static Result<WorkDirectory> Make(const std::string& parent);
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;  // Empty when moved from.
};

}  // namespace partita::lab
