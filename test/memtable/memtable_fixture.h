#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/chunk_pool.h"
#include "engine/base/entry_iterator.h"
#include "memtable/memtable.h"

namespace partita {

inline constexpr size_t kMiB = size_t{1} << 20;

// PARTITA_SEED repeats a run; the seed is printed with every failure through SCOPED_TRACE.
inline uint64_t TestSeed() {
  const char* given = std::getenv("PARTITA_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261120;
}

inline std::string_view Place(Arena& arena, std::string_view bytes) {
  uint8_t* memory = arena.Allocate(bytes.size());
  if (memory == nullptr) ADD_FAILURE() << "the pool of the test is too small";
  std::memcpy(memory, bytes.data(), bytes.size());
  return {reinterpret_cast<const char*>(memory), bytes.size()};
}

// Inserts with key and value copied to the arena.
inline void Put(Memtable& memtable, std::string_view key, uint64_t version, std::string_view value,
                EntryKind kind = EntryKind::kPut) {
  ASSERT_TRUE(memtable.Reserve(1));
  memtable.Insert({Place(memtable.arena(), key), Version(version), kind, Place(memtable.arena(), value)});
}

inline void Delete(Memtable& memtable, std::string_view key, uint64_t version) {
  Put(memtable, key, version, "", EntryKind::kTombstone);
}

// An entry as a value, so that sequences can be compared and printed.
struct Seen {
  std::string key;
  uint64_t version;
  EntryKind kind;
  std::string value;
  bool operator==(const Seen&) const = default;
};

inline void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.key << "@" << seen.version << (seen.kind == EntryKind::kPut ? "=" + seen.value : "(deleted)");
}

inline std::vector<Seen> Drain(EntryIterator& it, IterState state) {
  std::vector<Seen> all;
  for (; state == IterState::kEntry; state = it.Next()) {
    const Entry& e = it.entry();
    all.push_back({std::string(e.user_key), e.version.value, e.kind, std::string(e.value)});
  }
  EXPECT_EQ(state, IterState::kEnd);
  return all;
}

inline std::vector<Seen> ScanAll(const Memtable& memtable, Direction direction,
                                 Version at_most = kVersionMax) {
  auto it = memtable.NewIterator(direction, at_most);
  return Drain(*it, it->SeekToFirst());
}

inline std::vector<Seen> ScanFrom(const Memtable& memtable, Direction direction, std::string_view key,
                                  Version at_most = kVersionMax) {
  auto it = memtable.NewIterator(direction, at_most);
  return Drain(*it, it->Seek(key));
}

// The same answers from a std::map.
class Oracle {
 public:
  void Put(const std::string& key, uint64_t version, EntryKind kind, const std::string& value) {
    versions_[key][version] = {key, version, kind, value};
  }
  const std::map<std::string, std::map<uint64_t, Seen>>& keys() const { return versions_; }

  Lookup Get(const std::string& key, uint64_t at_most) const {
    auto found = versions_.find(key);
    if (found == versions_.end()) return {};
    auto after = found->second.upper_bound(at_most);
    if (after == found->second.begin()) return {};
    const Seen& seen = std::prev(after)->second;
    return {seen.kind == EntryKind::kTombstone ? LookupState::kDeleted : LookupState::kFound,
            Version(seen.version), seen.value};
  }

  // Entries in the order of `direction`; forward those with key >= *bound, backward those below it.
  std::vector<Seen> Scan(Direction direction, uint64_t at_most, const std::string* bound = nullptr) const {
    std::vector<Seen> all;
    auto add = [&](const std::map<uint64_t, Seen>& of_key) {
      for (auto v = of_key.rbegin(); v != of_key.rend(); ++v) {
        if (v->first <= at_most) all.push_back(v->second);
      }
    };
    if (direction == Direction::kForward) {
      auto it = bound != nullptr ? versions_.lower_bound(*bound) : versions_.begin();
      for (; it != versions_.end(); ++it) add(it->second);
    } else {
      auto it = bound != nullptr ? versions_.lower_bound(*bound) : versions_.end();
      while (it != versions_.begin()) add((--it)->second);
    }
    return all;
  }

 private:
  std::map<std::string, std::map<uint64_t, Seen>> versions_;
};

inline void ExpectSameLookup(const Lookup& got, const Lookup& wanted) {
  EXPECT_EQ(got.state, wanted.state);
  EXPECT_EQ(got.version, wanted.version);
  EXPECT_EQ(got.value, wanted.value);
}

}  // namespace partita
