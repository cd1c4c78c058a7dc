#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/object_store.h"
#include "engine/io/file.h"
#include "engine/io/write_hold.h"

namespace partita {

// Where the local stores keep their files, relative to the store's directory.
inline constexpr const char* kObjectDirectory = "tables";
inline constexpr const char* kMetaDirectory = "meta";
inline std::string MetaPath(std::string_view key) {
  return std::string(kMetaDirectory).append("/").append(key);
}

enum class IfMissing : uint8_t {
  kCreate,  // Create the subdirectory, durably (a new store).
  kFail,    // A store is expected: kNotFound, nothing is changed on disk (F35, F69).
};

// "tables/000000000012.sst": at least twelve decimal digits.
std::string ObjectPath(ObjectId id);
// The id of a file name without directory, read strictly: exactly what ObjectPath would print.
// nullopt for every other name.
std::optional<ObjectId> ParseObjectName(std::string_view name);

// ObjectStore in files of one directory, one file an object, read and written past the page cache.
//
// A written file is padded to pages while it grows and cut to its exact length at the end; then
// data, length and name are flushed, in this order (F25). Thread-safe. `files` outlives it, and it
// outlives its writers and readers.
class LocalObjectStore final : public ObjectStore {
 public:
  // What is full is written while who appends goes on, in blocking mode by `helpers`
  // (BackgroundClass::kTransfer), which outlive it. Null: who appends waits for it. `hold`, which does too,
  // may hold back what is written; null: nothing does.
  static Task<Result<std::unique_ptr<LocalObjectStore>>> Open(FileSystem& files, IfMissing if_missing,
                                                              Executor* helpers = nullptr,
                                                              WriteHold* hold = nullptr);

  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override;
  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override;
  Task<Status> Remove(ObjectId id) override;

  // Files whose names are not object names are left alone and not listed.
  Task<Result<std::vector<ObjectInfo>>> List() override;
  // Those: what does not belong here, for a report. They are never removed.
  Task<Result<std::vector<std::string>>> ListForeign();

 private:
  LocalObjectStore(FileSystem& files, Executor* helpers, WriteHold* hold)
      : files_(files), helpers_(helpers), hold_(hold) {}

  FileSystem& files_;
  Executor* const helpers_;
  WriteHold* const hold_;
};

}  // namespace partita
