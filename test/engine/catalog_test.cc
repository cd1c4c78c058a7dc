#include "engine/catalog.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/base/coding.h"
#include "engine/base/task_group.h"
#include "engine/base/user_key.h"
#include "engine/io/local_meta_store.h"
#include "engine/io/sim_runtime.h"
#include "engine/name_index.h"
#include "engine/store.h"

namespace partita {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    out.push_back("0123456789abcdef"[c >> 4]);
    out.push_back("0123456789abcdef"[c & 15]);
  }
  return out;
}

Catalog SmallCatalog() {
  Catalog catalog;
  catalog.store = StoreId(0x0102030405060708);
  catalog.incarnation = 9;
  catalog.formed_layout = 1;
  catalog.shard_count = 2;
  TableDescriptor table;
  table.account = "acct";
  table.name = "Tab";
  table.durability = DurabilityLevel::kProcess;
  table.created_ticks = 0x0A0B0C0D;
  catalog.AddTable(table, {});
  return catalog;
}

// What format 1 had between its number and its end.
constexpr const char* kHeaderHex =
    "0807060504030201"  // Store.
    "09000000"          // Incarnation.
    "01000000"          // Layout.
    "01000000"          // Formed layout.
    "02000000"          // Shards.
    "02000000";         // Next table id.
constexpr const char* kTableHex = "0100000004616363740354616200020d0c0b0a00000000";
constexpr const char* kRangeHex =
    "01"
    "0400000001"
    "0400000002"
    "01000000"
    "0100000000000000";

std::string Bytes(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// With attributes, and a range that was moved.
Catalog FullCatalog() {
  Catalog catalog = SmallCatalog();
  catalog.SetTableAttributes(TableId(1), "ACL");
  catalog.SetAccountAttributes("acct", "props");
  catalog.MoveRange(TableLowerBound(TableId(1)), ShardId(1), 0x0a0b);
  return catalog;
}

// Its bytes: what stands in front of the header, and behind the range, depends on the format.
std::string FullHex(const std::string& format, const std::string& behind_range) {
  const std::string range = std::string(kRangeHex).substr(0, 22) + "01000000" + "0400000000000000";
  return format + kHeaderHex + "0400000000000000" + "01" + kTableHex + "0341434c" + range +
         "0b0a000000000000" + behind_range + "01" + "0461636374" + "0570726f7073";
}

TEST(CatalogTest, TheBytesOfFormat4AreAsTheyWereWritten) {
  Catalog catalog = FullCatalog();
  EXPECT_EQ(Hex(EncodeCatalog(catalog)), FullHex("0400", "00"));
  catalog.ranges[0].made_by_load = true;
  EXPECT_EQ(Hex(EncodeCatalog(catalog)), FullHex("0400", "01"));
  EXPECT_TRUE(DecodeCatalog(EncodeCatalog(catalog))->ranges[0].made_by_load);
}

TEST(CatalogTest, Format3IsStillReadAndHasNoBoundsMadeByLoad) {
  const std::string bytes = Bytes(FullHex("0300", ""));
  Result<Catalog> read = DecodeCatalog(bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->ranges[0].move_attempt, 0x0a0bu);
  EXPECT_EQ(EncodeCatalog(*read), EncodeCatalog(FullCatalog()));  // The next change writes format 4.
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeCatalog(bytes.substr(0, size)).code(), Code::kCorruption) << size;
  }
}

TEST(CatalogTest, ASplitTellsWhoMadeItsBound) {
  Catalog catalog = SmallCatalog();
  const TableId table(1);
  catalog.SplitRange(EncodeUserKey(table, "m", ""), /*by_load=*/true);
  catalog.SplitRange(EncodeUserKey(table, "t", ""), /*by_load=*/false);
  catalog.SplitRange(EncodeUserKey(table, "f", ""), /*by_load=*/false);
  std::vector<bool> made_by_load;
  for (const RangeDescriptor& range : catalog.ranges) made_by_load.push_back(range.made_by_load);
  EXPECT_EQ(made_by_load, std::vector<bool>({false, false, true, false}));
}

TEST(CatalogTest, Format2IsStillReadAndHasNoMoves) {
  Catalog catalog = SmallCatalog();
  catalog.SetTableAttributes(TableId(1), "ACL");
  catalog.SetAccountAttributes("acct", "props");
  const std::string bytes = Bytes(std::string("0200") + kHeaderHex + "0300000000000000" + "01" + kTableHex +
                                  "0341434c" + kRangeHex + "01" + "0461636374" + "0570726f7073");
  Result<Catalog> read = DecodeCatalog(bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->ranges[0].move_attempt, 0u);
  EXPECT_EQ(EncodeCatalog(*read), EncodeCatalog(catalog));  // The next change writes format 4.
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeCatalog(bytes.substr(0, size)).code(), Code::kCorruption) << size;
  }
}

TEST(CatalogTest, Format1IsStillReadAndHasNoAttributes) {
  const std::string bytes =
      Bytes(std::string("0100") + kHeaderHex + "0100000000000000" + "01" + kTableHex + kRangeHex);
  Result<Catalog> catalog = DecodeCatalog(bytes);
  ASSERT_TRUE(catalog.ok()) << catalog.status().ToString();
  ASSERT_EQ(catalog->tables.size(), 1u);
  EXPECT_EQ(catalog->tables[0]->name, "Tab");
  EXPECT_EQ(catalog->tables[0]->attributes, nullptr);
  EXPECT_TRUE(catalog->accounts.empty());
  EXPECT_EQ(EncodeCatalog(*catalog), EncodeCatalog(SmallCatalog()));  // The next change writes format 4.
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeCatalog(bytes.substr(0, size)).code(), Code::kCorruption) << size;
  }
}

TEST(CatalogTest, NewerFormatsAndCutBytesAreRefused) {
  Catalog catalog = SmallCatalog();
  catalog.SetTableAttributes(TableId(1), "ACL");
  catalog.SetAccountAttributes("acct", "props");
  const std::string bytes = EncodeCatalog(catalog);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeCatalog(bytes.substr(0, size)).code(), Code::kCorruption) << size;
  }
  EXPECT_EQ(DecodeCatalog(bytes + "x").code(), Code::kCorruption);
  std::string newer = bytes;
  StoreLe16(newer.data(), kCatalogFormat + 1);
  EXPECT_EQ(DecodeCatalog(newer).code(), Code::kUnsupported);
  catalog.accounts.push_back(catalog.accounts[0]);
  EXPECT_EQ(DecodeCatalog(EncodeCatalog(catalog)).code(), Code::kCorruption);
  catalog.accounts = {{"acct", nullptr}};
  EXPECT_EQ(DecodeCatalog(EncodeCatalog(catalog)).code(), Code::kCorruption);
}

// Else the next table got an id of one that is there, or two answered to a name. covers: F19 F77
TEST(CatalogTest, EachTableHasAnIdAndANameOfItsOwn) {
  const auto code_of = [](uint32_t id, const char* account, const char* name, uint32_t next_table_id) {
    Catalog catalog = SmallCatalog();  // acct has table 1, Tab.
    TableDescriptor table;
    table.id = TableId(id);
    table.account = account;
    table.name = name;
    catalog.tables.push_back(std::make_shared<const TableDescriptor>(std::move(table)));
    catalog.next_table_id = next_table_id;
    return DecodeCatalog(EncodeCatalog(catalog)).code();
  };
  EXPECT_EQ(code_of(2, "acct", "Other", 3), Code::kOk);
  EXPECT_EQ(code_of(2, "another", "Tab", 3), Code::kOk);
  EXPECT_EQ(code_of(1, "acct", "Other", 3), Code::kCorruption);
  EXPECT_EQ(code_of(2, "acct", "tAB", 3), Code::kCorruption);
  EXPECT_EQ(code_of(2, "acct", "Other", 2), Code::kCorruption);
  EXPECT_EQ(code_of(UINT32_MAX, "acct", "Other", UINT32_MAX), Code::kOk) << "no id is left to be given";
}

TEST(CatalogTest, MoreShardsThanAStoreCanHaveAreNotBelieved) {
  Catalog catalog;
  catalog.shard_count = kShardCountMax;
  EXPECT_TRUE(DecodeCatalog(EncodeCatalog(catalog)).ok());
  catalog.shard_count = kShardCountMax + 1;
  EXPECT_EQ(DecodeCatalog(EncodeCatalog(catalog)).code(), Code::kCorruption);
}

TEST(CatalogTest, EmptyAttributesRemoveAndATableTakesItsOwnAlong) {
  Catalog catalog = SmallCatalog();
  catalog.SetAccountAttributes("acct", "props");
  catalog.SetAccountAttributes("acct", "new");
  catalog.SetTableAttributes(TableId(1), "ACL");
  EXPECT_EQ(catalog.AttributesSize(), 6u);
  EXPECT_EQ(catalog.accounts.size(), 1u);
  catalog.SetAccountAttributes("acct", "");
  EXPECT_TRUE(catalog.accounts.empty());
  EXPECT_EQ(*catalog.FindTable(TableId(1))->attributes, "ACL");
  catalog.RemoveTable(TableId(1));
  EXPECT_EQ(catalog.AttributesSize(), 0u);
}

TEST(CatalogTest, TablesAreInTheOrderInWhichTheyAreListed) {
  Catalog catalog;
  catalog.next_table_id = 1;
  for (const char* name : {"b/Beta", "a/gamma", "b/alpha", "a/Delta", "a/delta2", "ab/x"}) {
    const std::string_view text = name;
    TableDescriptor table;
    table.account = text.substr(0, text.find('/'));
    table.name = text.substr(text.find('/') + 1);
    catalog.AddTable(table, {});
  }
  const auto names = [](const std::vector<TablePtr>& tables) {
    std::string joined;
    for (const TablePtr& table : tables) joined += table->account + "/" + table->name + " ";
    return joined;
  };
  EXPECT_EQ(names(catalog.tables), "a/Delta a/delta2 a/gamma ab/x b/alpha b/Beta ");
  const NameIndex index(catalog);
  EXPECT_EQ(names(index.ListTables("a", "", SIZE_MAX)), "a/Delta a/delta2 a/gamma ");
  EXPECT_EQ(names(index.ListTables("a", "DELTA2", SIZE_MAX)), "a/delta2 a/gamma ");
  EXPECT_EQ(names(index.ListTables("a", "delta1", 1)), "a/delta2 ");
  EXPECT_EQ(names(index.ListTables("a", "z", SIZE_MAX)), "");
  EXPECT_EQ(names(index.ListTables("aa", "", SIZE_MAX)), "");
  // Earlier versions wrote them in the order of their creation.
  const std::string bytes = EncodeCatalog(catalog);
  std::swap(catalog.tables[0], catalog.tables[5]);
  std::swap(catalog.tables[1], catalog.tables[2]);
  EXPECT_NE(EncodeCatalog(catalog), bytes);
  EXPECT_EQ(EncodeCatalog(*DecodeCatalog(EncodeCatalog(catalog))), bytes);
}

// ---- Names.

TEST(NameIndexTest, FindsWhatTheCatalogFindsIgnoringTheCaseOfTables) {
  Catalog catalog;
  std::mt19937_64 random(5);
  const auto name = [&] { return "Table" + std::to_string(random() % 3000); };
  const auto account = [&] { return "account" + std::to_string(random() % 3); };
  for (int i = 0; i < 2000; ++i) {
    TableDescriptor table;
    table.account = account();
    table.name = name();
    table.id = TableId(static_cast<uint32_t>(i + 1));
    if (catalog.FindTable(table.account, table.name) == nullptr) catalog.InsertTable(table);
  }
  TableDescriptor long_name;
  long_name.account = "account0";
  long_name.name = std::string(500, 'N');
  catalog.InsertTable(long_name);
  catalog.SetAccountAttributes("account1", "one");
  const NameIndex index(catalog);
  size_t found = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string in = account();
    std::string asked = name();
    if (i % 2 == 0) asked[0] = 't';
    const TableDescriptor* expected = catalog.FindTable(in, asked);
    const auto table = index.FindTable(in, asked);
    ASSERT_EQ(table != nullptr, expected != nullptr) << in << "/" << asked;
    if (table == nullptr) continue;
    EXPECT_EQ(table->id, expected->id);
    ++found;
  }
  EXPECT_GT(found, 200u);
  EXPECT_NE(index.FindTable("account0", std::string(500, 'n')), nullptr);
  EXPECT_EQ(index.FindTable("account0", std::string(499, 'n')), nullptr);
  EXPECT_EQ(*index.AccountAttributes("account1"), "one");
  EXPECT_EQ(index.AccountAttributes("Account1"), nullptr);
  EXPECT_EQ(NameIndex(Catalog()).FindTable("account0", "table1"), nullptr);
}

// ---- In a store.

StoreOptions OneShard() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 1;
  return options;
}

std::string TextOf(const Attributes& attributes) { return attributes == nullptr ? "(none)" : *attributes; }

std::string TableText(const Store& store, std::string_view table) {
  const auto found = store.LookUpTable("acct", table);
  return found == nullptr ? "(no table)" : TextOf(found->attributes);
}

Task<Status> MakeTable(Store* store, std::string name) {
  Store::TableSpec spec;
  spec.account = "acct";
  spec.name = std::move(name);
  Result<TableDescriptor> made = co_await store->CreateTable(std::move(spec));
  co_return made.status();
}

TEST(StoreAttributesTest, AreReadFromMemoryAtOnceAndAfterARestart) {
  SimDisk disk(1);
  for (int life = 0; life < 2; ++life) {
    SimRuntime runtime({.seed = 1, .shards = 1}, disk);
    Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, OneShard()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    if (life == 0) {
      ASSERT_TRUE(runtime.RunToEnd(MakeTable(&store, "Things")).ok());
      ASSERT_TRUE(runtime.RunToEnd(MakeTable(&store, "Other")).ok());
      EXPECT_TRUE(runtime.RunToEnd(store.SetTableAttributes("acct", "things", "policies")).ok());
      EXPECT_TRUE(runtime.RunToEnd(store.SetAccountAttributes("acct", "properties")).ok());
    }
    EXPECT_EQ(TableText(store, "THINGS"), "policies");
    EXPECT_EQ(TableText(store, "other"), "(none)");
    EXPECT_EQ(TextOf(store.AccountAttributes("acct")), "properties");
    EXPECT_EQ(TextOf(store.AccountAttributes("acct2")), "(none)");
    if (life == 1) {
      // A new table of the name has none.
      EXPECT_TRUE(runtime.RunToEnd(store.DeleteTable("acct", "Things")).ok());
      EXPECT_EQ(TableText(store, "Things"), "(no table)");
      EXPECT_TRUE(runtime.RunToEnd(MakeTable(&store, "things")).ok());
      EXPECT_EQ(TableText(store, "Things"), "(none)");
      EXPECT_TRUE(runtime.RunToEnd(store.SetAccountAttributes("acct", "")).ok());
      EXPECT_EQ(TextOf(store.AccountAttributes("acct")), "(none)");
    }
    EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }
}

TEST(StoreAttributesTest, BytesBeyondTheLimitAndMissingTablesAreRefused) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1, .shards = 1}, disk);
  Result<std::unique_ptr<Store>> opened = runtime.RunToEnd(Store::Open(runtime, OneShard()));
  ASSERT_TRUE(opened.ok());
  Store& store = **opened;
  ASSERT_TRUE(runtime.RunToEnd(MakeTable(&store, "Things")).ok());
  const std::string most(kAttributesSizeMax, 'a');
  EXPECT_TRUE(runtime.RunToEnd(store.SetTableAttributes("acct", "Things", most)).ok());
  EXPECT_EQ(runtime.RunToEnd(store.SetTableAttributes("acct", "Things", most + "a")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(runtime.RunToEnd(store.SetAccountAttributes("acct", most + "a")).code(), Code::kInvalidArgument);
  EXPECT_EQ(runtime.RunToEnd(store.SetTableAttributes("acct", "Missing", "a")).code(), Code::kNotFound);
  EXPECT_EQ(runtime.RunToEnd(store.SetTableAttributes("other", "Things", "a")).code(), Code::kNotFound);
  EXPECT_EQ(TableText(store, "Things"), most);
  EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
}

// ---- Ids.

// F19: what was a dropped table's might be found in another's name.
TEST(CatalogTest, OnceAllIdsWereGivenNoTableIsMade) {
  SimDisk disk(1);
  {
    SimRuntime runtime({.seed = 1, .shards = 1}, disk);
    std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, OneShard()))).value();
    const StoreId id = store->CatalogCopy().store;
    EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
    auto meta =
        std::move(runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), id, IfMissing::kFail))).value();
    const MetaValue value = *runtime.RunToEnd(meta->Get(kCatalogKey)).value();
    Catalog catalog = DecodeCatalog(value.bytes).value();
    catalog.next_table_id = UINT32_MAX - 1;
    const std::string bytes = EncodeCatalog(catalog);
    ASSERT_TRUE(runtime.RunToEnd(meta->CompareAndSwap(kCatalogKey, value.generation, bytes)).ok());
  }
  SimRuntime runtime({.seed = 2, .shards = 1}, disk);
  std::unique_ptr<Store> store = std::move(runtime.RunToEnd(Store::Open(runtime, OneShard()))).value();
  EXPECT_TRUE(runtime.RunToEnd(MakeTable(store.get(), "Last")).ok());
  EXPECT_TRUE(runtime.RunToEnd(store->DeleteTable("acct", "Last")).ok());
  EXPECT_EQ(runtime.RunToEnd(MakeTable(store.get(), "Further")).code(), Code::kResourceExhausted);
  EXPECT_TRUE(runtime.RunToEnd(store->Close()).ok());
}

// ---- Crashes.

// What was answered, by the number of the last change: attributes are "1", "2" and so on.
struct Answers {
  int table_acknowledged = 0, table_begun = 0;
  int account_acknowledged = 0, account_begun = 0;
  uint64_t operations_before = 0;  // Until there was a table.
};

Task<void> SetThree(SimRuntime* runtime, Store* store, Answers* answers) {
  Status made = co_await MakeTable(store, "Things");
  answers->operations_before = runtime->operations_completed();
  for (int i = 1; i <= 3 && made.ok() && !runtime->crashed(); ++i) {
    answers->table_begun = i;
    Status set = co_await store->SetTableAttributes("acct", "Things", std::to_string(i));
    if (runtime->crashed()) break;
    if (set.ok()) answers->table_acknowledged = i;
    answers->account_begun = i;
    set = co_await store->SetAccountAttributes("acct", std::to_string(i));
    if (!runtime->crashed() && set.ok()) answers->account_acknowledged = i;
  }
}

// On a dead disk a change in doubt is never settled, and ends only with Close: so it runs beside.
Task<void> ChangeAttributes(SimRuntime* runtime, Answers* answers) {
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(*runtime, OneShard());
  if (!opened.ok()) co_return;
  std::unique_ptr<Store> store = std::move(opened).value();
  TaskGroup changes;
  changes.Spawn(runtime->client(1), SetThree(runtime, store.get(), answers));
  while (changes.running() > 0 && !runtime->crashed()) co_await SleepFor(1'000'000);
  Status closed = co_await store->Close();
  EXPECT_TRUE(closed.ok() || runtime->crashed());
  co_await changes.Join();
}

int NumberOf(const std::string& text) { return text.starts_with("(") ? 0 : std::stoi(text); }

TEST(StoreAttributesTest, APowerCutLosesNothingAcknowledgedAndInventsNothing) {
  uint64_t first = 0, last = 0;
  {
    SimDisk disk(1);
    SimRuntime runtime({.seed = 1, .shards = 1}, disk);
    Answers answers;
    runtime.Run(ChangeAttributes(&runtime, &answers));
    ASSERT_EQ(answers.account_acknowledged, 3);
    first = answers.operations_before;
    last = runtime.operations_completed();
  }
  int decided = 0;
  for (uint64_t at = first; at <= last; ++at) {
    for (const SimCrashMoment moment : {SimCrashMoment::kBefore, SimCrashMoment::kAfter}) {
      // The same seed as above, so the same course up to the crash.
      SimDisk disk(1);
      Answers answers;
      {
        SimRuntime runtime({.seed = 1, .shards = 1}, disk);
        runtime.CrashAtOperation(at, moment);
        runtime.Run(ChangeAttributes(&runtime, &answers));
      }
      disk.CrashPower();
      SimRuntime again({.seed = at + 1, .shards = 1}, disk);
      Result<std::unique_ptr<Store>> opened = again.RunToEnd(Store::Open(again, OneShard()));
      ASSERT_TRUE(opened.ok()) << at << ": " << opened.status().ToString();
      const int table = NumberOf(TableText(**opened, "Things"));
      const int account = NumberOf(TextOf((*opened)->AccountAttributes("acct")));
      EXPECT_GE(table, answers.table_acknowledged) << at;
      EXPECT_LE(table, answers.table_begun) << at;
      EXPECT_GE(account, answers.account_acknowledged) << at;
      EXPECT_LE(account, answers.account_begun) << at;
      decided += table + account;
      EXPECT_TRUE(again.RunToEnd((*opened)->Close()).ok());
    }
  }
  EXPECT_GT(decided, 20);
}

}  // namespace
}  // namespace partita
