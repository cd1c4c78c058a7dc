#include <algorithm>

#include "api/async_database.h"
#include "api/entity_codec.h"
#include "api/names.h"
#include "api/table_state.h"
#include "engine/base/assert.h"

// Reads of entity tables. A read that memory can answer runs on the calling thread and takes no
// coroutine; only a miss pays for one.

namespace partita {

namespace {

Status CheckKeys(std::string_view partition_key, std::string_view row_key) {
  PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, partition_key));
  return CheckKey(KeyKind::kRowKey, row_key);
}

// What a read in flight takes, about: frames, and an entity of the usual size.
constexpr size_t kReadCallBytes = 2048;

Status NoSuchEntity() { return Status::NotFound("there is no entity with these keys"); }

Status StatusOf(const Shard::ReadAnswer& answer) {
  switch (answer.state) {
    case Shard::ReadState::kFound:
      return Status();
    case Shard::ReadState::kInDoubt:
      return Status::Unknown(
          "the last write of this entity is in doubt; try again when the shard has recovered");
    case Shard::ReadState::kMoved:
      return NoSuchTable();
    case Shard::ReadState::kAbsent:
    case Shard::ReadState::kNeedsIo:
      break;
  }
  return NoSuchEntity();
}

// Content and version of what memory could not answer.
Task<Result<Version>> FetchContent(Store* store, std::string_view user_key, std::string* content) {
  PARTITA_CO_ASSIGN(Shard::ReadAnswer answer, co_await store->Get(user_key, content));
  Status status = StatusOf(answer);
  if (!status.ok()) co_return status;
  co_return answer.version;
}

Task<Result<Entity>> ReadEntity(Store* store, std::string user_key) {
  std::string content;
  Shard::ReadAnswer answer = store->TryGet(user_key, &content);
  if (answer.state == Shard::ReadState::kFound) co_return DecodeEntity(user_key, answer.version, content);
  if (answer.state == Shard::ReadState::kAbsent) co_return NoSuchEntity();
  PARTITA_CO_ASSIGN(Version version, co_await FetchContent(store, user_key, &content));
  co_return DecodeEntity(user_key, version, content);
}

// What memory knows of the key; nothing when the disk must be asked.
std::optional<Status> TryRead(Store* store, std::string_view user_key, std::string* record,
                              uint64_t* timestamp_ticks) {
  Shard::ReadAnswer answer = store->TryGet(user_key, record);
  if (answer.state == Shard::ReadState::kFound) {
    *timestamp_ticks = answer.version.value;
    return Status();
  }
  if (answer.state == Shard::ReadState::kAbsent) return NoSuchEntity();
  return std::nullopt;
}

}  // namespace

Status Table::GetRecord(std::string_view partition_key, std::string_view row_key, std::string* record,
                        uint64_t* timestamp_ticks) const {
  if (!state_->impl->is_usable()) [[unlikely]]
    return state_->impl->CheckUse();
  PARTITA_TRY(CheckKeys(partition_key, row_key));
  KeyBuffer key(state_->id, partition_key, row_key, /*ordered_text=*/true);
  Store* store = state_->impl->store.get();
  std::optional<Status> known = TryRead(store, key.key(), record, timestamp_ticks);
  if (known) return *known;
  PARTITA_ASSIGN(Version version, state_->impl->Run(FetchContent(store, key.key(), record)));
  *timestamp_ticks = version.value;
  return Status();
}

std::optional<Status> AsyncTable::TryGetRecord(std::string_view partition_key, std::string_view row_key,
                                               std::string* record, uint64_t* timestamp_ticks) const {
  Status checked = CheckKeys(partition_key, row_key);
  if (!checked.ok()) return checked;
  KeyBuffer key(core_->id, partition_key, row_key, /*ordered_text=*/true);
  return TryRead(core_->impl->store.get(), key.key(), record, timestamp_ticks);
}

Task<Status> AsyncTable::GetRecord(std::string_view partition_key, std::string_view row_key,
                                   std::string* record, uint64_t* timestamp_ticks) const {
  std::optional<Status> known = TryGetRecord(partition_key, row_key, record, timestamp_ticks);
  if (known) co_return *known;
  KeyBuffer key(core_->id, partition_key, row_key, /*ordered_text=*/true);
  PARTITA_CO_ASSIGN(Version version, co_await FetchContent(core_->impl->store.get(), key.key(), record));
  *timestamp_ticks = version.value;
  co_return Status();
}

Result<Entity> Table::Get(std::string_view partition_key, std::string_view row_key) const {
  std::string record;
  uint64_t ticks = 0;
  PARTITA_TRY(GetRecord(partition_key, row_key, &record, &ticks));
  KeyBuffer key(state_->id, partition_key, row_key, /*ordered_text=*/true);
  return DecodeEntity(key.key(), Version(ticks), record);
}

namespace {

Task<void> ReadInto(Store* store, std::string user_key, Result<Entity>* out) {
  *out = co_await ReadEntity(store, std::move(user_key));
}

}  // namespace

Task<Status> ReadTogether(Store* store, std::vector<MissingKey> missing,
                          std::function<Task<void>(const MissingKey&)> read) {
  // More than a device answers at once; each takes a block while it is under way.
  constexpr size_t kAtOnce = 256;
  std::sort(missing.begin(), missing.end(),
            [](const MissingKey& a, const MissingKey& b) { return a.user_key < b.user_key; });
  for (size_t begin = 0; begin < missing.size(); begin += kAtOnce) {
    TaskGroup group;
    for (size_t i = begin; i < std::min(begin + kAtOnce, missing.size()); ++i) {
      group.Spawn(store->ExecutorFor(missing[i].user_key), read(missing[i]));
    }
    co_await group.Join();
  }
  co_return Status();
}

std::vector<Result<Entity>> Table::GetMany(std::span<const Key> keys) const {
  const Status usable = state_->impl->CheckUse();
  if (!usable.ok()) return std::vector<Result<Entity>>(keys.size(), usable);
  std::vector<Result<Entity>> results;
  std::vector<MissingKey> missing;
  Store* store = state_->impl->store.get();
  std::string content;
  for (size_t i = 0; i < keys.size(); ++i) {
    Status checked = CheckKeys(keys[i].partition_key, keys[i].row_key);
    if (!checked.ok()) {
      results.emplace_back(checked);
      continue;
    }
    KeyBuffer key(state_->id, keys[i].partition_key, keys[i].row_key, /*ordered_text=*/true);
    Shard::ReadAnswer answer = store->TryGet(key.key(), &content);
    if (answer.state == Shard::ReadState::kFound) {
      results.push_back(DecodeEntity(key.key(), answer.version, content));
      continue;
    }
    results.emplace_back(NoSuchEntity());
    if (answer.state != Shard::ReadState::kAbsent) missing.push_back({i, std::string(key.key())});
  }
  ReadMissing(state_->impl, missing, &ReadInto, &results);
  return results;
}

void Table::GetAsync(std::string partition_key, std::string row_key,
                     std::function<void(Result<Entity>)> done) const {
  PARTITA_ASSERT(done != nullptr);
  Status checked = state_->impl->CheckUse();
  if (checked.ok()) checked = CheckKeys(partition_key, row_key);
  if (!checked.ok()) return done(checked);
  KeyBuffer key(state_->id, partition_key, row_key, /*ordered_text=*/true);
  Store* store = state_->impl->store.get();
  Task<Result<Entity>> call = ReadEntity(store, std::string(key.key()));
  if (!state_->impl->StartRead(store->ReaderFor(key.key()), kReadCallBytes, std::move(call), &done)) {
    done(TooManyCalls());
  }
}

}  // namespace partita
