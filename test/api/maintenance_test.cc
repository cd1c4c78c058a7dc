#include <fcntl.h>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "api/partita.h"
#include "engine/io/device_probe.h"
#include "test/support/scratch_directory.h"

// Read-only opens, backups and restores on real directories. Crashes amid them: test/engine/backup_test.cc.
// covers: F64 F68

namespace partita {
namespace {

namespace fs = std::filesystem;

Options SmallStore(const std::string& directory) {
  Options options;
  options.directory = directory;
  options.allow_volatile_storage = true;  // Wherever the tests run.
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 2;
  options.durability = Durability::kProcess;
  options.io_backend = IoBackend::kThreads;
  return options;
}

Options ForReading(const std::string& directory) {
  Options options = SmallStore(directory);
  options.create_if_missing = false;
  options.read_only = true;
  return options;
}

std::unique_ptr<Database> Open(const Options& options) {
  auto database = Database::Open(options);
  EXPECT_TRUE(database.ok()) << database.status().ToString();
  return database.ok() ? std::move(database).value() : nullptr;
}

void Fill(Database& database, const std::string& name, int rows) {
  TableOptions split;
  split.split_partition_keys = {"p1"};
  auto table = database.CreateTable(name, split);
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  for (int i = 0; i < rows; ++i) {
    Entity entity("p" + std::to_string(i % 2), "r" + std::to_string(i));
    entity.Set("N", i).Set("Text", std::string(200, 'x'));
    ASSERT_TRUE(table->Insert(entity).ok());
  }
}

uint64_t CountOf(Database& database, const std::string& name) {
  auto table = database.OpenTable(name);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  auto count = table->Count(ScanOptions());
  EXPECT_TRUE(count.ok()) << count.status().ToString();
  return count.ok() ? *count : 0;
}

// Each name below, with content, inode and times but that of reading.
std::map<std::string, std::string> Fingerprint(const std::string& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    struct stat about {};
    EXPECT_EQ(stat(entry.path().c_str(), &about), 0);
    std::ostringstream text;
    text << about.st_ino << " " << about.st_size << " " << about.st_mtim.tv_sec << "."
         << about.st_mtim.tv_nsec << " " << about.st_ctim.tv_sec << "." << about.st_ctim.tv_nsec << " ";
    if (entry.is_regular_file()) text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    out[entry.path().string()] = text.str();
  }
  return out;
}

uint64_t InodesShared(const std::string& a, const std::string& b) {
  uint64_t shared = 0;
  for (const auto& entry : fs::directory_iterator(a + "/tables")) {
    std::error_code ignored;
    shared +=
        fs::equivalent(entry.path(), b + "/tables/" + entry.path().filename().string(), ignored) ? 1 : 0;
  }
  return shared;
}

class MaintenanceTest : public testing::Test {
 protected:
  ScratchDirectory scratch_;
  const std::string store_ = scratch_.path() + "/store";
  const std::string backup_ = scratch_.path() + "/backup";
};

TEST_F(MaintenanceTest, AReadOnlyOpenLeavesEveryByteTimeAndInodeAsItWas) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // Dies amid its work.
    auto database = Open(SmallStore(store_));
    Fill(*database, "Rows", 500);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const auto before = Fingerprint(store_);
  {
    auto reader = Open(ForReading(store_));
    ASSERT_NE(reader, nullptr);
    auto beside = Open(ForReading(store_));
    ASSERT_NE(beside, nullptr);
    EXPECT_EQ(CountOf(*reader, "Rows"), 500u);
    EXPECT_EQ(CountOf(*beside, "Rows"), 500u);
    auto table = reader->OpenTable("Rows");
    EXPECT_EQ(table->InsertOrReplace(Entity("p0", "r0")).status.code(), Code::kUnsupported);
    auto verified = reader->Verify();
    ASSERT_TRUE(verified.ok());
    EXPECT_THAT(verified->damages, testing::IsEmpty());
    EXPECT_TRUE(reader->Close().ok());
  }
  EXPECT_EQ(Fingerprint(store_), before);
}

TEST_F(MaintenanceTest, AReadOnlyOpenWorksWhereNothingMayBeWritten) {
  {
    auto database = Open(SmallStore(store_));
    Fill(*database, "Rows", 100);
    ASSERT_TRUE(database->Close().ok());
  }
  // Modes as a read-only mount has them, for whoever is not root.
  for (const auto& entry : fs::recursive_directory_iterator(store_)) {
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::remove);
  }
  {
    auto reader = Open(ForReading(store_));
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(CountOf(*reader, "Rows"), 100u);
  }
  for (const auto& entry : fs::recursive_directory_iterator(store_)) {
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  }
}

TEST_F(MaintenanceTest, BackupsShareFilesWithTheStoreOrWithEarlierBackups) {
  auto database = Open(SmallStore(store_));
  Fill(*database, "Rows", 300);
  const auto linked = database->Backup(backup_);
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  BackupOptions copy;
  copy.sharing = FileSharing::kNever;
  const auto copied = database->Backup(scratch_.path() + "/copy", copy);
  ASSERT_TRUE(copied.ok()) << copied.status().ToString();
  EXPECT_EQ(copied->bytes_shared, 0u);
  EXPECT_EQ(copied->entries, 300u);
  copy.base = scratch_.path() + "/copy";
  const auto based = database->Backup(scratch_.path() + "/based", copy);
  ASSERT_TRUE(based.ok()) << based.status().ToString();
  EXPECT_TRUE(database->Close().ok());

  EXPECT_EQ(InodesShared(store_, scratch_.path() + "/copy"), 0u);
  // The file system has hard links.
  const std::string one = scratch_.path() + "/one", two = scratch_.path() + "/two";
  std::ofstream(one) << "x";
  if (link(one.c_str(), two.c_str()) == 0) {
    EXPECT_EQ(linked->bytes_shared, linked->bytes);
    EXPECT_GT(InodesShared(store_, backup_), 0u);
    EXPECT_EQ(based->bytes_shared, based->bytes);
    EXPECT_GT(InodesShared(scratch_.path() + "/copy", scratch_.path() + "/based"), 0u);
    EXPECT_EQ(InodesShared(store_, scratch_.path() + "/based"), 0u);
  }
}

TEST_F(MaintenanceTest, ARestoredStoreHasWhatTheBackupHadAndGoesItsOwnWay) {
  auto database = Open(SmallStore(store_));
  Fill(*database, "Rows", 300);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    auto table = database->CreateTable("Beside");
    for (int i = 0; !stop.load() && i < 1'000'000; ++i) {
      EXPECT_TRUE(table->InsertOrReplace(Entity("p", "r" + std::to_string(i))).ok());
    }
  });
  const auto made = database->Backup(backup_);
  stop.store(true);
  writer.join();
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ(database->Backup(backup_).code(), Code::kAlreadyExists);
  auto original = database->OpenTable("Rows");
  EXPECT_TRUE(original->Delete("p0", "r0").ok());
  EXPECT_TRUE(database->CompactAll().ok());
  EXPECT_TRUE(database->Close().ok());
  EXPECT_EQ(Database::Open(SmallStore(backup_)).code(), Code::kInvalidArgument);

  const std::string other = scratch_.path() + "/other";
  const auto restored = Database::Restore(backup_, other);
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(restored->created_ticks, made->created_ticks);
  EXPECT_EQ(Database::Restore(backup_, other).code(), Code::kAlreadyExists);
  const auto backup_before = Fingerprint(backup_ + "/meta");
  {
    Options options = SmallStore(other);
    options.create_if_missing = false;
    auto again = Open(options);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(CountOf(*again, "Rows"), 300u);
    Fill(*again, "More", 100);
    EXPECT_TRUE(again->CompactAll().ok());
    EXPECT_TRUE(again->Close().ok());
  }
  auto reader = Open(ForReading(backup_));
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(CountOf(*reader, "Rows"), 300u);
  EXPECT_EQ(Fingerprint(backup_ + "/meta"), backup_before);
}

TEST_F(MaintenanceTest, ARestoreGoesNowhereButToAnEmptyDirectoryAndFromABackup) {
  auto database = Open(SmallStore(store_));
  Fill(*database, "Rows", 10);
  ASSERT_TRUE(database->Backup(backup_).ok());
  EXPECT_TRUE(database->Close().ok());
  EXPECT_EQ(Database::Restore(backup_, store_).code(), Code::kAlreadyExists);
  EXPECT_EQ(Database::Restore(store_, scratch_.path() + "/other").code(), Code::kInvalidArgument);
  fs::create_directory(scratch_.path() + "/foreign");
  std::ofstream(scratch_.path() + "/foreign/letter.txt") << "dear";
  EXPECT_EQ(Database::Restore(backup_, scratch_.path() + "/foreign").code(), Code::kAlreadyExists);
  EXPECT_TRUE(fs::exists(scratch_.path() + "/foreign/letter.txt"));
}

TEST_F(MaintenanceTest, AKilledBackupNeverHasTheNameOfACompleteOneAndTheNextOneTakesItsPlace) {
  {
    auto database = Open(SmallStore(store_));
    Fill(*database, "Rows", 200);
    ASSERT_TRUE(database->Flush().ok());
    ASSERT_TRUE(database->Close().ok());
  }
  for (int kill_at = 0; kill_at < 4; ++kill_at) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto database = Open(SmallStore(store_));
      BackupOptions options;
      options.sharing = FileSharing::kNever;
      int calls = 0;
      options.pace.progress = [&](uint64_t, uint64_t) {
        if (calls++ == kill_at) kill(getpid(), SIGKILL);
        return true;
      };
      (void)database->Backup(backup_, options);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(fs::exists(backup_));
    EXPECT_TRUE(fs::exists(backup_ + ".partial"));
    EXPECT_EQ(Database::Restore(backup_ + ".partial", scratch_.path() + "/other").code(),
              Code::kInvalidArgument);
    EXPECT_EQ(Database::Open(ForReading(backup_ + ".partial")).code(), Code::kInvalidArgument);
    fs::remove_all(scratch_.path() + "/other");
  }
  auto database = Open(SmallStore(store_));
  const auto made = database->Backup(backup_);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_FALSE(fs::exists(backup_ + ".partial"));
  EXPECT_EQ(CountOf(*database, "Rows"), 200u);
}

TEST_F(MaintenanceTest, ABackupDoesNotGrowWhereAnotherHasFoldersAndLeavesThemAlone) {
  auto database = Open(SmallStore(store_));
  Fill(*database, "Rows", 10);
  for (const std::string name : {"/tables", "/meta"}) {
    const std::string foreign = backup_ + ".partial" + name + "/2024";
    fs::create_directories(foreign);
    EXPECT_EQ(database->Backup(backup_).code(), Code::kAlreadyExists);
    EXPECT_TRUE(fs::exists(foreign));
    fs::remove_all(backup_ + ".partial");
  }
  EXPECT_TRUE(database->Backup(backup_).ok());
}

// A backup that fails removes its own folders.
TEST_F(MaintenanceTest, ABackupThatIsStoppedLeavesNothing) {
  auto database = Open(SmallStore(store_));
  Fill(*database, "Rows", 200);
  BackupOptions options;
  options.pace.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(database->Backup(backup_, options).code(), Code::kCancelled);
  EXPECT_FALSE(fs::exists(backup_));
  EXPECT_FALSE(fs::exists(backup_ + ".partial"));
}

// Its tables could be opened by nobody: Options::account takes no such name.
TEST_F(MaintenanceTest, ARepairForAnAccountThatNobodyCanHaveIsRefusedBeforeAnythingIsDone) {
  {
    auto database = Open(SmallStore(store_));
    Fill(*database, "Rows", 10);
    ASSERT_TRUE(database->Close().ok());
  }
  fs::remove(store_ + "/meta/catalog");
  const auto before = Fingerprint(store_);
  RepairOptions options;
  options.apply = true;
  options.account = "Contoso";
  const auto refused = Database::Repair(store_, options);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument) << refused.status().ToString();
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("Contoso"));
  EXPECT_TRUE(Fingerprint(store_) == before);
  options.account = "contoso";
  const auto repaired = Database::Repair(store_, options);
  ASSERT_TRUE(repaired.ok()) << repaired.status().ToString();
  Options open = SmallStore(store_);
  open.account = options.account;
  EXPECT_EQ(Open(open)->ListTables().size(), 1u);
}

}  // namespace
}  // namespace partita
