#include "bench/load/store_directory.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace partita::bench {
namespace {

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
  const bool is_ours =
      std::filesystem::exists(MadePath(store), error) || std::filesystem::exists(LoadedPath(store), error);
  if (!is_ours && std::filesystem::exists(store, error) && !std::filesystem::is_empty(store, error)) {
    return Status::InvalidArgument(
        store +
        " holds files that partita-bench did not write; remove it, or name another "
        "directory by --directory");
  }
  RemoveStore(store);
  std::filesystem::create_directories(store, error);
  if (error) return Status::IoError(store + ": " + error.message());
  std::ofstream mark(MadePath(store));
  mark << "by partita-bench\n";
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
