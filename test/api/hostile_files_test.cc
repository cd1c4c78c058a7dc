#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/partita.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/catalog.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/manifest.h"
#include "sstable/footer_format.h"
#include "test/api/row_ledger.h"
#include "test/support/hostile_world.h"
#include "test/support/scratch_directory.h"
#include "wal/segment_format.h"

// covers: F35 F39 F41 F43 F44 F45 F46 F48 F49 F66 F69 F80: every kind of file rotten, cut short, empty,
// missing or another store's. A damaged root, manifest or log refuses the open; a damaged table opens
// with its keys damaged and everything else as before. With the bytes put back all is there.

namespace partita {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kSmallRow = 300;
constexpr uint32_t kTableRows = 2000;  // In table files; some 700 KiB.
constexpr uint32_t kLogRows = 100;     // Beyond them, in the log alone.

// Two tables on two shards: "Rows", which gets hurt, and "Others", which must never notice.
class TwoTables {
 public:
  TwoTables() {
    options_.directory = directory_.path() + "/store";
    options_.allow_volatile_storage = true;  // Wherever the tests run.
  }

  void Make() {
    options_.create_if_missing = true;
    options_.memory_bytes = 64u << 20;
    options_.shards = 2;
    options_.io_backend = IoBackend::kThreads;
    Result<std::unique_ptr<Database>> database = Database::Open(options_);
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    for (const char* name : {"Rows", "Others"}) {
      Result<Table> table = (*database)->CreateTable(name, {.durability = Durability::kProcess});
      ASSERT_TRUE(table.ok()) << table.status().ToString();
      for (uint32_t n = 0; n < kTableRows; ++n) ASSERT_TRUE(LedgerOf(name).Put(*table, n, 1, kSmallRow).ok());
    }
    ASSERT_TRUE((*database)->CompactAll().ok());
    ASSERT_TRUE((*database)->Close().ok());
  }

  // Everything to tables, then new rows into the log alone; closed. So each test finds the same.
  void Renew() {
    Result<std::unique_ptr<Database>> database = Database::Open(options_);
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    ++generation_;
    for (const char* name : {"Rows", "Others"}) {
      Table table = *(*database)->OpenTable(name);
      ASSERT_EQ(LedgerOf(name).Compare(table, /*scan=*/true), "") << name;
    }
    ASSERT_TRUE((*database)->CompactAll().ok());
    for (const char* name : {"Rows", "Others"}) {
      Table table = *(*database)->OpenTable(name);
      for (uint32_t n = kTableRows; n < kTableRows + kLogRows; ++n) {
        ASSERT_TRUE(LedgerOf(name).Put(table, n, generation_, kSmallRow).ok());
        if (n % 10 == 0) ASSERT_TRUE((*database)->Barrier().ok());  // So the log has several frames.
      }
    }
    ASSERT_TRUE((*database)->Close().ok());
  }

  RowLedger& LedgerOf(std::string_view name) { return name == "Rows" ? rows_ : others_; }
  Options options() const {
    Options options = options_;
    options.create_if_missing = false;
    return options;
  }
  std::string Path(std::string_view name) const { return options_.directory + "/" + std::string(name); }
  Status OpenStatus() const { return Database::Open(options()).status(); }

  MetaRecord ReadMeta(const std::string& key) const {
    SavedFile file(Path("meta/" + key));
    return *DecodeMeta(key, key, file.Read(0, file.size()));
  }
  // The shard of "Rows", its manifest's key, its newest log segment, its largest table file.
  Catalog catalog() const { return *DecodeCatalog(ReadMeta("catalog").value.bytes); }
  ShardId shard() const { return catalog().ranges[0].owner; }
  std::string ManifestName() const { return ManifestKey(catalog().layout, shard()); }
  std::string LogName() const { return LogDirectory(catalog().layout, shard()); }
  std::string NewestSegment() const {
    std::string newest;
    uint64_t id = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Path(LogName()))) {
      if (entry.path().extension() != ".log") continue;
      SavedFile file(entry.path());
      Result<SealedHeader> header = DecodeSegmentHeader(file.Read(0, kSegmentHeaderSize));
      if (header.ok() && header->header.segment.value > id) {
        id = header->header.segment.value;
        newest = LogName() + "/" + entry.path().filename().string();
      }
    }
    return newest;
  }
  FileMeta TableFile() const {
    Result<Manifest> manifest = DecodeManifest(ReadMeta(ManifestName()).value.bytes);
    const FileMeta* largest = &manifest->files.at(0);
    for (const FileMeta& file : manifest->files) {
      if (file.info->entry_count > largest->info->entry_count) largest = &file;
    }
    return *largest;
  }
  std::string TableName() const { return ObjectPath(TableFile().info->id); }

 private:
  ScratchDirectory directory_;
  Options options_;
  RowLedger rows_, others_;
  int32_t generation_ = 1;
};

class HostileFilesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    store_ = new TwoTables;
    foreign_ = new TwoTables;
    store_->Make();
    foreign_->Make();
    foreign_->Renew();
  }
  static void TearDownTestSuite() {
    delete store_;
    delete foreign_;
    store_ = foreign_ = nullptr;
  }
  void SetUp() override { store_->Renew(); }

  // Applies each damage to the file in turn: the open is refused, and the message names the file and
  // `expected`. Puts the file back each time.
  struct Damage {
    std::string name;
    std::function<void(const SavedFile&)> apply;
    std::string expected;
    Code code = Code::kCorruption;
  };
  void ExpectEachRefuses(const std::string& path, const std::vector<Damage>& damages) {
    SavedFile file(store_->Path(path));
    for (const Damage& damage : damages) {
      SCOPED_TRACE(path + " " + damage.name);
      damage.apply(file);
      Status opened = store_->OpenStatus();
      std::printf("%s %s: %s\n", path.c_str(), damage.name.c_str(), opened.ToString().c_str());
      EXPECT_EQ(opened.code(), damage.code) << opened.ToString();
      EXPECT_THAT(opened.message(), AllOf(HasSubstr(path), HasSubstr(damage.expected), HasSubstr("(F"),
                                          HasSubstr("from a copy"), HasSubstr(store_->options().directory)));
      file.Restore();
    }
    ExpectAllIsThere();
  }

  void ExpectAllIsThere() {
    Result<std::unique_ptr<Database>> database = Database::Open(store_->options());
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    for (const char* name : {"Rows", "Others"}) {
      EXPECT_EQ(store_->LedgerOf(name).Compare(*(*database)->OpenTable(name), /*scan=*/true), "") << name;
    }
    EXPECT_THAT((*database)->Verify()->damages, IsEmpty());
    EXPECT_TRUE((*database)->Close().ok());
  }

  static Damage Flipped(uint64_t offset, std::string expected) {
    return {"flipped at " + std::to_string(offset), [=](const SavedFile& f) { f.Flip(offset); },
            std::move(expected)};
  }
  static Damage Cut(uint64_t size, std::string expected) {
    return {"cut to " + std::to_string(size), [=](const SavedFile& f) { f.Truncate(size); },
            std::move(expected)};
  }
  static Damage Missing(std::string expected) {
    return {"missing", [](const SavedFile& f) { f.Remove(); }, std::move(expected)};
  }
  static Damage Foreign(const std::string& path, std::string expected) {
    auto other = std::make_shared<SavedFile>(foreign_->Path(path));
    return {"foreign", [other](const SavedFile& f) { f.ReplaceBy(*other); }, std::move(expected)};
  }

  static TwoTables* store_;
  static TwoTables* foreign_;
};
TwoTables* HostileFilesTest::store_ = nullptr;
TwoTables* HostileFilesTest::foreign_ = nullptr;

// ---- What refuses the open.

TEST_F(HostileFilesTest, ADamagedCatalogRefusesTheOpenAndSaysWhere) {
  uint64_t size = SavedFile(store_->Path("meta/catalog")).size();
  ExpectEachRefuses("meta/catalog", {Flipped(2, "offset 0"), Flipped(size - 3, "offset 32"),
                                     Cut(size / 2, "offset 24"), Cut(0, "offset 0"), Missing("F69")});
}

TEST_F(HostileFilesTest, AnotherStoresCatalogIsRefused) {
  SavedFile catalog(store_->Path("meta/catalog"));
  catalog.ReplaceBy(SavedFile(foreign_->Path("meta/catalog")));
  Status opened = store_->OpenStatus();
  EXPECT_EQ(opened.code(), Code::kCorruption);
  EXPECT_THAT(opened.message(), AllOf(HasSubstr("meta/shard-"), HasSubstr("offset 8"), HasSubstr("F66")));
  catalog.Restore();
  ExpectAllIsThere();
}

TEST_F(HostileFilesTest, ADamagedManifestRefusesTheOpenAndSaysWhere) {
  std::string path = "meta/" + store_->ManifestName();
  uint64_t size = SavedFile(store_->Path(path)).size();
  ExpectEachRefuses(
      path, {Flipped(2, "offset 0"), Flipped(size - 3, "offset 32"), Cut(size - 1, "offset 24"),
             Cut(0, "offset 0"), Missing("F35"), Foreign("meta/" + foreign_->ManifestName(), "offset 8")});
}

TEST_F(HostileFilesTest, ADamagedLogRefusesTheOpenAndSaysWhere) {
  std::string path = store_->NewestSegment();
  ExpectEachRefuses(path, {Flipped(kSegmentHeaderSize + 200, "offset 4096"), Flipped(30, "offset 0"),
                           Cut(3 * kPageSize, "offset 12288"), Cut(kSegmentHeaderSize, "offset 4096"),
                           Foreign(foreign_->NewestSegment(), "offset 0")});
}

TEST_F(HostileFilesTest, ALogWithoutItsNewestSegmentRefusesTheOpen) {
  SavedFile file(store_->Path(store_->NewestSegment()));
  for (bool empty : {true, false}) {
    empty ? file.Truncate(0) : file.Remove();
    Status opened = store_->OpenStatus();
    EXPECT_EQ(opened.code(), Code::kCorruption) << opened.ToString();
    EXPECT_THAT(opened.message(), AllOf(HasSubstr(store_->LogName()), HasSubstr("(F35)")));
    file.Restore();
  }
  ExpectAllIsThere();
}

TEST_F(HostileFilesTest, ATailThatIsMissingOrCutRefusesTheOpen) {
  ExpectEachRefuses(store_->LogName() + "/tail",
                    {Missing("F35"), Cut(0, "0 bytes"), Cut(5000, "5000 bytes")});
}

// After a clean close the segments hold everything: the bytes of a tail count no more.
TEST_F(HostileFilesTest, RottenOrForeignBytesInATailAreHarmlessAfterACleanClose) {
  SavedFile tail(store_->Path(store_->LogName() + "/tail"));
  tail.Flip(50);
  ExpectAllIsThere();
  SavedFile(tail.path()).ReplaceBy(SavedFile(foreign_->Path(foreign_->LogName() + "/tail")));
  ExpectAllIsThere();
}

// ---- Newer formats.

// Every file's name, size and time of the last write, but for the lock.
using Listing = std::map<std::string, std::pair<uint64_t, std::filesystem::file_time_type>>;
Listing ListAll(const std::string& directory) {
  Listing files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
    files[entry.path()] = {entry.file_size(), entry.last_write_time()};
  }
  return files;
}

TEST_F(HostileFilesTest, ANewerFormatIsRefusedBeforeAnythingIsWritten) {
  for (const std::string& key : {std::string("catalog"), store_->ManifestName()}) {
    SavedFile file(store_->Path("meta/" + key));
    MetaRecord record = store_->ReadMeta(key);
    std::string newer_value = record.value.bytes;
    StoreLe16(newer_value.data(), 9);
    std::string newer_envelope = file.Read(0, file.size());
    StoreLe16(newer_envelope.data() + 4, 9);
    for (const std::string& bytes :
         {EncodeMeta(key, record.store, record.value.generation, newer_value), newer_envelope}) {
      file.Overwrite(0, bytes);
      Listing before = ListAll(store_->options().directory);
      Status opened = store_->OpenStatus();
      EXPECT_EQ(opened.code(), Code::kUnsupported) << opened.ToString();
      EXPECT_EQ(UnmetOf(opened), Unmet::kOther);
      EXPECT_THAT(opened.message(),
                  AllOf(HasSubstr("meta/" + key), HasSubstr("format 9"), HasSubstr("newer")));
      EXPECT_TRUE(ListAll(store_->options().directory) == before) << key;
      file.Restore();
    }
  }
  ExpectAllIsThere();
}

TEST_F(HostileFilesTest, ANewerLogOrTableFormatIsRefused) {
  StoreId id = store_->ReadMeta("catalog").store;
  {
    std::string name = store_->NewestSegment();
    SavedFile segment(store_->Path(name));
    std::string page = segment.Read(0, kSegmentHeaderSize);
    SealedHeader header = *DecodeSegmentHeader(page);
    StoreLe16(page.data() + 16, 9);
    uint64_t generation = uint64_t{store_->shard().value} << 32 | header.header.incarnation.value;
    Identity identity{id, header.header.segment.value, 0, SealKind::kLogSegmentHeader, generation};
    StoreLe64(page.data(), Seal(std::string_view(page).substr(8), identity));
    segment.Overwrite(0, page);
    Status opened = store_->OpenStatus();
    EXPECT_EQ(opened.code(), Code::kUnsupported) << opened.ToString();
    EXPECT_THAT(opened.message(), AllOf(HasSubstr(name), HasSubstr("format 9")));
    segment.Restore();
  }
  {
    FileMeta meta = store_->TableFile();
    SavedFile table(store_->Path(store_->TableName()));
    uint64_t at = table.size() - kFooterSize;
    std::string footer = table.Read(at, kFooterSize);
    StoreLe16(footer.data() + 112, 9);
    Identity identity{id, meta.info->id.value, at, SealKind::kFooter, 0};
    StoreLe64(footer.data() + 120, Seal(std::string_view(footer).substr(0, 120), identity));
    table.Overwrite(at, footer);
    Status opened = store_->OpenStatus();
    EXPECT_EQ(opened.code(), Code::kUnsupported) << opened.ToString();
    EXPECT_THAT(opened.message(), AllOf(HasSubstr(store_->TableName()), HasSubstr("format 9")));
    table.Restore();
  }
  ExpectAllIsThere();
}

// ---- Damaged tables: the store opens, and only their keys are hurt.

class HostileTableTest : public HostileFilesTest {
 protected:
  void SetUp() override {
    // A store of its own: rows written over stay so.
    delete store_;
    store_ = new TwoTables;
    store_->Make();
    HostileFilesTest::SetUp();
    meta_ = store_->TableFile();
    name_ = store_->TableName();
    file_ = std::make_unique<SavedFile>(store_->Path(name_));
    StoreId id = store_->ReadMeta("catalog").store;
    std::string bytes = file_->Read(file_->size() - kFooterSize, kFooterSize);
    ASSERT_TRUE(DecodeFooter(bytes, file_->size(), id, meta_.info->id, &footer_).ok());
  }

  void Open() {
    Result<std::unique_ptr<Database>> database = Database::Open(store_->options());
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    database_ = std::move(database).value();
    rows_ = std::make_unique<Table>(*database_->OpenTable("Rows"));
  }

  Result<Entity> GetRow(uint32_t n) {
    Entity key = RowLedger::Row(n, 0, 0);
    return rows_->Get(key.partition_key(), key.row_key());
  }

  // The row's key is in the damaged part: every road to it says so, and nothing says "not there".
  void ExpectDamaged(uint32_t n, const std::string& where) {
    auto is_damage = AllOf(HasSubstr(name_), HasSubstr(where), HasSubstr("(F"));
    Result<Entity> read = GetRow(n);
    EXPECT_EQ(read.code(), Code::kCorruption) << n;
    EXPECT_THAT(read.status().message(), is_damage);
    Entity row = RowLedger::Row(n, 9, kSmallRow);
    std::vector<WriteResult> conditional = {rows_->Insert(row), rows_->Replace(row), rows_->Merge(row),
                                            rows_->InsertOrMerge(row),
                                            rows_->Delete(row.partition_key(), row.row_key())};
    for (const WriteResult& refused : conditional) {
      EXPECT_EQ(refused.status.code(), Code::kCorruption) << refused.status.ToString();
      EXPECT_THAT(refused.status.message(), is_damage);
    }
    std::vector<Table::Key> keys = {{row.partition_key(), row.row_key()}};
    EXPECT_EQ(rows_->GetMany(keys)[0].code(), Code::kCorruption);
  }

  // A scan of everything, either way, gives rows up to the damage, then the damage: never an end.
  void ExpectScansStopAtTheDamage() {
    for (ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
      ScanOptions options;
      options.order = order;
      Result<Page> page = rows_->Scan(options);
      for (int pages = 0; page.ok() && !page->continuation.empty() && pages < 10; ++pages) {
        options.continuation = page->continuation;
        page = rows_->Scan(options);
      }
      EXPECT_EQ(page.code(), Code::kCorruption);
      EXPECT_THAT(page.status().message(), HasSubstr(name_));
    }
    EXPECT_EQ(rows_->Count({}).code(), Code::kCorruption);
  }

  void ExpectTheRestIsAsBefore() {
    EXPECT_EQ(store_->LedgerOf("Others").Compare(*database_->OpenTable("Others"), /*scan=*/true), "");
    for (uint32_t n = kTableRows; n < kTableRows + kLogRows; ++n) EXPECT_TRUE(GetRow(n).ok()) << n;
  }

  // An unconditional write is accepted, is read back, and outlives flush and compaction (F46, F49).
  void ExpectUnconditionalWritesWork(uint32_t n) {
    RowLedger& ledger = store_->LedgerOf("Rows");
    Entity key = RowLedger::Row(n, 0, 0);
    EXPECT_TRUE(ledger.Put(*rows_, n, 77, kSmallRow).ok());
    EXPECT_EQ(*GetRow(n)->GetInt32("Generation"), 77);
    EXPECT_TRUE(database_->Flush().ok());
    EXPECT_EQ(*GetRow(n)->GetInt32("Generation"), 77);
    Status compacted = database_->CompactAll();
    EXPECT_TRUE(compacted.ok() || compacted.code() == Code::kCorruption) << compacted.ToString();
    EXPECT_EQ(*GetRow(n)->GetInt32("Generation"), 77);
  }

  void ExpectVerifyLists(const std::string& where) {
    Result<VerifyReport> report = database_->Verify();
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_THAT(report->damages, ElementsAre(AllOf(HasSubstr(name_), HasSubstr(where))));
    for (const std::string& damage : report->damages) std::printf("%s\n", damage.c_str());
  }

  void CloseAndPutBack() {
    EXPECT_TRUE(database_->Close().ok());
    ASSERT_TRUE(std::filesystem::exists(file_->path()) || removed_)
        << "the engine deleted a file it could not read";
    file_->Restore();
    ExpectAllIsThere();
  }

  FileMeta meta_;
  std::string name_;
  Footer footer_;
  std::unique_ptr<SavedFile> file_;
  bool removed_ = false;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Table> rows_;
};

TEST_F(HostileTableTest, ARottenDataBlockHurtsItsOwnKeysOnly) {
  file_->Flip(100);
  Open();
  ExpectDamaged(0, "offset 0, data block");
  EXPECT_TRUE(GetRow(kTableRows - 1).ok());
  EXPECT_TRUE(GetRow(kTableRows / 2).ok());
  ExpectScansStopAtTheDamage();
  ScanOptions behind;
  behind.partition_lower = "p0005";
  EXPECT_EQ(*rows_->Count(behind), kTableRows + kLogRows - 500);
  ExpectTheRestIsAsBefore();
  ExpectVerifyLists("offset 0, data block");
  ExpectUnconditionalWritesWork(0);
  ExpectDamaged(1, "offset 0, data block");
  CloseAndPutBack();
}

TEST_F(HostileTableTest, ARottenIndexBlockHurtsTheKeysUnderIt) {
  std::string where = "offset " + std::to_string(footer_.index_begin) + ", index block";
  file_->Flip(footer_.index_begin + 40);
  Open();
  ExpectDamaged(0, where);
  ExpectScansStopAtTheDamage();
  ExpectTheRestIsAsBefore();
  ExpectVerifyLists(where);
  ExpectUnconditionalWritesWork(0);
  CloseAndPutBack();
}

TEST_F(HostileTableTest, ARottenFilterMeansMaybe) {
  file_->Flip(footer_.key_filter.offset + 40);
  Open();
  EXPECT_EQ(store_->LedgerOf("Rows").Compare(*rows_, /*scan=*/true), "");
  EXPECT_EQ(rows_->Get("p0000", "nothing").code(), Code::kNotFound);
  ExpectTheRestIsAsBefore();
  ExpectVerifyLists("filter");
  CloseAndPutBack();
}

// What hurts the whole file: its range is damaged, and the store opens (F39).
TEST_F(HostileTableTest, AFileThatCannotBeOpenedHurtsItsWholeRange) {
  uint64_t size = file_->size();
  const std::vector<Damage> damages = {
      Flipped(footer_.top_index.offset + 40, "index block"),
      Flipped(footer_.properties.offset + 40, "properties"),
      Flipped(size - 50, "footer"),
      Cut(size - kPageSize, "footer"),
      Cut(size - 1, std::to_string(size - 1) + " bytes"),
      Cut(0, "0 bytes"),
      Missing("F35"),
      Foreign(foreign_->TableName(), "footer"),
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    damage.apply(*file_);
    Open();
    for (uint32_t n : {0u, kTableRows / 2, kTableRows - 1}) ExpectDamaged(n, damage.expected);
    ExpectScansStopAtTheDamage();
    ExpectTheRestIsAsBefore();
    ExpectVerifyLists(damage.expected);
    EXPECT_TRUE(database_->Close().ok());
    file_->Restore();
  }
  removed_ = true;
  file_->Remove();
  Open();
  ExpectUnconditionalWritesWork(5);
  CloseAndPutBack();
}

// The same file under another number of shards: its keys stay damaged, and nothing is lost (F67).
TEST_F(HostileTableTest, AnotherNumberOfShardsKeepsTheDamageWhereItIs) {
  file_->Flip(100);
  Options options = store_->options();
  options.shards = 3;
  Result<std::unique_ptr<Database>> opened = Database::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  database_ = std::move(opened).value();
  rows_ = std::make_unique<Table>(*database_->OpenTable("Rows"));
  ExpectDamaged(0, "offset 0, data block");
  ExpectTheRestIsAsBefore();
  CloseAndPutBack();
}

}  // namespace
}  // namespace partita
