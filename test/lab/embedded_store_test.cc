#include "bench/lab/embedded_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/lab/experiments.h"
#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

constexpr int64_t kRowsStored = 3'000;

// Rows of one partition, whose property rises with their keys: zone maps could pass over nearly all of them.
class EmbeddedStoreTest : public LabCommandTest {
 protected:
  void SetUp() override {
    LabCommandTest::SetUp();
    Experiment experiment;
    MakeSmall(&experiment);
    Result<std::unique_ptr<EmbeddedStore>> opened = EmbeddedStore::Open(store_, experiment, backend_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    rows_ = std::move(*opened);
    ASSERT_TRUE(rows_->MakeTable("Rows", {}).ok());
    std::vector<partita::Write> writes;
    for (int64_t row = 0; row < kRowsStored; ++row) {
      Entity entity("p", RowKeyOf(row));
      entity.Set("n", row).Set("note", "text");
      writes.push_back(
          {.action = WriteAction::kInsertOrReplace, .entity = std::move(entity), .if_match = {}});
    }
    ASSERT_TRUE(rows_->Load("Rows", std::move(writes), GoOn).ok());
  }
  void TearDown() override {
    rows_.reset();
    LabCommandTest::TearDown();
  }
  static bool GoOn() { return true; }
  static std::string RowKeyOf(int64_t row) { return std::to_string(10'000 + row); }

  std::unique_ptr<EmbeddedStore> rows_;
};

TEST_F(EmbeddedStoreTest, LooksAtAllThatTheServiceDoes) {
  ASSERT_TRUE(rows_->Settle({}, GoOn).ok());
  const auto scanned = [&](const std::string& keys, const std::string& rest) {
    const auto answer = rows_->Query("Rows", {.filter = {keys, rest}});
    EXPECT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(answer->entities.size(), 2u) << rest;
    return answer.ok() ? answer->scanned : std::nullopt;
  };
  const std::string partition = "PartitionKey eq 'p'";
  EXPECT_EQ(scanned(partition, "n ge 7L and n lt 9L"), 3'000u) << "what zone maps rule out, too";
  EXPECT_EQ(scanned(partition, "(RowKey eq '10007' or RowKey eq '12000')"), 3'000u) << "no points";
  EXPECT_EQ(scanned(partition + " and RowKey ge '10007' and RowKey lt '10009'", ""), 2u);
}

TEST_F(EmbeddedStoreTest, IsChargedForAllThatTheServiceLooksAt) {
  ASSERT_TRUE(rows_->Settle({.partition_rate = 500}, GoOn).ok());
  const auto answer = rows_->Query("Rows", {.filter = {"PartitionKey eq 'p'", "n eq 7L"}});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_FALSE(answer->continuation.empty()) << "the page ends where the bucket is empty";
  EXPECT_GE(answer->scanned, 1'000u) << "two seconds' worth";
  EXPECT_LT(answer->scanned, 3'000u);
}

TEST_F(EmbeddedStoreTest, AnAnswerGoesOnWhereItsPageEnded) {
  ASSERT_TRUE(rows_->Settle({}, GoOn).ok());
  TableStore::Question question{
      .filter = {"PartitionKey eq 'p'", "n ge 100L"}, .select = {"note", "n"}, .continuation = {}};
  int64_t next = 100;
  do {
    const auto answer = rows_->Query("Rows", question);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_LE(answer->entities.size(), 1'000u);
    for (const Entity& entity : answer->entities) {
      ASSERT_EQ(entity.row_key(), RowKeyOf(next));
      EXPECT_EQ(entity.properties().size(), 2u);
      ++next;
    }
    question.continuation = answer->continuation;
  } while (!question.continuation.empty());
  EXPECT_EQ(next, kRowsStored);
}

}  // namespace
}  // namespace partita::lab
