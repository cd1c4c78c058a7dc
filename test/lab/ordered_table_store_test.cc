#include "bench/lab/ordered_table_store.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "bench/lab/draw.h"
#include "bench/lab/embedded_store.h"
#include "bench/lab/engine_module.h"
#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;

// RocksDB is there where it is installed, and these tests say so where it is not.
class RocksDbTargetTest : public LabCommandTest {
 protected:
  void SetUp() override {
    LabCommandTest::SetUp();
    experiment_ = ParseSound(ReadingsText(kDeviceLayout));
    experiment_.memory_bytes = 64u << 20;
    experiment_.shards = 1;
  }
  // Null, and its absence told in words, where it is not installed.
  std::unique_ptr<OrderedTableStore> Open(const std::string& name) {
    auto store = OrderedTableStore::Open("rocksdb", directory_ + "/" + name, experiment_);
    if (store.ok()) return std::move(*store);
    EXPECT_EQ(store.code(), Code::kUnsupported) << store.status().ToString();
    EXPECT_THAT(store.status().message(), HasSubstr("target rocksdb is not there"));
    return nullptr;
  }
  std::string Io() const { return backend_ == IoBackend::kUring ? "uring" : "threads"; }

  Experiment experiment_;
};

partita::Write Of(WriteAction action, const std::string& partition_key, const std::string& row_key,
                  int64_t value) {
  Entity entity(partition_key, row_key);
  if (action != WriteAction::kDelete) entity.Set("a", value).Set("b" + std::to_string(value % 3), "text");
  return {.action = action, .entity = std::move(entity), .if_match = {}};
}

// Everything that is there, page by page.
std::vector<Entity> EntitiesFor(TableStore& store, const std::string& filter, uint64_t top,
                                uint64_t* scanned) {
  std::vector<Entity> all;
  TableStore::Question question{.filter = {filter}, .top = top, .wants_properties = true};
  do {
    const auto page = store.Query("Rows", question);
    EXPECT_TRUE(page.ok()) << page.status().ToString();
    if (!page.ok()) break;
    all.insert(all.end(), page->entities.begin(), page->entities.end());
    *scanned += page->scanned.value_or(0);
    question.continuation = page->continuation;
  } while (!question.continuation.empty());
  return all;
}

TEST_F(RocksDbTargetTest, AnswersEveryWriteAndQueryAsTheEngineDoes) {
  const std::unique_ptr<OrderedTableStore> peer = Open("peer");
  if (peer == nullptr) return;
  const auto own = EmbeddedStore::Open(directory_ + "/own", experiment_, backend_);
  ASSERT_TRUE(own.ok()) << own.status().ToString();
  TableStore* const stores[] = {peer.get(), own->get()};
  const GoesOn on = [] { return true; };
  Draw draw(5, 5);
  std::vector<std::vector<partita::Write>> requests;
  // U+FFFD lies behind U+10000 in UTF-16.
  const std::vector<std::string> keys = {"a", "b", "it's", "\xF0\x90\x80\x80", "\xEF\xBF\xBD", "z"};
  for (int i = 0; i < 600; ++i) {
    const std::string& partition = keys[draw.Below(keys.size())];
    std::vector<partita::Write>& writes = requests.emplace_back();
    const uint64_t size = 1 + draw.Below(3);
    for (uint64_t k = 0; k < size; ++k) {
      const auto action = static_cast<WriteAction>(draw.Below(6));
      const std::string row = keys[(draw.Below(3) + 2 * k) % keys.size()] + std::to_string(k);
      writes.push_back(Of(action, partition, row, static_cast<int64_t>(draw.Below(100))));
    }
  }
  for (TableStore* store : stores) ASSERT_TRUE(store->MakeTable("Rows", {}).ok());
  size_t refused = 0;
  for (const std::vector<partita::Write>& writes : requests) {
    const Status theirs = peer->Transact("Rows", writes), ours = (*own)->Transact("Rows", writes);
    EXPECT_EQ(theirs.code(), ours.code()) << theirs.ToString() << ", " << ours.ToString();
    refused += theirs.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 50u);
  EXPECT_LT(refused, 500u);
  for (TableStore* store : stores) {
    std::vector<partita::Write> rows;
    for (int i = 0; i < 2'500; ++i) {
      rows.push_back(Of(WriteAction::kInsertOrReplace, "many", std::to_string(10'000 + i), i % 100));
    }
    ASSERT_TRUE(store->Load("Rows", rows, on).ok());
    ASSERT_TRUE(store->Settle({}, on).ok());
  }
  for (const char* filter :
       {"", "PartitionKey eq 'many'", "PartitionKey eq 'many' and RowKey ge '10100' and RowKey lt '10200'",
        "PartitionKey eq 'many' and RowKey eq '11111'", "PartitionKey gt 'b' and PartitionKey lt 'n'",
        "a eq 7L", "PartitionKey eq 'many' and a ge 50L", "PartitionKey eq 'none'",
        "PartitionKey eq 'a' or PartitionKey eq 'z'"}) {
    for (const uint64_t top : {uint64_t{0}, uint64_t{7}}) {
      uint64_t theirs_scanned = 0, ours_scanned = 0;
      const std::vector<Entity> theirs = EntitiesFor(*peer, filter, top, &theirs_scanned);
      const std::vector<Entity> ours = EntitiesFor(**own, filter, top, &ours_scanned);
      // Not all of it is printed where it differs.
      ASSERT_EQ(theirs.size(), ours.size()) << filter;
      for (size_t i = 0; i < ours.size(); ++i) {
        ASSERT_TRUE(theirs[i] == ours[i])
            << filter << ": " << theirs[i].partition_key() << " " << theirs[i].row_key();
      }
      EXPECT_GE(theirs_scanned, theirs.size()) << filter;
    }
  }
  for (const std::string& partition : keys) {
    for (const std::string& row : keys) {
      const auto theirs = peer->Get("Rows", partition, row + "0"),
                 ours = (*own)->Get("Rows", partition, row + "0");
      ASSERT_EQ(theirs.code(), ours.code()) << partition << " " << row;
      if (ours.ok()) EXPECT_TRUE(*theirs == *ours) << partition << " " << row;
      const auto theirs_only = peer->GetSelected("Rows", partition, row + "0", {"b1", "a"}),
                 ours_only = (*own)->GetSelected("Rows", partition, row + "0", {"b1", "a"});
      ASSERT_EQ(theirs_only.code(), ours_only.code()) << partition << " " << row;
      if (ours.ok()) EXPECT_TRUE(*theirs_only == *ours_only) << partition << " " << row;
      if (ours.ok()) EXPECT_EQ(ours_only->property_count(), ours->Has("b1") ? 2u : 1u);
    }
  }
}

TEST_F(RocksDbTargetTest, ItsMemoryIsTheExperimentsNotThePageCache) {
  const std::unique_ptr<OrderedTableStore> store = Open("peer");
  if (store == nullptr) return;
  // It writes down how it was opened.
  std::string options;
  for (const auto& file : std::filesystem::directory_iterator(directory_ + "/peer")) {
    if (file.path().filename().string().starts_with("OPTIONS-")) options = Read(file.path());
  }
  EXPECT_THAT(options, HasSubstr("use_direct_reads=true"));
  EXPECT_THAT(options, HasSubstr("use_direct_io_for_flush_and_compaction=true"));
}

TEST_F(RocksDbTargetTest, AWriteOnConditionOfAnEtagNeedsIt) {
  const std::unique_ptr<OrderedTableStore> store = Open("peer");
  if (store == nullptr) return;
  ASSERT_TRUE(store->MakeTable("Rows", {}).ok());
  ASSERT_TRUE(store->Transact("Rows", {Of(WriteAction::kInsert, "p", "r", 1)}).ok());
  const auto first = store->Get("Rows", "p", "r");
  ASSERT_TRUE(first.ok());
  partita::Write change = Of(WriteAction::kMerge, "p", "r", 2);
  change.if_match = first->etag();
  EXPECT_TRUE(store->Transact("Rows", {change}).ok());
  EXPECT_EQ(store->Transact("Rows", {change}).code(), Code::kPreconditionFailed)
      << "it was changed meanwhile";
  EXPECT_EQ(*store->Get("Rows", "p", "r")->GetInt64("a"), 2);
  change.entity.set_row_key("none");
  EXPECT_EQ(store->Transact("Rows", {change}).code(), Code::kNotFound);
}

TEST_F(RocksDbTargetTest, AnExperimentRunsOnBothWithOneStreamAndIsNamed) {
  if (Open("probe") == nullptr) return;
  const std::string path = Write("x.toml", Once(Small(ReadingsText(kDeviceLayout))));
  std::string hashes[2];
  size_t i = 0;
  for (const char* target : {"embedded", "rocksdb"}) {
    const std::string out = directory_ + "/" + target;
    const CommandOutcome run = Lab({"run", path, "--target", target, "--out", out, "--io", Io()});
    EXPECT_EQ(run.code, ExitCode::kOk) << run.err;
    const std::string json = Read(out + "/result.json");
    EXPECT_THAT(json, HasSubstr("\"target\": \"" + std::string(target) + "\""));
    EXPECT_THAT(json, HasSubstr("\"failed\": 0,"));
    std::smatch found;
    ASSERT_TRUE(std::regex_search(json, found, std::regex(R"x("stream_hash": "(\w+)")x")));
    hashes[i++] = found[1].str();
    EXPECT_FALSE(std::filesystem::exists(out + "/unfinished"));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  const std::string in_file =
      Write("y.toml", Once(Small(ReadingsText(kDeviceLayout), "kind = \"rocksdb\"\n")));
  const CommandOutcome run = Lab({"run", in_file, "--out", directory_ + "/in-file"});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("on rocksdb, which has no limits"));
}

TEST(EngineModuleTest, AnEngineThatIsNotThereIsToldInWords) {
  const auto store = OpenEngineModule("nonesuch", {});
  EXPECT_EQ(store.code(), Code::kUnsupported);
  EXPECT_THAT(store.status().message(), HasSubstr("partita_lab_nonesuch.so beside the program"));
}

}  // namespace
}  // namespace partita::lab
