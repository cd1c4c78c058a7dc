#pragma once
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace partita::bench {

// A store lies in DIRECTORY/ENGINE; files beside it say that it was made here, and which rows it holds.
std::string MadePath(const std::string& store);
std::string LoadedPath(const std::string& store);

// Makes the store's directory, empty, in place of an earlier one. kInvalidArgument where files lie there that
// were not made here, as a source tree of that name.
Status MakeStoreDirectory(const std::string& store);

// Which stores of `engines` a run makes below `directory`: those that were not there when this was made.
class MadeStores {
 public:
  MadeStores(std::string directory, const std::vector<std::string>& engines);
  // Removes them; what was there before stays.
  void Remove() const;

 private:
  const std::string directory_;
  bool made_directory_;
  std::vector<std::string> stores_;
};

}  // namespace partita::bench
