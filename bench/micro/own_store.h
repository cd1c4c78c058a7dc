#pragma once
#include <filesystem>
#include <string>
#include <system_error>

#include "bench/load/store_directory.h"
#include "bench/micro/or_die.h"

namespace partita::bench {

// The store of a benchmark with its own main: DIRECTORY/NAME, since --directory is where the device is
// mounted, with whatever else a user has there. Empty at first, whatever an earlier run left, and gone with
// this object. Ends the process where files of others have its name.
class OwnStore {
 public:
  OwnStore(const std::string& directory, const std::string& name) : path_(directory + "/" + name) {
    Check(MakeStoreDirectory(path_));
  }
  ~OwnStore() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    std::filesystem::remove(MadePath(path_), error);
  }
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace partita::bench
