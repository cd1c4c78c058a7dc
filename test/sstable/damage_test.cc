#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/base/coding.h"
#include "engine/base/given_version.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

// A table of several blocks in few bytes, both codecs, all kinds of parts.
class DamageTest : public testing::Test {
 protected:
  void Write(Codec codec) {
    entries_.clear();
    for (int i = 0; i < 24; ++i) {
      std::string key = Key("p" + std::to_string(i / 6), "r" + std::to_string(i % 6));
      if (i % 5 == 0) entries_.push_back(Tombstone(key, 200 + static_cast<uint64_t>(i)));
      entries_.push_back(
          Put(key, 100 + static_cast<uint64_t>(i), std::string(140, static_cast<char>('a' + i))));
    }
    ASSERT_TRUE(RunBlocking(store_.Remove(kId)).ok());
    Result<TableInfo> info =
        WriteTable(store_, kId, entries_, {.codec = codec, .block_size = 1024, .zones = {}});
    ASSERT_TRUE(info.ok());
    good_ = store_.bytes(kId);
  }

  // Reads everything there is; every answer must be right or kCorruption. Returns how many answers
  // were kCorruption.
  size_t CheckNeverWrong(const std::string& what) {
    BlockCache cache(1 << 20);
    auto table = OpenTable(store_, cache, kId);
    if (!table.ok()) {
      EXPECT_EQ(table.code(), Code::kCorruption) << what << ": " << table.status().ToString();
      EXPECT_NE(table.status().message().find("tables/5.sst"), std::string::npos) << table.status().message();
      return SIZE_MAX;
    }
    size_t damaged = 0;
    for (const OwnedEntry& entry : entries_) {
      for (std::string key : {entry.user_key, entry.user_key + "x"}) {
        const Lookup expected = ExpectedLookup(entries_, key, entry.version);
        BlockPin pin;
        Result<Lookup> got = RunBlocking((*table)->Get(HashKey(key), key, entry.version, &pin));
        if (!got.ok()) {
          EXPECT_EQ(got.code(), Code::kCorruption) << what;
          ++damaged;
          continue;
        }
        EXPECT_EQ(got->state, expected.state) << what;
        EXPECT_EQ(got->version, expected.version) << what;
        EXPECT_EQ(got->value, expected.state == LookupState::kFound ? expected.value : "") << what;
      }
    }
    for (Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (IterCaching caching : {IterCaching::kFill, IterCaching::kBypass}) {
        auto it = (*table)->NewIterator(direction, {.caching = caching, .lower = "", .upper = ""});
        Status status;
        std::vector<OwnedEntry> got = Drain(*it, it->SeekToFirst(), &status);
        std::vector<OwnedEntry> expected = Expected(entries_, direction, "", "");
        // A scan stops at the damage; it never steps over it and never ends early without saying so (F44).
        EXPECT_TRUE(got.size() <= expected.size() && std::equal(got.begin(), got.end(), expected.begin()))
            << what;
        EXPECT_EQ(status.ok(), got.size() == expected.size()) << what;
        if (!status.ok()) {
          ++damaged;
          EXPECT_EQ(status.code(), Code::kCorruption) << what;
          EXPECT_EQ(RunBlocking(it->Fetch()).code(), Code::kCorruption) << what;  // It stays in front of it.
        }
      }
    }
    return damaged;
  }

  // Has the index record at `at`, within the part `within`, name `handle`, under a good seal.
  void Name(std::string* file, size_t at, const PartHandle& handle, const PartHandle& within) const {
    std::string record;
    AppendIndexRecord(&record, handle, 1);
    file->replace(at, 16, record, 0, 16);
    const std::string_view part = std::string_view(*file).substr(within.offset, within.stored_size);
    const Identity identity = PartIdentity(kTestStore, kId, within.offset, SealKind::kIndexBlock);
    StoreLe64(file->data() + within.offset, PartContentHash(part) ^ identity.Mix());
  }

  static constexpr ObjectId kId{5};
  MemoryObjectStore store_;
  std::vector<OwnedEntry> entries_;
  std::string good_;
};

// covers: F40 F41 F43 F44 F45
TEST_F(DamageTest, NoFlippedByteEverGivesAWrongAnswer) {
  for (const Codec codec : {Codec::kStored, Codec::kLz4}) {
    Write(codec);
    size_t closed = 0, some = 0, none = 0;
    for (size_t at = 0; at < good_.size(); ++at) {
      // The padding before the footer means nothing; a few of its bytes will do.
      if (good_.size() - at < kPageSize && good_[at] == 0 && at % 16 != 0 && at + kFooterSize < good_.size())
        continue;
      std::string bad = good_;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      store_.Put(kId, std::move(bad));
      const size_t damaged = CheckNeverWrong("byte " + std::to_string(at));
      (damaged == SIZE_MAX ? closed : damaged > 0 ? some : none) += 1;
      if (HasFailure()) return;
    }
    EXPECT_GT(closed, kFooterSize - 1);  // At least every byte of the footer harms the file ...
    EXPECT_GT(some, 500u);               // ... every byte of a data block its keys ...
    EXPECT_GT(none, 50u);                // ... and filters and padding nothing.
  }
}

// covers: F77
TEST_F(DamageTest, EntriesThatTheModelCannotHaveAreDamage) {
  const OwnedEntry good = Put(Key("p", "1"), 7, "good");
  const OwnedEntry no_partition = Put(std::string("\0\0\0\1qq", 6), 7, "whose?");
  ASSERT_TRUE(WriteTable(store_, ObjectId(9), {good, no_partition}).ok());
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, ObjectId(9));
  ASSERT_TRUE(table.ok());
  BlockPin pin;
  EXPECT_EQ(RunBlocking((*table)->Get(HashKey(good.user_key), good.user_key, kVersionMax, &pin)).code(),
            Code::kCorruption);
  auto it = (*table)->NewIterator({});
  Status status;
  EXPECT_TRUE(Drain(*it, it->SeekToFirst(), &status).empty());
  EXPECT_EQ(status.code(), Code::kCorruption);
  TableVerifyReport report;
  EXPECT_EQ(RunBlocking((*table)->Verify(&report)).code(), Code::kCorruption);
}

// covers: F77: the cache knows a block by its place alone.
TEST_F(DamageTest, AnIndexThatNamesPartsOfAnotherLevelIsDamage) {
  Write(Codec::kStored);
  BlockCache cache(1 << 20);
  const auto table = OpenTable(store_, cache, kId).value();
  const PartHandle index = IndexRecordHandle(table->top_index().value(0));
  const DataBlock content(
      std::string_view(good_).substr(index.offset + kPartHeaderSize, index.stored_size - kPartHeaderSize));
  const PartHandle data = IndexRecordHandle(content.value(0));
  ASSERT_EQ(data.offset, 0u);

  // The first block's record says that it is the index block.
  std::string bad = good_;
  Name(&bad, static_cast<size_t>(content.value(0).data() - good_.data()), index, index);
  store_.Put(kId, std::move(bad));
  EXPECT_GE(CheckNeverWrong("an index block among the data"),
            entries_.size() + 4);  // Filters know the others.

  // The index block's record says that it is the first block.
  bad = good_;
  const PartHandle top = table->footer().top_index;
  const DataBlock top_content(
      std::string_view(good_).substr(top.offset + kPartHeaderSize, top.stored_size - kPartHeaderSize));
  Name(&bad, static_cast<size_t>(top_content.value(0).data() - good_.data()), data, top);
  store_.Put(kId, std::move(bad));
  EXPECT_EQ(CheckNeverWrong("a data block among the index"), SIZE_MAX);
}

// covers: F48
TEST_F(DamageTest, ADamagedBlockHarmsOnlyItsOwnKeys) {
  Write(Codec::kStored);
  std::string bad = good_;
  bad[kPartHeaderSize + 40] ^= 1;  // In the first data block.
  store_.Put(kId, std::move(bad));
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  BlockPin pin;
  Result<Lookup> first =
      RunBlocking((*table)->Get(HashKey(entries_[0].user_key), entries_[0].user_key, kVersionMax, &pin));
  EXPECT_EQ(first.code(), Code::kCorruption);
  EXPECT_NE(first.status().message().find("offset 0, data block"), std::string::npos)
      << first.status().message();
  EXPECT_NE(first.status().message().find("expected"), std::string::npos);
  const std::string& last = entries_.back().user_key;
  EXPECT_TRUE(RunBlocking((*table)->Get(HashKey(last), last, kVersionMax, &pin)).ok());
  EXPECT_EQ(cache.faults().damaged_parts.load(), 1u);
  TableVerifyReport report;
  EXPECT_EQ(RunBlocking((*table)->Verify(&report)).code(), Code::kCorruption);
}

// The index says that nothing of the partition lies behind its last block, nor in front of its first. covers:
// F48
TEST_F(DamageTest, AScanDoesNotReadTheDamagedBlocksBesideItsKeys) {
  std::mt19937_64 random(TestSeed());
  entries_.clear();
  for (const char* partition : {"a", "c", "e"}) {
    for (const char* row : {"1", "2"})
      entries_.push_back(Put(Key(partition, row), 7, RandomBytes(random, 10'000)));
  }
  ASSERT_TRUE(WriteTable(store_, kId, entries_).ok());
  for (const size_t beside : {1, 4}) {  // In blocks of their own.
    std::string& bytes = store_.bytes(kId);
    const size_t at = bytes.find(entries_[beside].value);
    ASSERT_NE(at, std::string::npos);
    bytes[at + 20] ^= 1;
  }
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  const std::string lower = Key("c", ""), upper = PrefixSuccessor(lower);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const IterCaching caching : {IterCaching::kLookOnly, IterCaching::kBypass}) {
      auto it = (*table)->NewIterator(direction, {.caching = caching, .lower = lower, .upper = upper});
      const uint64_t reads = store_.reads();
      EXPECT_EQ(DrainAll(*it), Expected(entries_, direction, lower, upper));
      EXPECT_EQ(store_.reads() - reads, 2u);  // Of the index, and of both blocks.
      // No row is in front of the first, nor behind the last.
      const std::pair<std::string, std::string> empty[] = {{lower, Key("c", "1")}, {Key("c", "3"), upper}};
      for (const auto& [from, to] : empty) {
        it = (*table)->NewIterator(direction, {.caching = caching, .lower = from, .upper = to});
        EXPECT_EQ(DrainAll(*it).size(), 0u);
      }
    }
  }
}

// covers: F52
TEST_F(DamageTest, BytesThatAreGoodWhenReadAgainAreCountedAsTransient) {
  Write(Codec::kLz4);
  store_.faults().on_read = [](ObjectId, uint64_t, std::span<uint8_t> bytes, ReadCaching caching) {
    if (caching == ReadCaching::kNormal) {
      for (uint8_t& byte : bytes) byte ^= 0x10;
    }
    return Status();
  };
  EXPECT_EQ(CheckNeverWrong("transient"), 0u);
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  const uint64_t at_open = cache.faults().transient.load();
  EXPECT_EQ(at_open, 5u);  // Footer, properties, top index and two filters.
  EXPECT_EQ(cache.faults().damaged_parts.load(), 0u);
}

// covers: F52
TEST_F(DamageTest, VerifyReadsAFooterAgainThatWasBadOnce) {
  Write(Codec::kLz4);
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  int reads = 0;
  store_.faults().on_read = [&reads](ObjectId, uint64_t, std::span<uint8_t> bytes, ReadCaching) {
    if (reads++ == 0) bytes[bytes.size() - 100] ^= 0x10;
    return Status();
  };
  TableVerifyReport report;
  const Status verified = RunBlocking((*table)->Verify(&report));
  EXPECT_TRUE(verified.ok()) << verified.ToString();
  EXPECT_EQ(cache.faults().transient.load(), 1u);
  EXPECT_EQ(cache.faults().damaged_parts.load(), 0u);
}

// covers: F52
TEST_F(DamageTest, WhatIsReadTogetherIsCountedToo) {
  std::vector<OwnedEntry> entries;
  for (int i = 100; i < 500; ++i)
    entries.push_back(Put(Key("p", std::to_string(i)), 100, std::string(140, 'x')));
  ASSERT_TRUE(
      WriteTable(store_, kId, entries, {.codec = Codec::kStored, .block_size = 1024, .zones = {}}).ok());
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  // The first block, which lies in one page, is bad whenever more than that page is read.
  store_.faults().on_read = [](ObjectId, uint64_t offset, std::span<uint8_t> bytes, ReadCaching) {
    if (offset == 0 && bytes.size() > kPageSize) bytes[500] ^= 0x10;
    return Status();
  };
  const auto transient = [&] { return cache.faults().transient.load(); };
  const uint64_t at_open = transient();
  auto it =
      (*table)->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
  Status status;
  EXPECT_EQ(Drain(*it, it->SeekToFirst(), &status).size(), entries.size());
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(transient(), at_open + 1);
  TableVerifyReport report;
  EXPECT_TRUE(RunBlocking((*table)->Verify(&report)).ok());
  EXPECT_EQ(transient(), at_open + 2);
  EXPECT_EQ(cache.faults().damaged_parts.load(), 0u);
}

// covers: F43
TEST_F(DamageTest, AnUnreadableBlockIsDamageToItsKeysNotAnEnd) {
  Write(Codec::kStored);
  store_.faults().on_read = [](ObjectId, uint64_t offset, std::span<uint8_t>, ReadCaching) {
    return offset == 0 ? Status::IoError("EIO") : Status();
  };
  const size_t damaged = CheckNeverWrong("EIO");
  EXPECT_GT(damaged, 0u);
  EXPECT_NE(damaged, SIZE_MAX);
}

TEST_F(DamageTest, LackOfMemoryIsNotReportedAsDamage) {
  Write(Codec::kStored);
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  store_.faults().on_read = [](ObjectId, uint64_t, std::span<uint8_t>, ReadCaching) {
    return Status::ResourceExhausted("no memory");
  };
  BlockPin pin;
  EXPECT_EQ(RunBlocking((*table)->Get(HashKey(entries_[0].user_key), entries_[0].user_key, kVersionMax, &pin))
                .code(),
            Code::kResourceExhausted);
  EXPECT_EQ(cache.faults().damaged_parts.load(), 0u);
}

// covers: F41 F66
TEST_F(DamageTest, ForeignAndSwappedFilesAreRefused) {
  Write(Codec::kStored);
  BlockCache cache(1 << 20);
  // The same bytes under another id: a swapped file.
  store_.Put(ObjectId(6), good_);
  EXPECT_EQ(OpenTable(store_, cache, ObjectId(6)).code(), Code::kCorruption);
  // Another store's file.
  EXPECT_EQ(RunBlocking(TableReader::Open(store_, cache, StoreId(99), kId)).code(), Code::kCorruption);
  // Not tables at all.
  for (std::string bytes :
       {std::string(), std::string("hello"), std::string(kPageSize, '\0'), std::string(8192, 'x')}) {
    store_.Put(ObjectId(7), bytes);
    EXPECT_EQ(OpenTable(store_, cache, ObjectId(7)).code(), Code::kCorruption);
  }
  // covers: F35, by its code: the one who has a manifest calls it damage.
  EXPECT_EQ(OpenTable(store_, cache, ObjectId(8)).code(), Code::kNotFound);
}

TEST_F(DamageTest, TruncatedAndExtendedFilesAreRefused) {
  Write(Codec::kStored);
  for (size_t size = 0; size < good_.size(); size += 97) {
    store_.Put(kId, good_.substr(0, size));
    EXPECT_EQ(CheckNeverWrong("cut to " + std::to_string(size)), SIZE_MAX);
  }
  for (size_t size = kPageSize; size < good_.size(); size += kPageSize) {
    store_.Put(kId, good_.substr(0, size));
    EXPECT_EQ(CheckNeverWrong("cut to " + std::to_string(size)), SIZE_MAX);
  }
  store_.Put(kId, good_ + std::string(kPageSize, '\0'));
  EXPECT_EQ(CheckNeverWrong("extended"), SIZE_MAX);
}

// covers: F41
TEST_F(DamageTest, PagesInTheWrongPlaceAreFound) {
  Write(Codec::kStored);
  for (size_t from = 0; from + kPageSize <= good_.size(); from += 1024) {
    for (size_t to = 0; to + 1024 <= good_.size(); to += 1024) {
      if (from == to) continue;
      std::string bad = good_;
      bad.replace(to, 1024, good_, from, 1024);
      store_.Put(kId, std::move(bad));
      CheckNeverWrong("moved " + std::to_string(from) + " to " + std::to_string(to));
    }
  }
}

// Whole ones, with seals that are right but for the place.
TEST_F(DamageTest, BlocksInTheWrongPlaceAreFound) {
  Write(Codec::kStored);
  std::map<uint32_t, std::vector<size_t>> places;  // Of parts, by their size.
  for (size_t at = 0; at + kPartHeaderSize <= good_.size();) {
    const uint32_t size = LoadLe32(good_.data() + at + 8);
    if (size < kPartHeaderSize || size > good_.size() - at) break;
    places[size].push_back(at);
    at += size;
  }
  size_t swapped = 0;
  for (const auto& [size, of_size] : places) {
    for (size_t i = 1; i < of_size.size(); ++i, ++swapped) {
      std::string bad = good_;
      bad.replace(of_size[0], size, good_, of_size[i], size);
      bad.replace(of_size[i], size, good_, of_size[0], size);
      store_.Put(kId, std::move(bad));
      EXPECT_GT(CheckNeverWrong("swapped with the part at " + std::to_string(of_size[i])), 0u);
    }
  }
  EXPECT_GT(swapped, 0u);
}

// covers: F66
TEST_F(DamageTest, NewerFormatsAreRefusedAsUnsupported) {
  Write(Codec::kStored);
  std::string newer = good_;
  char* footer = newer.data() + newer.size() - kFooterSize;
  StoreLe16(footer + 112, kTableFormat + 1);
  const Identity identity = PartIdentity(kTestStore, kId, newer.size() - kFooterSize, SealKind::kFooter);
  StoreLe64(footer + 120, Seal(std::string_view(footer, 120), identity));
  store_.Put(kId, newer);
  BlockCache cache(1 << 20);
  EXPECT_EQ(OpenTable(store_, cache, kId).code(), Code::kUnsupported);

  // The oldest one is read.
  std::string older = good_;
  footer = older.data() + older.size() - kFooterSize;
  StoreLe16(footer + 112, kTableFormatMin);
  StoreLe64(footer + 120, Seal(std::string_view(footer, 120), identity));
  store_.Put(kId, older);
  EXPECT_TRUE(OpenTable(store_, cache, kId).ok());

  // A data block of a newer part format.
  newer = good_;
  newer[20] = kPartFormat + 1;
  const uint32_t stored = LoadLe32(newer.data() + 8);
  StoreLe64(newer.data(), Hash64(std::string_view(newer).substr(8, stored - 8)) ^
                              PartIdentity(kTestStore, kId, 0, SealKind::kDataBlock).Mix());
  store_.Put(kId, newer);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  BlockPin pin;
  EXPECT_EQ(RunBlocking((*table)->Get(HashKey(entries_[0].user_key), entries_[0].user_key, kVersionMax, &pin))
                .code(),
            Code::kUnsupported);
}

// covers: F47
TEST_F(DamageTest, VerifyCountsEntriesAgainstTheFooter) {
  Write(Codec::kStored);
  std::string bad = good_;
  char* footer = bad.data() + bad.size() - kFooterSize;
  StoreLe64(footer + 80, LoadLe64(footer + 80) + 1);
  const Identity identity = PartIdentity(kTestStore, kId, bad.size() - kFooterSize, SealKind::kFooter);
  StoreLe64(footer + 120, Seal(std::string_view(footer, 120), identity));
  store_.Put(kId, bad);
  BlockCache cache(1 << 20);
  EXPECT_EQ(OpenTable(store_, cache, kId).code(), Code::kCorruption);  // Properties and footer disagree.
}

// A clock that went on above it would give what no Timestamp says.
TEST_F(DamageTest, AVersionThatNoClockGivesClosesTheFile) {
  for (const Version version : {kVersionGivenMax, Version(kVersionGivenMax.value + 1)}) {
    ASSERT_TRUE(RunBlocking(store_.Remove(kId)).ok());
    ASSERT_TRUE(WriteTable(store_, kId, {Put(Key("p", "r"), version.value, "content")}).ok());
    BlockCache cache(1 << 20);
    EXPECT_EQ(OpenTable(store_, cache, kId).code(),
              version == kVersionGivenMax ? Code::kOk : Code::kCorruption);
  }
}

// Each denies the keys of the other. covers: F43
TEST_F(DamageTest, FiltersInEachOthersPlaceCloseTheFile) {
  Write(Codec::kStored);
  std::string bad = good_;
  char* footer = bad.data() + bad.size() - kFooterSize;
  std::swap_ranges(footer + 32, footer + 48, footer + 48);
  const Identity identity = PartIdentity(kTestStore, kId, bad.size() - kFooterSize, SealKind::kFooter);
  StoreLe64(footer + 120, Seal(std::string_view(footer, 120), identity));
  store_.Put(kId, bad);
  BlockCache cache(1 << 20);
  EXPECT_EQ(OpenTable(store_, cache, kId).code(), Code::kCorruption);
}

// What scans pass over blocks by is held against the blocks. covers: F47
TEST_F(DamageTest, VerifyFindsAnIndexThatContradictsABlock) {
  Write(Codec::kStored);
  const uint64_t part = LoadLe64(good_.data() + good_.size() - kFooterSize + 64);
  const uint32_t stored = LoadLe32(good_.data() + part + 8);
  const DataBlock index(std::string_view(good_).substr(part + kPartHeaderSize, stored - kPartHeaderSize));
  ASSERT_GT(index.size(), 1u);
  for (const uint32_t block : {0u, index.size() - 1}) {
    const size_t record = static_cast<size_t>(index.value(block).data() - good_.data());
    const size_t zones = record + kIndexRecordHeaderSize, end = record + index.value(block).size();
    for (const size_t at : {record + 16, zones, zones + 8, zones + 16, end - kKeySumSize, end - 1}) {
      std::string bad = good_;
      bad[at] ^= 1;
      const std::string_view bytes = std::string_view(bad).substr(part, stored);
      const Identity identity = PartIdentity(kTestStore, kId, part, SealKind::kIndexBlock);
      StoreLe64(bad.data() + part, PartContentHash(bytes) ^ identity.Mix());
      store_.Put(kId, bad);
      BlockCache cache(1 << 20);
      auto table = OpenTable(store_, cache, kId);
      ASSERT_TRUE(table.ok());
      TableVerifyReport report;
      const Status status = RunBlocking((*table)->Verify(&report));
      EXPECT_EQ(status.code(), Code::kCorruption) << block << ", " << at - record;
      EXPECT_NE(status.message().find("the index"), std::string::npos) << status.message();
    }
  }
}

// The last value byte of the first block is another; sealed again as if the writer had not looked.
std::string WithAValueChangedBeforeItWasSealed(ObjectId id, std::string bad) {
  const uint32_t stored = LoadLe32(bad.data() + 8);
  bad[stored - 1] ^= 1;
  StoreLe64(bad.data(), Hash64(std::string_view(bad).substr(8, stored - 8)) ^
                            PartIdentity(kTestStore, id, 0, SealKind::kDataBlock).Mix());
  return bad;
}

// covers: F51
TEST_F(DamageTest, ACompactionDoesNotPassOnABlockWithAValueThatChangedBeforeItWasSealed) {
  Write(Codec::kStored);
  store_.Put(kId, WithAValueChangedBeforeItWasSealed(kId, good_));
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  auto it =
      (*table)->NewIterator(Direction::kForward, {.caching = IterCaching::kBypass, .lower = "", .upper = ""});
  IterState state = it->SeekToFirst();
  while (state == IterState::kNeedsIo) {
    ASSERT_TRUE(RunBlocking(it->Fetch()).ok());
    state = it->state();
  }
  ASSERT_EQ(state, IterState::kEntry);
  const std::optional<PassThroughBlock> passed = it->CurrentPassThrough();
  ASSERT_TRUE(passed.has_value());
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = ObjectId(6);
  auto writer = RunBlocking(TableWriter::Create(store_, options));
  ASSERT_TRUE(writer.ok());
  const Status added = (*writer)->AddBlock(*passed);
  EXPECT_EQ(added.code(), Code::kCorruption);
  EXPECT_NE(added.message().find("a passed block holds a value"), std::string::npos) << added.message();
  RunBlocking((*writer)->Abandon());
}

// covers: F51
TEST_F(DamageTest, VerifyFindsAValueThatChangedBeforeItsBlockWasSealed) {
  Write(Codec::kStored);
  store_.Put(kId, WithAValueChangedBeforeItWasSealed(kId, good_));
  BlockCache cache(1 << 20);
  auto table = OpenTable(store_, cache, kId);
  ASSERT_TRUE(table.ok());
  TableVerifyReport report;
  Status status = RunBlocking((*table)->Verify(&report));
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find(", offset 0: a stored value fails its checksum (F51)"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace partita
