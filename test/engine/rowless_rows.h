#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/real_runtime.h"
#include "engine/shard.h"
#include "engine/store.h"
#include "test/support/scratch_directory.h"
#include "test/support/small_store.h"

// What tests of rows in a store share, of rowless stretches above all.
namespace partita {

class KeyTaker final : public RowSink {
 public:
  std::vector<std::string> keys;
  Verdict Add(std::string_view user_key, Version, std::string_view) override {
    keys.emplace_back(user_key);
    return Verdict::kTaken;
  }
};

struct Rows {
  TableId table;

  std::string Key(const std::string& partition, int row) const {
    const std::string digits = std::to_string(row);
    return EncodeUserKey(table, partition, std::string(6 - digits.size(), '0') + digits);
  }
};

// A new store of one shard on the real disk, with the table of `rows`, for tests with threads.
class RealRowsStore {
 public:
  explicit RealRowsStore(Rows* rows) {
    RealRuntimeOptions world;
    world.directory = directory_.path();
    world.backend = IoBackend::kThreads;
    runtime_ = std::move(RealRuntime::Open(world)).value();
    store_ = std::move(runtime_->RunToEnd(Store::Open(*runtime_, SmallStoreOptions(1, 1u << 20)))).value();
    Store::TableSpec spec{.account = "default", .name = "rows", .raw = true, .split_partitions = {}};
    rows->table = runtime_->RunToEnd(store_->CreateTable(std::move(spec)))->id;
  }
  ~RealRowsStore() {
    EXPECT_TRUE(runtime_->RunToEnd(store_->Close()).ok());
    store_.reset();
    EXPECT_TRUE(runtime_->Close().ok());
  }

  Runtime& runtime() { return *runtime_; }
  Store& store() { return *store_; }

 private:
  ScratchDirectory directory_;
  std::unique_ptr<RealRuntime> runtime_;
  std::unique_ptr<Store> store_;
};

inline Task<WriteOutcome> WriteRows(Store& store, TableId table, std::span<const std::string> keys,
                                    WriteKind kind, DurabilityLevel level = DurabilityLevel::kProcess) {
  std::vector<WriteOp> ops(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ops[i].kind = kind;
    ops[i].user_key = keys[i];
    if (kind == WriteKind::kPut) ops[i].content = "content";
  }
  WriteRequest request;
  request.table = table;
  request.ops = ops;
  request.durability = level;
  co_return co_await store.Write(request);
}

}  // namespace partita
