#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "test/cli/command_fixture.h"
#include "test/support/paths.h"

// stats, verify, inspect, doctor, tables, get, put, delete, and what stands in the way of opening a store.

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StoreCommandTest : public CommandTest {
 protected:
  // A store with a table file in it.
  void MakeStoreWithTableFile() {
    auto database = Database::Open(SmallOptions());
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    auto table = (*database)->CreateTable("Things", {.durability = Durability::kProcess});
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    for (int i = 0; i < 300; ++i) {
      Entity entity("p", "r" + std::to_string(i));
      entity.Set("Text", std::string(100, static_cast<char>('a' + i % 26)));
      ASSERT_TRUE(table->Insert(entity).ok());
    }
    ASSERT_TRUE((*database)->Flush().ok());
    ASSERT_TRUE((*database)->Close().ok());
  }

  std::string FirstFileIn(const std::string& directory) const {
    std::string first;
    for (const auto& entry : std::filesystem::directory_iterator(store_ + "/" + directory)) {
      if (first.empty() || entry.path().string() < first) first = entry.path().string();
    }
    return first;
  }

  static void FlipByte(const std::string& path, std::streamoff offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const auto byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(offset);
    file.put(byte);
    ASSERT_TRUE(file.good());
  }

  CommandOutcome Inspect(const std::string& kind, const std::string& file) {
    return RunAsGiven({"inspect", kind, file});
  }
};

TEST_F(StoreCommandTest, PutGetScanAndDeleteOneEntity) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const CommandOutcome put = Run({"put", "Things", R"({"PartitionKey":"p","RowKey":"r","N":1})"});
  EXPECT_EQ(put.code, ExitCode::kOk) << put.err;
  const std::string etag = put.out.substr(0, put.out.find('\n'));
  EXPECT_THAT(Run({"get", "Things", "p", "r"}).out, AllOf(HasSubstr("N  (Edm.Int32)  1"), HasSubstr(etag)));

  EXPECT_EQ(Run({"put", "Things", R"({"PartitionKey":"p","RowKey":"r","N":2})", "--if-match", etag}).code,
            ExitCode::kOk);
  const CommandOutcome stale = Run({"delete", "Things", "p", "r", "--if-match", etag});
  EXPECT_EQ(stale.code, ExitCode::kFindings);
  EXPECT_THAT(stale.err, HasSubstr("PreconditionFailed"));

  EXPECT_EQ(Run({"delete", "Things", "p", "r"}).code, ExitCode::kOk);
  const CommandOutcome gone = Run({"get", "Things", "p", "r"});
  EXPECT_EQ(gone.code, ExitCode::kFindings);
  EXPECT_THAT(gone.err, HasSubstr("has no entity \"p\" \"r\""));
}

// Strangers may have written them, over HTTP.
TEST_F(StoreCommandTest, ControlCharactersOfAValueDoNotReachATerminal) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string entity =
      R"({"PartitionKey":"p","RowKey":"r","Text":"a\u001b[2J\nb\u007f\u009b\u00a0\u00fc"})";
  ASSERT_EQ(Run({"put", "Things", entity}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"get", "Things", "p", "r"}).out,
              HasSubstr("\nText  (Edm.String)  a\\x1b[2J\\x0ab\\x7f\\xc2\\x9b\u00a0\u00fc\n"));
}

TEST_F(StoreCommandTest, WhatCannotBeOpenedIsToldInWordsOfTheCommandLine) {
  const CommandOutcome no_store = Run({"tables"});
  EXPECT_EQ(no_store.code, ExitCode::kFailed);
  EXPECT_THAT(no_store.err, AllOf(HasSubstr("there is no store in '" + store_ + "'"), HasSubstr("--data"),
                                  Not(HasSubstr("create_if_missing"))));
  std::filesystem::create_directory(store_);
  EXPECT_EQ(Run({"tables"}).err, no_store.err) << "an empty directory is no store either";

  ASSERT_EQ(Run({"create-table", "Bytes", "--raw"}).code, ExitCode::kOk);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"scan", "Bytes"},
                                                {"export", "--table", "Bytes"},
                                                {"import", Write("in.jsonl", "{}\n"), "--table", "Bytes"}}) {
    const CommandOutcome outcome = Run(words);
    EXPECT_EQ(outcome.code, ExitCode::kUsage) << words[0];
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("'Bytes' is a raw table"), HasSubstr("C++"))) << words[0];
  }
}

// Its name may be a slip.
TEST_F(StoreCommandTest, ADirectoryThatIsNoStoreIsLeftAsItWas) {
  std::filesystem::create_directory(store_);
  EXPECT_EQ(Run({"tables"}).code, ExitCode::kFailed);
  EXPECT_FALSE(std::filesystem::exists(store_ + "/LOCK"));
  Write("store/letter.txt", "dear");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tables"}, {"create-table", "Letters"}}) {
    EXPECT_THAT(Run(words).err, HasSubstr("it holds 'letter.txt'")) << words[0];
    EXPECT_FALSE(std::filesystem::exists(store_ + "/LOCK")) << words[0];
  }
  const std::string lock = Write("store/LOCK", "of a door\n");
  EXPECT_THAT(Run({"create-table", "Letters"}).err, HasSubstr("it holds 'letter.txt'"));
  EXPECT_EQ(Read(lock), "of a door\n");
}

TEST_F(StoreCommandTest, KeysAtWhichATableIsDividedMustRise) {
  for (const std::vector<std::string>& keys : {std::vector<std::string>{"b", "a"}, {"b", "b"}}) {
    const CommandOutcome outcome = Run({"create-table", "Things", "--split", keys[0], "--split", keys[1]});
    EXPECT_EQ(outcome.code, ExitCode::kUsage);
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("--split"), HasSubstr("\"" + keys[1] + "\" does not come behind \"b\"")));
  }
  EXPECT_FALSE(std::filesystem::exists(store_)) << "no store is made for it";
  // U+E000 comes behind the characters that take two UTF-16 units in a table of entities, before them in
  // bytes.
  const std::string far = "\xF0\x9F\x98\x80";
  const std::string farther = "\xEE\x80\x80";
  EXPECT_EQ(Run({"create-table", "Things", "--split", far, "--split", farther}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"create-table", "Bytes", "--raw", "--split", far, "--split", farther}).code,
            ExitCode::kUsage);
}

TEST_F(StoreCommandTest, ScanKeepsToItsBoundsOrderAndLimit) {
  std::string text;
  for (const char* key : {"a", "b", "c"}) {
    for (int row = 1; row <= 3; ++row) {
      text += std::string(R"({"PartitionKey":")") + key + R"(","RowKey":")" + std::to_string(row) + "\"}\n";
    }
  }
  ASSERT_EQ(Run({"import", Write("in.jsonl", text), "--table", "Things", "--create"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "9\n");
  EXPECT_EQ(Run({"scan", "Things", "--count", "--partition", "b"}).out, "3\n");
  EXPECT_EQ(Run({"scan", "Things", "--count", "--partition", "b", "--from-row", "2"}).out, "2\n");
  EXPECT_EQ(Run({"scan", "Things", "--count", "--partition", "b", "--to-row", "2"}).out, "1\n");
  EXPECT_EQ(Run({"scan", "Things", "--count", "--from-partition", "b", "--to-partition", "c"}).out, "3\n");
  const CommandOutcome last = Run({"scan", "Things", "--descending", "--limit", "1"});
  EXPECT_THAT(last.out, HasSubstr(R"("PartitionKey":"c","RowKey":"3")"));
  EXPECT_THAT(last.err, HasSubstr("there is more"));
  const CommandOutcome interrupted = Run({"scan", "Things", "--limit", "0"}, /*interrupt_after=*/1);
  EXPECT_EQ(interrupted.code, ExitCode::kFailed);
  EXPECT_EQ(interrupted.err, "partita: interrupted (Cancelled)\n");
  const CommandOutcome rows = Run({"scan", "Things", "--from-row", "2"});
  EXPECT_EQ(rows.code, ExitCode::kUsage);
  EXPECT_THAT(rows.err, HasSubstr("--partition"));
}

TEST_F(StoreCommandTest, TheEmptyKeyIsAKey) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  ASSERT_EQ(Run({"put", "Things", R"({"PartitionKey":"","RowKey":"","N":1})"}).code, ExitCode::kOk);
  const CommandOutcome got = Run({"get", "Things", "", ""});
  EXPECT_EQ(got.code, ExitCode::kOk) << got.err;
  EXPECT_EQ(Run({"scan", "Things", "--count", "--partition", ""}).out, "1\n");
}

TEST_F(StoreCommandTest, TablesAreListedAndDeleted) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  ASSERT_EQ(Run({"create-table", "Bytes", "--raw"}).code, ExitCode::kOk);
  const CommandOutcome twice = Run({"create-table", "things"});
  EXPECT_EQ(twice.code, ExitCode::kFindings);
  EXPECT_THAT(twice.err, HasSubstr("AlreadyExists"));
  EXPECT_THAT(Run({"tables", "--json"}).out,
              AllOf(HasSubstr(R"("name":"Things","kind":"entities","durability":"process")"),
                    HasSubstr(R"("name":"Bytes","kind":"raw")")));
  EXPECT_EQ(Run({"delete-table", "Things"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"tables"}).out, AllOf(Not(HasSubstr("Things")), HasSubstr("Bytes")));
}

TEST_F(StoreCommandTest, KeysAtWhichATableIsDividedAreTakenAsTheyStand) {
  // Where the ranges of the table begin that these words make.
  const auto bounds_of = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {"create-table", "Things"});
    const CommandOutcome made = Run(words);
    EXPECT_EQ(made.code, ExitCode::kOk) << made.err;
    std::vector<std::string> bounds;
    auto database = Database::Open(SmallOptions());
    EXPECT_TRUE(database.ok()) << database.status().ToString();
    const auto ranges = (*database)->ListRanges("Things");
    EXPECT_TRUE(ranges.ok()) << ranges.status().ToString();
    for (const RangeDescription& range : *ranges) bounds.push_back(range.first_partition_key);
    EXPECT_TRUE((*database)->Close().ok());
    EXPECT_EQ(Run({"delete-table", "Things"}).code, ExitCode::kOk);
    return bounds;
  };
  EXPECT_THAT(bounds_of({"--split", "[a,b]", "--split", "[de]", "--split", "m"}),
              ElementsAre("", "[a,b]", "[de]", "m"));
  EXPECT_THAT(bounds_of({"--split", "[de]", "--split", "m,n"}), ElementsAre("", "[de]", "m,n"));
  EXPECT_THAT(bounds_of({"--split=[x]"}), ElementsAre("", "[x]"));
  EXPECT_EQ(Run({"create-table", "--split", "m", "Things"}).code, ExitCode::kOk) << "which is the table";
}

TEST_F(StoreCommandTest, RangesAreListedSplitMovedAndMerged) {
  shards_ = "2";
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  for (const char* key : {"a", "m", "z"}) {
    const std::string entity = R"({"PartitionKey":")" + std::string(key) + R"(","RowKey":"1"})";
    ASSERT_EQ(Run({"put", "Things", entity}).code, ExitCode::kOk);
  }
  EXPECT_EQ(Run({"ranges", "split", "Things", "m"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"ranges", "split", "Things", "m"}).err, HasSubstr("AlreadyExists"));
  const std::string before = Run({"ranges", "list", "Things", "--json"}).out;
  const std::string to = before.find(R"("from":"m","to":"","shard":0)") != std::string::npos ? "1" : "0";
  const CommandOutcome moved = Run({"ranges", "move", "Things", "q", to});
  EXPECT_EQ(moved.code, ExitCode::kOk) << moved.err;
  EXPECT_THAT(Run({"ranges", "list", "--json"}).out, HasSubstr(R"("from":"m","to":"","shard":)" + to));
  EXPECT_THAT(Run({"ranges", "merge", "Things", "m"}).err, HasSubstr("move one of them first"));
  EXPECT_THAT(Run({"ranges", "move", "Things", "m", "7"}).err, HasSubstr("there is no shard 7, but 0 to 1"));
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "3\n");
  EXPECT_EQ(Run({"ranges", "move", "Things", "a", to}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"ranges", "merge", "Things", "m"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "3\n");
}

TEST_F(StoreCommandTest, AccountsSeeOnlyTheirOwnTables) {
  EXPECT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"create-table", "Orders", "--account", "contoso"}).code, ExitCode::kOk);
  EXPECT_EQ(Run({"create-table", "Bills", "--account", "contoso"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"tables", "--account", "contoso"}).out, HasSubstr("Bills"));
  EXPECT_THAT(Run({"tables"}).out, Not(HasSubstr("Bills")));
  // Ranges are of all, and called by their account where it is another.
  EXPECT_EQ(Run({"ranges", "split", "contoso/Bills", "m"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"ranges", "list", "--json"}).out,
              AllOf(HasSubstr(R"("table":"Orders")"), HasSubstr(R"("table":"contoso/Orders")"),
                    HasSubstr(R"("table":"contoso/Bills","from":"m")")));
  EXPECT_THAT(Run({"ranges", "list", "Bills", "--account", "contoso", "--json"}).out,
              HasSubstr(R"("table":"Bills","from":"m")"));
  EXPECT_EQ(Run({"ranges", "list", "No_Account/Bills"}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"delete-table", "Orders", "--account", "contoso"}).code, ExitCode::kOk);
  EXPECT_THAT(Run({"tables"}).out, HasSubstr("Orders"));
  EXPECT_EQ(Run({"tables", "--account", "No_Account"}).code, ExitCode::kUsage);
}

// A server with an account of its own made them, and the command names none.
TEST_F(StoreCommandTest, TablesOfOtherAccountsAreToldOf) {
  const CommandOutcome made = Run({"create-table", "Orders", "--account", "contoso"});
  EXPECT_EQ(made.err, "") << "the store is new";
  ASSERT_EQ(Run({"create-table", "Bills", "--account", "contoso"}).code, ExitCode::kOk);
  const std::string told = "the store has 2 tables of account contoso: --account contoso\n";
  EXPECT_EQ(Run({"tables"}).err, "partita: account devstoreaccount1 has no table; " + told);
  const CommandOutcome scanned = Run({"scan", "Orders"});
  EXPECT_EQ(scanned.code, ExitCode::kFindings);
  EXPECT_THAT(scanned.err, HasSubstr("there is no table 'Orders'; this account has none; the store also has "
                                     "2 tables of account contoso: --account contoso"));
  EXPECT_EQ(Run({"delete-table", "Orders"}).err, scanned.err);

  const CommandOutcome first = Run({"create-table", "Trips", "--account", "fabrikam"});
  EXPECT_EQ(first.code, ExitCode::kOk);
  EXPECT_EQ(first.err, "partita: this is the first table of account fabrikam; " + told);
  EXPECT_EQ(Run({"create-table", "Cars", "--account", "fabrikam"}).err, "") << "the account is known by now";
  EXPECT_THAT(Run({"get", "Orders", "p", "r", "--account", "fabrikam"}).err,
              HasSubstr("this account has: Cars, Trips; the store also has 2 tables of account contoso: "));
  EXPECT_THAT(Run({"import", Write("in.jsonl", "{}\n"), "--table", "Things", "--create"}).err,
              HasSubstr("this is the first table of account devstoreaccount1; the store has 2 tables of "
                        "account contoso, 2 tables of account fabrikam: --account NAME\n"));
  EXPECT_EQ(Run({"tables"}).err, "");
}

TEST_F(StoreCommandTest, StatsShowLevelsAndAmplification) {
  MakeStoreWithTableFile();
  const CommandOutcome stats = Run({"stats"});
  EXPECT_EQ(stats.code, ExitCode::kOk) << stats.err;
  EXPECT_THAT(stats.out, AllOf(HasSubstr("space amplification"), HasSubstr("write amplification"),
                               HasSubstr("memory budget bytes"), HasSubstr("levels (1)")));
  EXPECT_THAT(Run({"stats", "--json"}).out,
              AllOf(HasSubstr("\"table_files\":1"), HasSubstr("\"entries\":300")));
}

TEST_F(StoreCommandTest, VerifyOfASoundStoreFindsNothing) {
  MakeStoreWithTableFile();
  const CommandOutcome verified = Run({"verify"});
  EXPECT_EQ(verified.code, ExitCode::kOk) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("everything is sound"));
}

TEST_F(StoreCommandTest, VerifyCanBeInterrupted) {
  MakeStoreWithTableFile();
  const CommandOutcome verified = Run({"verify"}, /*interrupt_after=*/0);
  EXPECT_EQ(verified.code, ExitCode::kFailed);
  EXPECT_THAT(verified.err, HasSubstr("stopped as it was asked to"));
}

TEST_F(StoreCommandTest, VerifyOfADamagedFileNamesFileAndOffset) {
  MakeStoreWithTableFile();
  const std::string file = FirstFileIn("tables");
  FlipByte(file, 100);
  const CommandOutcome verified = Run({"verify"});
  EXPECT_EQ(verified.code, ExitCode::kFindings);
  const std::string name = "tables/" + std::filesystem::path(file).filename().string();
  EXPECT_THAT(verified.out, AllOf(HasSubstr(name), HasSubstr("offset 0"), HasSubstr("there is damage")));
  EXPECT_THAT(Run({"verify", "--json"}).out, HasSubstr("\"damages\":[\""));

  const CommandOutcome inspected = Inspect("table", file);
  EXPECT_EQ(inspected.code, ExitCode::kFindings);
  EXPECT_THAT(inspected.out, AllOf(HasSubstr(name), HasSubstr("offset 0")));
}

TEST_F(StoreCommandTest, InspectShowsEachKindOfFile) {
  MakeStoreWithTableFile();
  const CommandOutcome table = Inspect("table", FirstFileIn("tables"));
  EXPECT_EQ(table.code, ExitCode::kOk) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("table 1 'p' 'r0'"), HasSubstr("entries (20)"), HasSubstr("300")));
  const CommandOutcome manifest = Inspect("manifest", store_ + "/meta/shard-1-0");
  EXPECT_EQ(manifest.code, ExitCode::kOk) << manifest.err;
  EXPECT_THAT(manifest.out, HasSubstr("files (1)"));
  const CommandOutcome catalog = Inspect("catalog", store_ + "/meta/catalog");
  EXPECT_EQ(catalog.code, ExitCode::kOk) << catalog.err;
  EXPECT_THAT(catalog.out, AllOf(HasSubstr("Things"), HasSubstr("process")));
  EXPECT_THAT(RunAsGiven({"inspect", "catalog", store_ + "/meta/catalog", "--json"}).out,
              HasSubstr(R"("name":"Things")"));
  // Beside the list that has the name.
  EXPECT_THAT(RunAsGiven({"inspect", "table", FirstFileIn("tables"), "--json"}).out,
              AllOf(HasSubstr(R"("entry_count":300,)"), HasSubstr(R"("entries":[{)")));
  bool looked = false;
  for (const auto& entry : std::filesystem::directory_iterator(store_ + "/log-1-0")) {
    if (entry.path().extension() != ".log") continue;
    const CommandOutcome log = Inspect("wal", entry.path().string());
    EXPECT_EQ(log.code, ExitCode::kOk) << log.out << log.err;
    EXPECT_THAT(log.out, HasSubstr("first position"));
    EXPECT_THAT(RunAsGiven({"inspect", "wal", entry.path().string(), "--json"}).out,
                HasSubstr(R"("frame_count":)"));
    looked = true;
  }
  EXPECT_TRUE(looked);
}

// covers: F64
TEST_F(StoreCommandTest, OfAStoreThatLacksItsLockFileOnlyThatIsSaid) {
  MakeStoreWithTableFile();
  ASSERT_TRUE(std::filesystem::remove(store_ + "/LOCK"));
  const CommandOutcome refused = Run({"tables", "--read-only"});
  EXPECT_EQ(refused.code, ExitCode::kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("no file LOCK"), Not(HasSubstr("create-table"))));
}

TEST_F(StoreCommandTest, InspectWorksWhileTheStoreIsOpen) {
  MakeStoreWithTableFile();
  auto database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  EXPECT_EQ(Inspect("table", FirstFileIn("tables")).code, ExitCode::kOk);
  EXPECT_EQ(Inspect("catalog", store_ + "/meta/catalog").code, ExitCode::kOk);
}

TEST_F(StoreCommandTest, InspectOfForeignAndDamagedFilesSaysWhatIsWrong) {
  MakeStoreWithTableFile();
  const std::string foreign = Write("shard-1-0", std::string(5000, 'x'));
  for (const char* kind : {"manifest", "catalog", "wal"}) {
    const CommandOutcome outcome = Inspect(kind, foreign);
    EXPECT_EQ(outcome.code, ExitCode::kFindings) << kind << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("shard-1-0")) << kind;
  }
  EXPECT_EQ(Inspect("table", foreign).code, ExitCode::kUsage);
  EXPECT_EQ(Inspect("table", directory_ + "/none.sst").code, ExitCode::kFailed);
  EXPECT_EQ(Inspect("wal", directory_).code, ExitCode::kUsage);
  FlipByte(store_ + "/meta/catalog", 50);
  EXPECT_EQ(Inspect("catalog", store_ + "/meta/catalog").code, ExitCode::kFindings);
  const CommandOutcome verified = Run({"verify"});
  EXPECT_EQ(verified.code, ExitCode::kFindings);
  EXPECT_THAT(verified.err, HasSubstr("meta/catalog"));
}

TEST_F(StoreCommandTest, InspectOfASoundFileOfAnotherKindSaysSo) {
  MakeStoreWithTableFile();
  const CommandOutcome manifest = Inspect("manifest", store_ + "/meta/catalog");
  EXPECT_EQ(manifest.code, ExitCode::kUsage);
  EXPECT_THAT(manifest.err, HasSubstr("is sound, but a catalog"));
  const CommandOutcome catalog = Inspect("catalog", store_ + "/meta/shard-1-0");
  EXPECT_EQ(catalog.code, ExitCode::kUsage);
  EXPECT_THAT(catalog.err, HasSubstr("is sound, but a manifest"));
}

TEST_F(StoreCommandTest, InspectOfALogThatWasCutSaysSo) {
  MakeStoreWithTableFile();
  const std::string log = FirstFileIn("log-1-0");
  std::filesystem::resize_file(log, 30'000);
  const CommandOutcome cut = Inspect("wal", log);
  EXPECT_EQ(cut.code, ExitCode::kFindings) << cut.out << cut.err;
  EXPECT_THAT(cut.out, AllOf(HasSubstr("30000 bytes"), HasSubstr("F35")));
}

TEST_F(StoreCommandTest, DoctorSaysWhenTheRootOfAStoreIsDamagedOrGone) {
  MakeStoreWithTableFile();
  EXPECT_THAT(Run({"doctor"}).out, HasSubstr("present"));
  FlipByte(store_ + "/meta/catalog", 50);
  const CommandOutcome damaged = Run({"doctor"});
  EXPECT_EQ(damaged.code, ExitCode::kFindings);
  EXPECT_THAT(damaged.out, HasSubstr("meta/catalog"));
  std::filesystem::remove(store_ + "/meta/catalog");
  const CommandOutcome gone = Run({"doctor"});
  EXPECT_EQ(gone.code, ExitCode::kFindings);
  EXPECT_THAT(gone.out, AllOf(HasSubstr("meta/catalog is missing"), HasSubstr("F69")));
}

TEST_F(StoreCommandTest, DoctorExplainsWhatItFoundAndDerived) {
  std::filesystem::create_directory(store_);
  const CommandOutcome doctor = Run({"doctor"});
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("kernel"), HasSubstr("flush policy"), HasSubstr("cache bytes")));
  EXPECT_THAT(Run({"doctor", "--json"}).out,
              AllOf(HasSubstr("\"flush_policy_why\""), HasSubstr("\"budget_bytes\":67108864")));
  EXPECT_TRUE(std::filesystem::is_empty(store_)) << "doctor left something behind";
}

TEST_F(StoreCommandTest, ASecondProcessIsToldWhoHoldsTheStore) {
  auto database = Database::Open(SmallOptions());
  ASSERT_TRUE(database.ok()) << database.status().ToString();
  const char* io = backend_ == IoBackend::kUring ? "uring" : "threads";
  const std::string command =
      std::string(kCommandPath) + " ranges list --memory 64M --io " + io + " --data '" + store_ + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char text[1024] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, pipe);
  const int status = pclose(pipe);
  EXPECT_EQ(WEXITSTATUS(status), 3) << text;
  EXPECT_THAT(std::string(text, size), AllOf(HasSubstr(std::to_string(getpid())), HasSubstr(store_),
                                             HasSubstr("'partita ranges list --admin ADDRESS'")));
}

TEST_F(StoreCommandTest, AForeignDirectoryIsLeftAlone) {
  std::filesystem::create_directory(store_);
  std::ofstream(store_ + "/letter.txt") << "dear reader";
  const CommandOutcome created = Run({"create-table", "Things"});
  EXPECT_EQ(created.code, ExitCode::kUsage);
  EXPECT_THAT(created.err, AllOf(HasSubstr("not a Partita store"), HasSubstr("letter.txt")));
  EXPECT_EQ(Read(store_ + "/letter.txt"), "dear reader");
}

TEST_F(StoreCommandTest, NoStoreIsMadeForATableThatCannotBe) {
  EXPECT_EQ(Run({"create-table", "1bad"}).code, ExitCode::kUsage);
  EXPECT_EQ(Run({"import", Write("in.jsonl", "{}\n"), "--table", "1bad", "--create"}).code, ExitCode::kUsage);
  EXPECT_FALSE(std::filesystem::exists(store_));
}

TEST_F(StoreCommandTest, AnEmptyConditionIsNone) {
  ASSERT_EQ(Run({"create-table", "Things"}).code, ExitCode::kOk);
  const std::string entity = R"({"PartitionKey":"p","RowKey":"r"})";
  ASSERT_EQ(Run({"put", "Things", entity}).code, ExitCode::kOk);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"put", "Things", entity, "--if-match", ""},
        std::vector<std::string>{"delete", "Things", "p", "r", "--if-match", ""}}) {
    const CommandOutcome outcome = Run(words);
    EXPECT_EQ(outcome.code, ExitCode::kUsage) << words[0];
    EXPECT_THAT(outcome.err, HasSubstr("--if-match"));
  }
  EXPECT_EQ(Run({"scan", "Things", "--count"}).out, "1\n");
}

TEST_F(StoreCommandTest, AMissingStoreIsNamed) {
  EXPECT_EQ(Run({"export", "--table", "Things"}).code, ExitCode::kFailed);
  const CommandOutcome missing = Run({"tables"});
  EXPECT_EQ(missing.code, ExitCode::kFailed);
  EXPECT_THAT(missing.err, AllOf(HasSubstr(store_), HasSubstr("create-table")));
}

TEST_F(StoreCommandTest, WhereAStoreCannotBeMadeTheDirectoryAboveIsAdvised) {
  store_ = directory_ + "/none/store";
  const CommandOutcome outcome = Run({"create-table", "Things"});
  EXPECT_EQ(outcome.code, ExitCode::kFailed);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(store_), HasSubstr("make the directory above it first"),
                                 Not(HasSubstr("'partita create-table'"))));
}

TEST_F(StoreCommandTest, WhatIsNotThereIsNoDamage) {
  for (const char* kind : {"wal", "table", "manifest", "catalog"}) {
    const CommandOutcome inspected = Inspect(kind, directory_ + "/none");
    EXPECT_EQ(inspected.code, ExitCode::kFailed) << kind;
    EXPECT_THAT(inspected.err, HasSubstr(directory_ + "/none")) << kind;
  }
  const CommandOutcome doctor = RunAsGiven({"doctor", "--data", directory_ + "/none"});
  EXPECT_EQ(doctor.code, ExitCode::kFailed);
  EXPECT_THAT(doctor.err, HasSubstr(directory_ + "/none"));
}

// As another user where this one may write everything.
TEST_F(StoreCommandTest, AReadOnlyDirectoryIsAClearError) {
  MakeStoreWithTableFile();
  std::filesystem::permissions(directory_, std::filesystem::perms(0755));
  std::filesystem::permissions(store_, std::filesystem::perms(0555));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(100);
    const CommandOutcome outcome = Run({"put", "Things", R"({"PartitionKey":"p","RowKey":"r"})"});
    const bool clear = outcome.err.find(store_) != std::string::npos &&
                       outcome.err.find("Permission denied") != std::string::npos;
    if (!clear) std::fprintf(stderr, "%s", outcome.err.c_str());
    _exit(clear ? static_cast<int>(outcome.code) : 101);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::kFailed));
}

}  // namespace
}  // namespace partita
