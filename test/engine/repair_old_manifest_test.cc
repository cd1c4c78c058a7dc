#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/repair.h"
#include "test/engine/repair_fixture.h"

// covers: F53 F34 F80. A manifest that somebody put back from an older copy of the store: tables that only
// newer ones named, and which the next opening takes for leftovers.

namespace partita {
namespace {

constexpr const char* kPath = "meta/shard-1-0";

class RepairOldManifestTest : public RepairTest {
 protected:
  // Lives that write and flush to tables, until the segments of the first ones are used again.
  void LiveOn() {
    constexpr int kLives = 8;
    for (int life = 0; life < kLives; ++life) {
      SimRuntime runtime(NextLife(), *disk_);
      auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      const int from = static_cast<int>(life_) * 10'000;
      for (int i = 0; i < 100; ++i) WriteRow(runtime, **opened, from + i);
      if (life + 1 < kLives) ASSERT_TRUE(runtime.RunToEnd((*opened)->FlushMemtables()).ok());
      ASSERT_TRUE(runtime.RunToEnd((*opened)->Close()).ok());
    }
  }

  Code TryOpen(SimDisk& disk) {
    SimRuntime runtime(NextLife(), disk);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    return opened.ok() ? runtime.RunToEnd((*opened)->Close()).code() : opened.code();
  }
};

TEST_F(RepairOldManifestTest, ItsTablesAreFoundAgainByWhatTheyHold) {
  const std::string old = *disk_->ReadFile(kPath);
  LiveOn();
  disk_->WriteFile(kPath, old);
  ASSERT_EQ(TryOpen(*disk_->Clone()), Code::kCorruption);
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, kPath);
  EXPECT_THAT(listed.damages[0].reason, testing::HasSubstr("older than the log"));
  EXPECT_EQ(LostRanges(listed), 0u) << listed.damages[0].consequence;
  EXPECT_EQ(kept_, rows_.size());
}

// It names all table files that there are, so what its log lacks is nowhere.
TEST_F(RepairOldManifestTest, IsNoneWhereOnlyTheBeginningOfTheLogIsGone) {
  LiveOn();
  auto record = DecodeMeta("shard-1-0", kPath, *disk_->ReadFile(kPath));
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  auto manifest = DecodeManifest(record->value.bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.status().ToString();
  manifest->log_segment = 1;
  disk_->WriteFile(
      kPath, EncodeMeta("shard-1-0", record->store, record->value.generation, EncodeManifest(*manifest)));
  ASSERT_EQ(TryOpen(*disk_), Code::kOk);  // It begins a segment.
  disk_->WriteFile(
      kPath, EncodeMeta("shard-1-0", record->store, record->value.generation, EncodeManifest(*manifest)));
  const std::vector<std::string> segments = Segments(0);
  for (size_t i = 0; i + 1 < segments.size(); ++i) ASSERT_TRUE(disk_->RemoveFile(segments[i]));
  const RepairReport listed = Repair();
  ASSERT_EQ(listed.damages.size(), 1u);
  EXPECT_EQ(listed.damages[0].file, "log-1-0");
  EXPECT_GE(LostRanges(listed), 1u);
}

TEST_F(RepairOldManifestTest, WhereTheCatalogIsAsOldNoTableFileIsLost) {
  std::map<std::string, std::string> old;
  for (const std::string& path : disk_->ListFiles("meta/")) old[path] = *disk_->ReadFile(path);
  LiveOn();
  for (const auto& [path, content] : old) disk_->WriteFile(path, content);
  const std::vector<std::string> tables = disk_->ListFiles("tables/");
  Repair();
  for (const std::string& table : tables) {
    bool is_there = disk_->FileExists(table);
    for (const std::string& path : disk_->ListFiles("damaged-")) {
      is_there = is_there || path.ends_with("/" + table);
    }
    EXPECT_TRUE(is_there) << table;
  }
}

TEST_F(RepairOldManifestTest, ATableFileThatNothingNamesIsKept) {
  const std::string stray = ObjectPath(ObjectId(uint64_t{1} << 32 | 0xffff));
  ASSERT_FALSE(disk_->FileExists(stray));
  const std::string content = *disk_->ReadFile(TablesBySize().front());
  disk_->WriteFile(stray, content);
  ASSERT_TRUE(disk_->RemoveFile("log-1-0/tail"));  // What is to be repaired.
  Repair();
  EXPECT_FALSE(disk_->FileExists(stray));  // The opening has taken it for a leftover.
  bool kept = false;
  for (const std::string& path : disk_->ListFiles("damaged-")) {
    kept = kept || (path.ends_with("/" + stray) && *disk_->ReadFile(path) == content);
  }
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace partita
