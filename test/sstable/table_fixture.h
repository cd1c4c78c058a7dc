#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/executor.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#include "sstable/level_set.h"
#include "sstable/table_reader.h"
#include "sstable/table_writer.h"
#include "test/support/memory_object_store.h"

namespace partita {

inline uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("PARTITA_SEED");
    uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : 20260101;
    std::cerr << "seed " << value << " (PARTITA_SEED)\n";
    return value;
  }();
  return seed;
}

// An entry that owns its bytes.
struct OwnedEntry {
  std::string user_key;
  Version version;
  EntryKind kind = EntryKind::kPut;
  std::string value;

  Entry view() const { return {user_key, version, kind, value}; }
  friend bool operator==(const OwnedEntry&, const OwnedEntry&) = default;
  friend std::ostream& operator<<(std::ostream& out, const OwnedEntry& e) {
    return out << "{" << e.user_key.substr(4) << " @" << e.version.value << " kind "
               << static_cast<int>(e.kind) << ", " << e.value.size() << " bytes}";
  }
};

inline OwnedEntry Put(std::string_view key, uint64_t version, std::string_view content) {
  return {std::string(key), Version(version), EntryKind::kPut,
          MakeStoredValue(key, EntryKind::kPut, content)};
}
inline OwnedEntry Tombstone(std::string_view key, uint64_t version) {
  return {std::string(key), Version(version), EntryKind::kTombstone,
          MakeStoredValue(key, EntryKind::kTombstone, "")};
}
inline std::string Key(std::string_view partition, std::string_view row) {
  return EncodeUserKey(TableId(1), partition, row);
}
inline OwnedEntry Copy(const Entry& e) {
  return {std::string(e.user_key), e.version, e.kind, std::string(e.value)};
}

inline bool InternalOrder(const OwnedEntry& a, const OwnedEntry& b) {
  return EntryBefore(a.user_key, a.version, b.user_key, b.version);
}

inline constexpr StoreId kTestStore{0x1122334455667788};

struct TableWriteOptions {
  Codec codec = Codec::kStored;
  size_t block_size = kBlockSizeMin * 2;
  ZoneExtractor zones;
};

// Writes one table. REQUIRES: entries in internal order.
inline Result<TableInfo> WriteTable(ObjectStore& store, ObjectId id, const std::vector<OwnedEntry>& entries,
                                    TableWriteOptions how = {}) {
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = id;
  options.codec = how.codec;
  options.block_size = how.block_size;
  options.zones = how.zones;
  Result<std::unique_ptr<TableWriter>> created = RunBlocking(TableWriter::Create(store, options));
  if (!created.ok()) return created.status();
  TableWriter& writer = **created;
  Status status;
  for (const OwnedEntry& entry : entries) {
    status = writer.Add(entry.view());
    if (status.ok() && writer.NeedsDrain()) status = RunBlocking(writer.Drain());
    if (!status.ok()) break;
  }
  if (status.ok()) {
    Result<TableInfo> info = RunBlocking(writer.Finish());
    if (info.ok()) return info;
    status = info.status();
  }
  RunBlocking(writer.Abandon());
  return status;
}

inline Result<std::shared_ptr<TableReader>> OpenTable(ObjectStore& store, BlockCache& cache, ObjectId id) {
  return RunBlocking(TableReader::Open(store, cache, kTestStore, id));
}

// Everything the iterator yields from `state` on. `status` is set by a failed Fetch.
inline std::vector<OwnedEntry> Drain(EntryIterator& it, IterState state, Status* status,
                                     size_t limit = SIZE_MAX) {
  std::vector<OwnedEntry> out;
  while (out.size() < limit) {
    if (state == IterState::kNeedsIo) {
      *status = RunBlocking(it.Fetch());
      if (!status->ok()) return out;
      state = it.state();
      continue;
    }
    if (state == IterState::kEnd) break;
    out.push_back(Copy(it.entry()));
    state = it.Next();
  }
  return out;
}

inline std::vector<OwnedEntry> DrainAll(EntryIterator& it) {
  Status status;
  std::vector<OwnedEntry> out = Drain(it, it.SeekToFirst(), &status);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return out;
}

// The entries with keys in [lower, upper) in the order that an iterator of `direction` yields them.
inline std::vector<OwnedEntry> Expected(std::vector<OwnedEntry> entries, Direction direction,
                                        std::string_view lower, std::string_view upper) {
  std::erase_if(entries, [&](const OwnedEntry& e) {
    return e.user_key < lower || (!upper.empty() && e.user_key >= upper);
  });
  if (direction == Direction::kBackward) {
    std::sort(entries.begin(), entries.end(), [](const OwnedEntry& a, const OwnedEntry& b) {
      return a.user_key != b.user_key ? a.user_key > b.user_key : a.version > b.version;
    });
  }
  return entries;
}

// The oracle of point lookups: the newest version <= at_most.
inline Lookup ExpectedLookup(const std::vector<OwnedEntry>& entries, std::string_view key, Version at_most) {
  for (const OwnedEntry& e : entries) {
    if (e.user_key != key || e.version > at_most) continue;
    return {e.kind == EntryKind::kPut ? LookupState::kFound : LookupState::kDeleted, e.version, e.value};
  }
  return {};
}

inline std::string RandomBytes(std::mt19937_64& random, size_t size, unsigned alphabet = 256) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() % alphabet);
  return bytes;
}

// Entries in internal order with all shapes: several versions, tombstones, empty RowKeys, long keys,
// shared and unshared prefixes, values of 0 bytes to `value_max`.
inline std::vector<OwnedEntry> RandomEntries(std::mt19937_64& random, size_t keys, size_t value_max) {
  std::map<std::string, bool> unique;
  while (unique.size() < keys) {
    std::string partition = "p" + std::to_string(random() % (keys / 8 + 1));
    if (random() % 64 == 0) partition += std::string(random() % 900, 'x');
    std::string row;
    switch (random() % 5) {
      case 0:
        break;
      case 1:
        row = std::to_string(random() % 1000000);
        break;
      case 2:
        row = "order-2026-" + std::to_string(random() % 1000000);
        break;
      case 3:
        row = RandomBytes(random, random() % 20);
        for (char& c : row) c = c == 0 ? '\1' : c;
        break;
      default:
        row = std::string(random() % 12, 'a') + std::to_string(random() % 4);
    }
    unique[EncodeUserKey(TableId(1 + random() % 3), partition, row)] = true;
  }
  std::vector<OwnedEntry> entries;
  uint64_t version = 1000;
  for (const auto& [key, unused] : unique) {
    size_t versions = random() % 10 == 0 ? 1 + random() % 6 : 1;
    std::vector<OwnedEntry> of_key;
    for (size_t i = 0; i < versions; ++i) {
      version += 1 + random() % 1000;
      size_t size =
          random() % 20 == 0 ? random() % (value_max + 1) : random() % std::min<size_t>(300, value_max + 1);
      of_key.push_back(random() % 6 == 0
                           ? Tombstone(key, version)
                           : Put(key, version, RandomBytes(random, size, random() % 2 ? 4 : 256)));
    }
    entries.insert(entries.end(), of_key.rbegin(), of_key.rend());
  }
  return entries;
}

}  // namespace partita
