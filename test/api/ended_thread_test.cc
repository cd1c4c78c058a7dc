#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/assert.h"
#include "test/api/database_fixture.h"

// Calls of destructors that run at the end of a thread, or of the process: what the engine keeps for each
// thread is gone by then.

namespace partita {
namespace {

// One call of each kind; false when one fails.
bool CallsSucceed(const Table& table, const std::string& row) {
  const bool written = table.Insert(Thing("p", row, 1)).ok();
  const bool merged = table.InsertOrMerge(Thing("p", row, 2)).ok();
  const Result<Entity> read = table.Get("p", row);
  const std::vector<Result<Entity>> both =
      table.GetMany(std::vector<Table::Key>{{"p", "before"}, {"p", row}});
  const Result<Page> page = table.Scan({});
  return written && merged && read.ok() && *read->GetInt32("N") == 2 && both[0].ok() && both[1].ok() &&
         page.ok() && page->entities.size() == 2;
}

// A program's object of the whole process, which is destroyed after all that belongs to the main thread.
class Application {
 public:
  Application() {
    Options options;
    options.directory = directory_.path() + "/store";
    options.allow_volatile_storage = true;
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.io_backend = IoBackend::kThreads;
    database_ = Database::Open(options).value();
    table_.emplace(database_->CreateTable("Things").value());
    PARTITA_ASSERT(table_->Insert(Thing("p", "before", 1)).ok());
  }
  ~Application() {
    const bool succeeded = CallsSucceed(*table_, "last");
    if (succeeded && database_->Close().ok()) std::fputs("all succeeded", stderr);
  }

 private:
  ScratchDirectory directory_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
};

TEST(EndedThreadDeathTest, AnObjectOfTheProcessMayWriteItsLastRowsAndCloseTheStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static Application application;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "all succeeded");
}

class EndedThreadTest : public DatabaseTest {};
INSTANTIATE_TEST_SUITE_P(Backends, EndedThreadTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Uring" : "Threads";
                         });

// Made before what the engine keeps for its thread, so it ends after that.
struct CallsAtItsEnd {
  const Table* table = nullptr;
  bool* succeeded = nullptr;
  ~CallsAtItsEnd() {
    if (table != nullptr) *succeeded = CallsSucceed(*table, "last");
  }
};

TEST_P(EndedThreadTest, AnObjectOfAThreadMayCallAtItsEnd) {
  const Table table = MakeTable();
  bool succeeded = false;
  std::thread([&] {
    thread_local CallsAtItsEnd last;
    last.table = &table;
    last.succeeded = &succeeded;
    EXPECT_TRUE(table.Insert(Thing("p", "before", 1)).ok());
    EXPECT_TRUE(table.Get("p", "before").ok());
  }).join();
  EXPECT_TRUE(succeeded);
}

}  // namespace
}  // namespace partita
