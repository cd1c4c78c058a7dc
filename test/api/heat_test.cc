#include "api/heat.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "test/support/scratch_directory.h"
#include "test/support/small_database.h"

namespace partita {
namespace {

class HeatTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Database>> opened = OpenSmallDatabase(directory_.path(), 2);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    database_ = std::move(*opened);
  }
  void TearDown() override { EXPECT_TRUE(database_->Close().ok()); }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
};

double Sum(const HeatPicture& picture, HeatMetric metric) {
  double sum = 0;
  for (const HeatValues& cell : picture.cells) sum += cell[static_cast<size_t>(metric)];
  return sum * picture.column_seconds;
}

TEST_F(HeatTest, NamesTheHottestPartitions) {
  const Result<Table> orders = database_->CreateTable("Orders");
  const Result<RawTable> raw = database_->CreateRawTable("Raw");
  ASSERT_TRUE(orders.ok() && raw.ok());
  for (int i = 0; i < 20; ++i) {
    const std::string partition = i < 12 ? "\xC3\xA4nne" : "bert";
    ASSERT_TRUE(orders->Insert(Entity(partition, std::to_string(i))).ok());
  }
  const auto writes = database_->HotPartitions(HeatMetric::kWrites);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].table, "Orders");
  EXPECT_EQ(writes[0].partition_key, "\xC3\xA4nne");
  EXPECT_FALSE(writes[0].key_is_cut);
  EXPECT_NEAR(writes[0].per_second / writes[1].per_second, 1.5, 0.1);
  std::string value;
  ASSERT_EQ(raw->Get("\xFF\x01", "r", &value).code(), Code::kNotFound);
  EXPECT_EQ(database_->HotPartitions(HeatMetric::kReads)[0].partition_key, "\xFF\x01");
  EXPECT_GT(database_->LoadPerSecond()[static_cast<size_t>(HeatMetric::kWrites)], 0);
  ASSERT_TRUE(database_->DeleteTable("Orders").ok());
  EXPECT_EQ(database_->HotPartitions(HeatMetric::kWrites)[0].table, "table 1");
}

TEST_F(HeatTest, AnOtherwiseIdleStoreShowsEachCall) {
  const Result<Table> table = database_->CreateTable("Orders");
  ASSERT_TRUE(table.ok());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(table->Insert(Entity("p" + std::to_string(i), "r")).ok());
  const Result<HeatPicture> picture = database_->Heat({.seconds = 60, .table = "Orders"});
  ASSERT_TRUE(picture.ok());
  EXPECT_EQ(picture->columns, 60u);
  EXPECT_EQ(picture->column_seconds, 1u);
  EXPECT_EQ(picture->buckets[0].table, "Orders");
  EXPECT_NEAR(Sum(*picture, HeatMetric::kWrites), 30, 0.1);
}

TEST_F(HeatTest, RefusesWhatIsOutOfItsBounds) {
  EXPECT_EQ(database_->Heat({.seconds = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->Heat({.seconds = 15 * 86'400}).code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->Heat({.columns_max = 0}).code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->Heat({.buckets_max = 65}).code(), Code::kInvalidArgument);
  EXPECT_EQ(database_->Heat({.table = "Missing"}).code(), Code::kNotFound);
  EXPECT_EQ(database_->Heat({.table = "1x"}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(database_->Heat().ok());
}

}  // namespace
}  // namespace partita
