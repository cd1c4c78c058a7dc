#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "api/partita.h"
#include "test/support/scratch_directory.h"

namespace partita {

// An embedded store of 64 MiB on a real backend.
class DatabaseTest : public testing::TestWithParam<IoBackend> {
 protected:
  Options OptionsOf(uint32_t shards = 2) {
    Options options;
    options.directory = directory_.path() + "/store";
    options.allow_volatile_storage = true;  // Wherever the tests run.
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = shards;
    options.io_backend = GetParam();
    return options;
  }

  void SetUp() override {
    Result<std::unique_ptr<Database>> probe = Database::Open(OptionsOf());
    if (!probe.ok() && probe.code() == Code::kUnsupported) GTEST_SKIP() << probe.status().ToString();
    ASSERT_TRUE(probe.ok()) << probe.status().ToString();
    database_ = std::move(probe).value();
  }

  Table MakeTable(std::string_view name = "Things", TableOptions options = {}) {
    Result<Table> table = database_->CreateTable(name, options);
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return *table;
  }

  void Reopen(uint32_t shards = 2) {
    EXPECT_TRUE(database_->Close().ok());
    Options options = OptionsOf(shards);
    options.create_if_missing = false;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    database_ = std::move(opened).value();
  }

  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
};

inline Entity Thing(std::string_view pk, std::string_view rk, int32_t n) {
  Entity entity{std::string(pk), std::string(rk)};
  entity.Set("N", n).Set("Text", "thing number " + std::to_string(n));
  return entity;
}

}  // namespace partita
