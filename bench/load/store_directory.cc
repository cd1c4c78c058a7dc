#include "bench/load/store_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace partita::bench {
namespace {

// Tell a directory from another of its name: "device inode birth", as inodes' numbers are given again. The
// birth is 0 where the file system keeps none.
std::string NumbersOf(const std::string& directory) {
  struct statx info {};
  if (statx(AT_FDCWD, directory.c_str(), 0, STATX_TYPE | STATX_INO | STATX_BTIME, &info) != 0) return "";
  if (!S_ISDIR(info.stx_mode)) return "";
  const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
  const std::string birth =
      has_birth ? std::to_string(info.stx_btime.tv_sec) + "." + std::to_string(info.stx_btime.tv_nsec) : "0";
  return std::to_string(info.stx_dev_major) + ":" + std::to_string(info.stx_dev_minor) + " " +
         std::to_string(info.stx_ino) + " " + birth;
}

bool IsOurs(const std::string& store) {
  std::string made;
  std::getline(std::ifstream(MadePath(store)), made);
  const std::string numbers = NumbersOf(store);
  std::error_code error;
  return !numbers.empty() && (made == numbers || std::filesystem::is_empty(store, error));
}

void RemoveStore(const std::string& store) {
  std::error_code error;
  std::filesystem::remove(LoadedPath(store), error);
  std::filesystem::remove_all(store, error);
  std::filesystem::remove(MadePath(store), error);
}

}  // namespace

std::string MadePath(const std::string& store) { return store + ".made"; }

std::string LoadedPath(const std::string& store) { return store + ".loaded"; }

Status MakeStoreDirectory(const std::string& store) {
  std::error_code error;
  if (std::filesystem::exists(store, error) && !IsOurs(store)) {
    return Status::InvalidArgument(store +
                                   " is not known to be partita-bench's own; remove it, or name another "
                                   "directory by --directory");
  }
  RemoveStore(store);
  std::filesystem::create_directories(store, error);
  if (error) return Status::IoError(store + ": " + error.message());
  std::ofstream mark(MadePath(store));
  mark << NumbersOf(store) << "\n";
  return mark.flush() ? Status() : Status::IoError(MadePath(store) + " cannot be written");
}

MadeStores::MadeStores(std::string directory, const std::vector<std::string>& engines)
    : directory_(std::move(directory)), made_directory_(!std::filesystem::exists(directory_)) {
  for (const std::string& engine : engines) {
    const std::string store = directory_ + "/" + engine;
    if (!std::filesystem::exists(store)) stores_.push_back(store);
  }
}

void MadeStores::Remove() const {
  for (const std::string& store : stores_) RemoveStore(store);
  std::error_code error;
  if (made_directory_) std::filesystem::remove_all(directory_, error);
}

}  // namespace partita::bench
