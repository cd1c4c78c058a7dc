#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "test/engine/range_fixture.h"
#include "test/support/into.h"

// Nothing is written to table files while a change of ranges is written to the catalog (io/write_hold.h).

namespace partita {
namespace {

// A table of another shard has a memtable that takes its flush a while to write.
class RangeWriteHoldTest : public RangeTest, public testing::WithParamInterface<Status (*)(RangeTest&)> {
 protected:
  static constexpr uint64_t kTableWriteNanos = 1'000'000, kMetaNanos = 2'000'000;
  static constexpr int kBulkRows = 100;

  void SetUp() override {
    memtable_data_bytes_ = 12u << 20;
    ASSERT_TRUE(Open().ok());
    MakeTable();
    Fill();
    ASSERT_TRUE(Split(2).ok());
    ASSERT_TRUE(runtime_->RunToEnd(store_->FlushMemtables()).ok());
    const TableId rows = table_;
    MakeBulkTable();
    const TableId bulk = table_;
    std::mt19937_64 random(1);
    std::string content(100'000, '\0');
    for (int row = 0; row < kBulkRows; ++row) {
      for (char& byte : content) byte = static_cast<char>(random());
      WriteOp op{.content = content};
      ASSERT_TRUE(Write(op, EncodeUserKey(bulk, "p", std::to_string(100 + row))).status.ok());
    }
    ASSERT_NE(store_->CatalogCopy().FindRange(TableLowerBound(bulk))->owner,
              store_->CatalogCopy().FindRange(TableLowerBound(rows))->owner);
    table_ = rows;
  }
  // Here, as a test may end early: what it began goes on writing to the members below until the store is
  // closed.
  void TearDown() override { EXPECT_TRUE(Close().ok()); }
  void MakeBulkTable() {
    Store::TableSpec spec{.account = "default", .name = "bulk", .raw = true, .split_partitions = {}};
    Result<TableDescriptor> made = runtime_->RunToEnd(store_->CreateTable(std::move(spec)));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    table_ = made->id;
  }
  void Slow(SimOpSet operations, const char* path_prefix, uint64_t nanos) {
    runtime_->AddFault({.effect = SimEffect::kSlow,
                        .operations = operations,
                        .path_prefix = path_prefix,
                        .delay_ns = nanos});
  }
  // Notes from here on when tables and the catalog are written.
  void Watch() {
    runtime_->OnCompletion([this](const SimOperationRecord& record) {
      if (record.path.starts_with("tables/") && record.op == SimOp::kWrite)
        table_writes_.push_back(record.time_ns);
      if (!record.path.starts_with("meta/catalog")) return;
      if (record.op == SimOp::kOpen && begun_ == 0) begun_ = record.time_ns;
      if (record.op == SimOp::kRename) swapped_ = record.time_ns;
    });
  }

  std::optional<Status> flushed_;
  std::vector<uint64_t> table_writes_;
  uint64_t begun_ = 0, swapped_ = 0;
};

TEST_P(RangeWriteHoldTest, NoTableIsWrittenToWhileTheCatalogIs) {
  Slow(SimOps(SimOp::kWrite), "tables/", kTableWriteNanos);
  Slow(SimOps(SimOp::kWrite, SimOp::kFlush, SimOp::kRename), "meta/catalog", kMetaNanos);
  runtime_->Spawn(Into(store_->FlushMemtables(), &flushed_));
  Watch();
  for (int step = 0; table_writes_.empty(); ++step) {
    ASSERT_LT(step, 1'000);
    runtime_->AdvanceTime(kTableWriteNanos / 10);
  }
  const Status changed = GetParam()(*this);
  ASSERT_TRUE(changed.ok()) << changed.ToString();
  // What was given to the device before is done meanwhile.
  const uint64_t held = begun_ + 3 * kTableWriteNanos;
  ASSERT_GT(swapped_, held);
  EXPECT_EQ(std::count_if(table_writes_.begin(), table_writes_.end(), [&](uint64_t at) { return at > held; }),
            0);
  const size_t before = table_writes_.size();
  runtime_->AdvanceTime(kNanosPerSecond);
  EXPECT_GT(table_writes_.size(), before + 3);  // For which there would have been time.
  EXPECT_TRUE(flushed_.has_value() && flushed_->ok());
}

INSTANTIATE_TEST_SUITE_P(
    Changes, RangeWriteHoldTest,
    testing::Values([](RangeTest& store) { return store.Split(4); },
                    [](RangeTest& store) { return store.Merge(2); },
                    [](RangeTest& store) {
                      return store.Move(3, (store.OwnerOf(3).value + 2) % RangeTest::kShards).status();
                    }));

}  // namespace
}  // namespace partita
