#include "sstable/rising_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

constexpr int kPartitions = 4, kRows = 300;

// Random files in several levels, of which the cache holds anything from nothing to all, and what one lookup
// after the other says of them.
class RisingLookupTest : public testing::Test {
 protected:
  static std::string RandomKey(std::mt19937_64& random) {
    const std::string row = std::to_string(1000 + random() % kRows);
    return Key("p" + std::to_string(random() % kPartitions), random() % 8 == 0 ? row + "x" : row);
  }

  // A file with versions of [first_version, last_version), and the same with all its blocks at hand.
  void AddFile(uint32_t level, uint64_t first_version, uint64_t last_version, std::string lower,
               std::string upper) {
    std::vector<OwnedEntry> entries;
    std::set<std::pair<std::string, uint64_t>> made;
    const int count = 1 + static_cast<int>(random_() % 400);
    for (int i = 0; i < count; ++i) {
      std::string key = RandomKey(random_);
      const uint64_t version = first_version + random_() % (last_version - first_version);
      if (!made.emplace(key, version).second) continue;
      const std::string content(random_() % 200, static_cast<char>('a' + version % 26));
      entries.push_back(random_() % 6 == 0 ? Tombstone(key, version) : Put(key, version, content));
    }
    if (entries.empty()) return;
    std::sort(entries.begin(), entries.end(), InternalOrder);
    const ObjectId id(++last_id_);
    const size_t block_size = kBlockSizeMin << random_() % 3;
    ASSERT_TRUE(
        WriteTable(store_, id, entries, {.codec = Codec::kStored, .block_size = block_size, .zones = {}})
            .ok());
    // Of what lies beyond the bounds nothing counts.
    AddReference(&partly_, cache_, level, id, lower, upper);
    AddReference(&whole_, whole_cache_, level, id, lower, upper);
  }

  void AddReference(LevelEdit* edit, BlockCache& cache, uint32_t level, ObjectId id, const std::string& lower,
                    const std::string& upper) {
    FileRef file;
    file.table = *OpenTable(store_, cache, id);
    file.info = file.table->info();
    if (!CutTo(lower, upper, &file)) return;
    if (&cache == &cache_ && random_() % 20 == 0) {
      file.table = nullptr;
      file.damage = std::make_shared<const Status>(Status::Corruption("planted"));
    }
    edit->added.push_back({level, std::move(file)});
  }

  void MakeFiles() {
    for (uint32_t level : {5u, 2u}) {
      std::string lower;
      const uint64_t version = level == 5 ? 1 : 100;
      for (int p = 0; p < kPartitions; ++p) {
        std::string upper = Key("p" + std::to_string(p), std::to_string(1000 + random_() % kRows));
        AddFile(level, version, version + 50, lower, upper);
        lower = upper;
      }
      AddFile(level, version, version + 50, lower, "");
    }
    const uint64_t runs = random_() % 6;
    for (uint64_t run = 0; run < runs; ++run) {
      const uint64_t first = 200 + run * 20 - random_() % 15;  // May reach into those of the run before.
      const bool is_cut = random_() % 3 == 0;
      AddFile(0, first, first + 20, is_cut ? Key("p1", "1100") : "", is_cut ? Key("p2", "1200") : "");
    }
    levels_ = *LevelSet().Apply(partly_);
    truth_ = *LevelSet().Apply(whole_);
    ASSERT_TRUE(levels_->CheckInvariants().ok());
  }

  Lookup Truth(const std::string& key, Version at_most, BlockPin* pin) {
    Result<Lookup> found = RunBlocking(truth_->Get(key, HashKey(key), at_most, pin));
    EXPECT_TRUE(found.ok()) << found.status().ToString();
    return found.ok() ? *found : Lookup();
  }

  std::vector<std::string> SomeKeys() {
    std::vector<std::string> keys;
    const int count = 1 + static_cast<int>(random_() % 150);
    for (int i = 0; i < count; ++i) keys.push_back(RandomKey(random_));
    if (random_() % 2 == 0) {  // Of one partition.
      const std::string prefix = keys[0].substr(0, keys[0].size() - 5);
      std::erase_if(keys, [&](const std::string& key) { return !key.starts_with(prefix); });
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  void ExpectAsOneByOne(const std::vector<std::string>& keys, Version at_most) {
    std::vector<TableLookup> before;  // What is at hand does not change by looking.
    for (const std::string& key : keys) {
      BlockPin pin;
      before.push_back(levels_->TryGet(key, HashKey(key), at_most, &pin));
    }
    std::vector<SoughtTogether> sought(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) sought[i].key = {keys[i], HashKey(keys[i])};
    levels_->TryGetTogether(sought, at_most);
    for (size_t i = 0; i < keys.size(); ++i) {
      const SoughtTogether& key = sought[i];
      if (!before[i].needs_io) ASSERT_FALSE(key.needs_io) << i;
      if (key.needs_io) {
        ++cold_;
        ASSERT_EQ(key.found.state, LookupState::kAbsent);
        if (key.reads == nullptr) ++damaged_;
        continue;
      }
      BlockPin pin;
      const Lookup truth = Truth(keys[i], at_most, &pin);
      ASSERT_EQ(key.found.state, truth.state) << i;
      ASSERT_EQ(key.found.version, truth.version) << i;
      if (truth.state == LookupState::kFound) ASSERT_EQ(key.found.value, truth.value) << i;
      ++found_[static_cast<int>(truth.state)];
    }
  }

  void WarmSome() {
    const int count = static_cast<int>(random_() % 200);
    for (int i = 0; i < count; ++i) {
      const std::string key = RandomKey(random_);
      BlockPin pin;
      (void)RunBlocking(levels_->Get(key, HashKey(key), kVersionMax, &pin));
    }
  }

  std::mt19937_64 random_{TestSeed()};
  MemoryObjectStore store_;
  BlockCache cache_{256 << 10}, whole_cache_{16 << 20};
  uint64_t last_id_ = 0;
  LevelEdit partly_, whole_;
  std::shared_ptr<const LevelSet> levels_, truth_;
  uint64_t cold_ = 0, damaged_ = 0;
  std::map<int, uint64_t> found_;
};

TEST_F(RisingLookupTest, AnswersAsLookupsOneByOneDo) {
  for (int round = 0; round < 120; ++round) {
    partly_ = whole_ = LevelEdit();
    ASSERT_NO_FATAL_FAILURE(MakeFiles());
    for (int i = 0; i < 8; ++i) {
      const Version at_most = random_() % 3 == 0 ? Version(random_() % 330) : kVersionMax;
      ASSERT_NO_FATAL_FAILURE(ExpectAsOneByOne(SomeKeys(), at_most)) << "round " << round;
      WarmSome();
    }
  }
  EXPECT_EQ(cache_.CountPinned(), 0u);
  EXPECT_GT(damaged_, 100u);  // Else nothing was shown.
  EXPECT_GT(cold_, damaged_ + 1000u);
  for (const LookupState state : {LookupState::kAbsent, LookupState::kFound, LookupState::kDeleted})
    EXPECT_GT(found_[static_cast<int>(state)], 1000u) << static_cast<int>(state);
}

TEST_F(RisingLookupTest, NoKeysAreNoWork) {
  LevelSet().TryGetTogether({}, kVersionMax);
  std::vector<SoughtTogether> one(1);
  const std::string key = Key("p", "1");
  one[0].key = {key, HashKey(key)};
  one[0].needs_io = true;
  LevelSet().TryGetTogether(one, kVersionMax);
  EXPECT_FALSE(one[0].needs_io);
  EXPECT_EQ(one[0].found.state, LookupState::kAbsent);
}

// The block is looked up once for all of its rows, not once for each.
TEST_F(RisingLookupTest, RowsOfOneBlockAskTheCacheOnce) {
  std::vector<OwnedEntry> entries;
  std::vector<std::string> keys;
  for (int row = 0; row < 100; ++row) {
    keys.push_back(Key("p", std::to_string(1000 + row)));
    entries.push_back(Put(keys.back(), 1, "value"));
  }
  ASSERT_TRUE(
      WriteTable(store_, ObjectId(1), entries, {.codec = Codec::kStored, .block_size = 64 << 10, .zones = {}})
          .ok());
  AddReference(&whole_, whole_cache_, 3, ObjectId(1), "", "");
  levels_ = *LevelSet().Apply(whole_);
  std::vector<SoughtTogether> sought(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) sought[i].key = {keys[i], HashKey(keys[i])};
  levels_->TryGetTogether(sought, kVersionMax);
  EXPECT_TRUE(std::all_of(sought.begin(), sought.end(),
                          [](const SoughtTogether& s) { return s.needs_io && s.reads != nullptr; }));
  EXPECT_TRUE(RunBlocking(levels_->ReadTogether(sought)).ok());
  const uint64_t hits = whole_cache_.statistics().hits;
  levels_->TryGetTogether(sought, kVersionMax);
  EXPECT_EQ(whole_cache_.statistics().hits - hits, 2u);  // The index block, and the block.
  EXPECT_TRUE(std::all_of(sought.begin(), sought.end(), [](const SoughtTogether& s) {
    return s.found.state == LookupState::kFound && s.pin.cached();
  }));
}

}  // namespace
}  // namespace partita
