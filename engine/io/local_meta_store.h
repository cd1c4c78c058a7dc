#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/base/async_mutex.h"
#include "engine/base/meta_store.h"
#include "engine/io/file.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"

namespace partita {

// The key that says which store a directory holds.
inline constexpr const char* kCatalogKey = "catalog";

// True when `key` is [a-z0-9-]{1,64}.
bool IsMetaKey(std::string_view key);

// MetaStore in files of the directory meta/, one file a key, format in meta_format.h.
//
// A swap writes KEY.new-GENERATION whole, flushes it (both may be done in advance), renames it over KEY and
// flushes the directory: after a crash the key has the old value or the new one, each complete. Leftovers are
// removed by the next swap of the key. What is read is flushed before it is answered the first
// time, as a dead process may have left it in the kernel's cache only (F29). After a failure that
// leaves a swap in doubt, the next call of that key first settles it: what is found is written
// anew under a new name, because a later success of the failed flush would prove nothing (F20).
// What cannot be read or fails verification is read once more past the kernel's cache (F52).
//
// Thread-safe; calls on one key wait for each other. `files` outlives it. One store a directory
// at a time (the directory lock sees to it, F64).
class LocalMetaStore final : public MetaStore {
 public:
  // `store` is in every seal. StoreId(0) means not known yet: then values of any one store can be
  // read, and nothing can be swapped. `transient` counts what was bad once, and good when read again; it
  // outlives the store, or is null.
  static Task<Result<std::unique_ptr<LocalMetaStore>>> Open(FileSystem& files, StoreId store,
                                                            IfMissing if_missing,
                                                            std::atomic<uint64_t>* transient = nullptr);

  // kCorruption, naming file and offset, for bytes that fail verification twice and for another store's
  // value (F66); kUnsupported for a newer format.
  Task<Result<std::optional<MetaValue>>> Get(std::string_view key) override;

  // REQUIRES: the store's id is known. kInvalidArgument for a value above kMetaValueSizeMax.
  Task<Result<uint64_t>> CompareAndSwap(std::string_view key, uint64_t expected,
                                        std::string_view bytes) override;
  // Writes and flushes the new file, and leaves the rename to the swap.
  Task<Status> PrepareSwap(std::string_view key, uint64_t expected, std::string_view bytes) override;
  Task<Status> Remove(std::string_view key) override;
  Task<Result<std::vector<std::string>>> List() override;

 private:
  enum class Trust : uint8_t {
    kUnread,   // Not read by this process yet: to be flushed before it is trusted (F29).
    kSettled,  // What is on disk is known and durable.
    kInDoubt,  // A swap or removal failed midway: to be settled before anything else.
  };
  struct Key {
    AsyncMutex mutex;
    Trust trust = Trust::kUnread;
    uint64_t generation = 0;  // Of the value on disk; meaningful when settled.
    bool leftovers_possible = true;
    // What KEY.new-GENERATION of the next generation holds, flushed, if it is there for a swap to come.
    std::optional<std::string> prepared;
  };

  LocalMetaStore(FileSystem& files, StoreId store, std::atomic<uint64_t>* transient)
      : files_(files), store_(store), transient_(transient) {}

  Key& KeyState(std::string_view key);
  // The following run under the key's mutex.
  Task<Result<std::optional<MetaValue>>> Settle(std::string_view key, Key& state);
  Task<Status> RemoveLeftovers(std::string_view key, Key& state);
  Task<Status> CheckSwap(std::string_view key, Key& state, uint64_t expected, std::string_view bytes);
  Task<Status> Replace(std::string_view key, Key& state, StoreId store, const MetaValue& value);
  Task<Status> WriteNew(std::string_view key, Key& state, StoreId store, const MetaValue& value);
  Task<Status> RenameNew(std::string_view key, Key& state, uint64_t generation);

  FileSystem& files_;
  const StoreId store_;
  std::atomic<uint64_t>* const transient_;
  std::mutex keys_mutex_;
  std::map<std::string, std::unique_ptr<Key>, std::less<>> keys_;  // Entries are never removed.
};

// The id of the store that this directory holds, from the header of key "catalog", whose seal is
// checked; nullopt when there is no catalog. For opening, when the id is not known yet. `transient`: as of
// LocalMetaStore.
Task<Result<std::optional<StoreId>>> ReadStoreId(FileSystem& files,
                                                 std::atomic<uint64_t>* transient = nullptr);

// What a value's file holds, verified; what is bad once is read once more past the kernel's cache (F52).
// `transient`: as of LocalMetaStore. Errors as of Get.
Task<Result<MetaRecord>> ReadMeta(File& file, std::string_view key,
                                  std::atomic<uint64_t>* transient = nullptr);

// All bytes of a value's file, for DecodeMeta. kCorruption when they are more than any value has, before
// anything is allocated for them (F42).
Task<Result<std::string>> ReadMetaBytes(File& file);

}  // namespace partita
