#include "engine/io/local_meta_store.h"

#include "engine/base/assert.h"
#include "engine/base/hex.h"
#include "engine/base/site.h"
#include "engine/io/meta_format.h"

namespace partita {

namespace {

constexpr size_t kKeySizeMax = 64;
constexpr std::string_view kNewMark = ".new-";

std::string KeyPath(std::string_view key) { return std::string(kMetaDirectory) + "/" + std::string(key); }

std::string NewPath(std::string_view key, uint64_t generation) {
  return KeyPath(key) + std::string(kNewMark) + std::to_string(generation);
}

Status BadKey(std::string_view key) {
  return Status::InvalidArgument("\"" + std::string(key) + "\" is not a meta key: [a-z0-9-]{1,64}");
}

Task<Result<MetaRecord>> ReadMetaOnce(File& file, std::string_view key) {
  PARTITA_CO_ASSIGN(const std::string bytes, co_await ReadMetaBytes(file));
  co_return DecodeMeta(key, file.path(), bytes);
}

// What may be of the reading, rather than of what stands there. The format is looked at before the seal.
bool MayBeTransient(Code code) {
  return code == Code::kCorruption || code == Code::kIoError || code == Code::kUnsupported;
}

// What stands on disk for `key`, verified; nullopt when nothing does. `flush` makes it durable
// before it is answered (F29).
enum class BeforeAnswer : uint8_t { kNothing, kFlush };
Task<Result<std::optional<MetaRecord>>> ReadKey(FileSystem& files, std::string_view key, BeforeAnswer before,
                                                std::atomic<uint64_t>* transient) {
  const std::string path = KeyPath(key);
  auto opened = co_await files.Open(path, OpenMode::kRead, FileIo::kBuffered);
  if (!opened.ok() && opened.code() != Code::kNotFound) co_return opened.status();
  const bool present = opened.ok();
  if (before == BeforeAnswer::kFlush) {
    if (present && SiteIsOn("meta.read.flush")) PARTITA_CO_TRY(co_await opened.value()->Flush());
    if (SiteIsOn("meta.read.dirflush")) PARTITA_CO_TRY(co_await files.FlushDirectory(kMetaDirectory));
  }
  if (!present) co_return std::optional<MetaRecord>();
  PARTITA_CO_ASSIGN(MetaRecord record, co_await ReadMeta(*opened.value(), key, transient));
  co_return std::optional<MetaRecord>(std::move(record));
}

}  // namespace

bool IsMetaKey(std::string_view key) {
  if (key.empty() || key.size() > kKeySizeMax) return false;
  for (char c : key) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (!allowed) return false;
  }
  return true;
}

Task<Result<std::unique_ptr<LocalMetaStore>>> LocalMetaStore::Open(FileSystem& files, StoreId store,
                                                                   IfMissing if_missing,
                                                                   std::atomic<uint64_t>* transient) {
  if (if_missing == IfMissing::kCreate) {
    PARTITA_CO_TRY(co_await files.CreateDirectory(kMetaDirectory));
    if (SiteIsOn("meta.directory.dirflush")) PARTITA_CO_TRY(co_await files.FlushDirectory(""));
  } else {
    PARTITA_CO_TRY(co_await files.List(kMetaDirectory));
  }
  co_return std::unique_ptr<LocalMetaStore>(new LocalMetaStore(files, store, transient));
}

LocalMetaStore::Key& LocalMetaStore::KeyState(std::string_view key) {
  std::lock_guard lock(keys_mutex_);
  auto found = keys_.find(key);
  if (found == keys_.end()) found = keys_.emplace(std::string(key), std::make_unique<Key>()).first;
  return *found->second;
}

Task<Result<std::optional<MetaValue>>> LocalMetaStore::Get(std::string_view key) {
  if (!IsMetaKey(key)) co_return BadKey(key);
  Key& state = KeyState(key);
  auto guard = co_await state.mutex.Lock();
  co_return co_await Settle(key, state);
}

// Reads the value and leaves it durable: afterwards what a reader was shown stays so (F15).
Task<Result<std::optional<MetaValue>>> LocalMetaStore::Settle(std::string_view key, Key& state) {
  const BeforeAnswer before = state.trust == Trust::kSettled ? BeforeAnswer::kNothing : BeforeAnswer::kFlush;
  PARTITA_CO_ASSIGN(std::optional<MetaRecord> record, co_await ReadKey(files_, key, before, transient_));
  std::optional<MetaValue> value;
  if (record.has_value()) {
    if (store_ != StoreId() && record->store != store_) {
      co_return Status::Corruption("\"" + KeyPath(key) + "\", offset 8: it belongs to store " +
                                   HexText(record->store.value) + ", expected store " +
                                   HexText(store_.value) + ": a foreign store's file (F66)");
    }
    value = record->value;
  }
  if (state.trust == Trust::kInDoubt && value.has_value()) {
    // The flush above may have succeeded only because the one before it failed (F20).
    PARTITA_CO_TRY(co_await RemoveLeftovers(key, state));
    PARTITA_CO_TRY(co_await Replace(key, state, record->store, *value));
  }
  state.generation = value.has_value() ? value->generation : 0;
  state.trust = Trust::kSettled;
  co_return value;
}

// What a swap needs before it may begin.
Task<Status> LocalMetaStore::CheckSwap(std::string_view key, Key& state, uint64_t expected,
                                       std::string_view bytes) {
  PARTITA_ASSERT(store_ != StoreId());
  if (bytes.size() > kMetaValueSizeMax) {
    co_return Status::InvalidArgument("meta key \"" + std::string(key) + "\": a value of " +
                                      std::to_string(bytes.size()) + " bytes is above the limit of " +
                                      std::to_string(kMetaValueSizeMax));
  }
  if (state.trust != Trust::kSettled) PARTITA_CO_TRY(co_await Settle(key, state));
  if (state.generation != expected) {
    co_return Status::PreconditionFailed("meta key \"" + std::string(key) + "\" has generation " +
                                         std::to_string(state.generation) + ", expected " +
                                         std::to_string(expected));
  }
  co_return Status();
}

Task<Result<uint64_t>> LocalMetaStore::CompareAndSwap(std::string_view key, uint64_t expected,
                                                      std::string_view bytes) {
  if (!IsMetaKey(key)) co_return BadKey(key);
  Key& state = KeyState(key);
  auto guard = co_await state.mutex.Lock();
  PARTITA_CO_TRY(co_await CheckSwap(key, state, expected, bytes));
  if (state.prepared == bytes) {
    PARTITA_CO_TRY(co_await RenameNew(key, state, expected + 1));
  } else {
    if (state.leftovers_possible) PARTITA_CO_TRY(co_await RemoveLeftovers(key, state));
    PARTITA_CO_TRY(co_await Replace(key, state, store_, MetaValue{std::string(bytes), expected + 1}));
  }
  state.generation = expected + 1;
  co_return state.generation;
}

Task<Status> LocalMetaStore::PrepareSwap(std::string_view key, uint64_t expected, std::string_view bytes) {
  if (!IsMetaKey(key)) co_return BadKey(key);
  Key& state = KeyState(key);
  auto guard = co_await state.mutex.Lock();
  PARTITA_CO_TRY(co_await CheckSwap(key, state, expected, bytes));
  if (state.leftovers_possible) PARTITA_CO_TRY(co_await RemoveLeftovers(key, state));
  PARTITA_CO_TRY(co_await WriteNew(key, state, store_, MetaValue{std::string(bytes), expected + 1}));
  state.prepared = bytes;
  co_return Status();
}

// Writes the value whole beside the old one and takes its place. kUnknown once the rename has
// begun; any other error leaves the old value in place.
Task<Status> LocalMetaStore::Replace(std::string_view key, Key& state, StoreId store,
                                     const MetaValue& value) {
  PARTITA_CO_TRY(co_await WriteNew(key, state, store, value));
  co_return co_await RenameNew(key, state, value.generation);
}

Task<Status> LocalMetaStore::WriteNew(std::string_view key, Key& state, StoreId store,
                                      const MetaValue& value) {
  const std::string encoded = EncodeMeta(key, store, value.generation, value.bytes);
  const std::span<const uint8_t> content(reinterpret_cast<const uint8_t*>(encoded.data()), encoded.size());
  state.leftovers_possible = true;
  PARTITA_CO_ASSIGN(std::unique_ptr<File> file, co_await files_.Open(NewPath(key, value.generation),
                                                                     OpenMode::kCreate, FileIo::kBuffered));
  // Data before the name that says so (F25). Apart, as a write that finds no space may be done again, and a
  // flush may not (F20).
  PARTITA_CO_TRY(co_await file->WriteAt(0, content));
  if (SiteIsOn("meta.flush")) PARTITA_CO_TRY(co_await file->Flush());
  co_return Status();
}

Task<Status> LocalMetaStore::RenameNew(std::string_view key, Key& state, uint64_t generation) {
  state.trust = Trust::kInDoubt;
  state.prepared.reset();
  Status renamed = co_await files_.Rename(NewPath(key, generation), KeyPath(key));
  if (renamed.ok() && SiteIsOn("meta.dirflush")) renamed = co_await files_.FlushDirectory(kMetaDirectory);
  if (!renamed.ok())
    co_return Status::Unknown("swap of meta key \"" + std::string(key) + "\": " + renamed.ToString());
  state.trust = Trust::kSettled;
  state.leftovers_possible = false;
  co_return Status();
}

Task<Status> LocalMetaStore::RemoveLeftovers(std::string_view key, Key& state) {
  state.prepared.reset();
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files_.List(kMetaDirectory));
  const std::string prefix = std::string(key) + std::string(kNewMark);
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(prefix)) continue;
    Status removed = co_await files_.Remove(KeyPath(entry.name));
    if (!removed.ok() && removed.code() != Code::kNotFound) co_return removed;
  }
  state.leftovers_possible = false;
  co_return Status();
}

Task<Status> LocalMetaStore::Remove(std::string_view key) {
  if (!IsMetaKey(key)) co_return BadKey(key);
  Key& state = KeyState(key);
  auto guard = co_await state.mutex.Lock();
  PARTITA_CO_TRY(co_await RemoveLeftovers(key, state));
  state.trust = Trust::kInDoubt;
  Status removed = co_await files_.Remove(KeyPath(key));
  if (removed.code() == Code::kNotFound) removed = Status();
  if (removed.ok() && SiteIsOn("meta.remove.dirflush")) {
    removed = co_await files_.FlushDirectory(kMetaDirectory);
  }
  if (!removed.ok()) {
    co_return Status::Unknown("removal of meta key \"" + std::string(key) + "\": " + removed.ToString());
  }
  state.trust = Trust::kSettled;
  state.generation = 0;
  co_return Status();
}

Task<Result<std::vector<std::string>>> LocalMetaStore::List() {
  PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files_.List(kMetaDirectory));
  std::vector<std::string> keys;
  for (const DirectoryEntry& entry : entries) {
    if (IsMetaKey(entry.name)) keys.push_back(entry.name);
  }
  co_return keys;
}

Task<Result<MetaRecord>> ReadMeta(File& file, std::string_view key, std::atomic<uint64_t>* transient) {
  Result<MetaRecord> record = co_await ReadMetaOnce(file, key);
  if (!MayBeTransient(record.code())) co_return record;
  // A bad page of the kernel's cache would refuse the store until it goes.
  (void)co_await file.DropCache();
  record = co_await ReadMetaOnce(file, key);
  if (record.ok() && transient != nullptr) transient->fetch_add(1, std::memory_order_relaxed);
  co_return record;
}

Task<Result<std::string>> ReadMetaBytes(File& file) {
  PARTITA_CO_ASSIGN(const uint64_t size, co_await file.Size());
  if (size > kMetaHeaderSize + kMetaValueSizeMax) {
    co_return Status::Corruption("\"" + file.path() + "\" has " + std::to_string(size) +
                                 " bytes; a meta value has at most " +
                                 std::to_string(kMetaHeaderSize + kMetaValueSizeMax));
  }
  std::string bytes(size, '\0');
  const std::span<uint8_t> buffer(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  PARTITA_CO_ASSIGN(const size_t count, co_await file.ReadAt(0, buffer));
  bytes.resize(count);  // A file that shrank meanwhile fails its length check.
  co_return bytes;
}

Task<Result<std::optional<StoreId>>> ReadStoreId(FileSystem& files, std::atomic<uint64_t>* transient) {
  PARTITA_CO_ASSIGN(std::optional<MetaRecord> record,
                    co_await ReadKey(files, kCatalogKey, BeforeAnswer::kNothing, transient));
  if (!record.has_value()) co_return std::optional<StoreId>();
  co_return std::optional<StoreId>(record->store);
}

}  // namespace partita
