#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "test/api/database_fixture.h"

// covers: F11. Calls of many rows, and what bounds them, on both real backends.

namespace partita {
namespace {

class BatchCallsTest : public DatabaseTest {
 protected:
  template <typename Call>
  static WriteResult Wait(Call call) {
    std::promise<WriteResult> done;
    call([&done](WriteResult result) { done.set_value(std::move(result)); });
    return done.get_future().get();
  }
  static std::vector<Write> Inserts(int first, int count, size_t text_bytes = 1) {
    std::vector<Write> writes;
    for (int i = first; i < first + count; ++i) {
      Entity entity = Thing("p", std::to_string(i), i);
      for (size_t rest = text_bytes, n = 0; rest > 0; ++n) {
        const size_t part = std::min<size_t>(rest, 30'000);
        entity.Set("Fill" + std::to_string(n), std::string(part, 'f'));
        rest -= part;
      }
      writes.push_back({WriteAction::kInsert, entity, ""});
    }
    return writes;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, BatchCallsTest, testing::Values(IoBackend::kUring, IoBackend::kThreads),
                         [](const auto& info) {
                           return info.param == IoBackend::kUring ? "Uring" : "Threads";
                         });

TEST_P(BatchCallsTest, ATransactionIsAnsweredLaterAndWhole) {
  Table table = MakeTable();
  const auto transact = [&](std::vector<Write> writes) {
    return Wait([&](WriteCallback done) { table.TransactAsync(std::move(writes), {}, std::move(done)); });
  };
  EXPECT_TRUE(transact(Inserts(0, 10)).ok());
  EXPECT_EQ(*table.Count({}), 10u);
  const WriteResult refused = transact(Inserts(5, 10));
  EXPECT_EQ(refused.status.code(), Code::kAlreadyExists);
  EXPECT_EQ(*table.Count({}), 10u) << "all of it or nothing";
}

TEST_P(BatchCallsTest, ABatchIsBoundedAndByOptionElsewhere) {
  Table table = MakeTable();
  EXPECT_EQ(table.Transact(Inserts(0, 101)).status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(table.Transact(Inserts(0, 101), {.operations_max = 101}).ok());
  // By the service's formula text counts two bytes a character.
  const std::vector<Write> large = Inserts(1'000, 5, 450'000);
  EXPECT_EQ(table.Transact(large).status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(table.Transact(large, {.bytes_max = 5u << 20}).ok());
  EXPECT_EQ(table.Transact(Inserts(2'000, 1), {.bytes_max = 65u << 20}).status.code(),
            Code::kInvalidArgument);
  EXPECT_EQ(*table.Count({}), 106u);
}

// As a client has them that deletes what it has read.
TEST_P(BatchCallsTest, OfDeletesABatchCountsTheKeysAlone) {
  Table table = MakeTable();
  std::vector<Write> writes = Inserts(0, 5, 450'000);
  ASSERT_TRUE(table.Transact(writes, {.bytes_max = 5u << 20}).ok());
  for (Write& write : writes) write.action = WriteAction::kDelete;
  const WriteResult deleted = table.Transact(writes);
  EXPECT_TRUE(deleted.ok()) << deleted.status.ToString();
  EXPECT_EQ(*table.Count({}), 0u);
  // Keys count as they do of all entities: 4, and 2 a unit.
  for (Write& write : writes) write.entity = Entity(std::string(300, 'p'), write.entity.row_key());
  EXPECT_EQ(table.Transact(writes, {.bytes_max = 3'000}).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(table.Transact(writes, {.bytes_max = 3'200}).status.code(), Code::kNotFound);
}

TEST_P(BatchCallsTest, ManyRowsComeInTheOrderAskedForWhereverTheyAre) {
  constexpr int kRows = 400;
  Table table = MakeTable();
  RawTable raw = *database_->CreateRawTable("Raw");
  std::vector<Table::Key> keys;
  for (int i = 0; i < kRows; ++i) {
    const Table::Key key{"p" + std::to_string(i % 7), std::to_string(i)};
    ASSERT_TRUE(table.Insert(Thing(key.partition_key, key.row_key, i)).ok());
    ASSERT_TRUE(raw.Put(key.partition_key, key.row_key, "value " + std::to_string(i)).ok());
    keys.push_back(key);
  }
  keys.insert(keys.begin() + 100, {"p", "missing"});
  for (const bool from_disk : {false, true}) {
    if (from_disk) {
      EXPECT_TRUE(database_->Flush().ok());
      Reopen();
      table = *database_->OpenTable("Things");
      raw = *database_->OpenRawTable("Raw");
    }
    const std::vector<Result<Entity>> entities = table.GetMany(keys);
    const std::vector<Result<std::string>> values = raw.GetMany(keys);
    ASSERT_EQ(entities.size(), keys.size());
    ASSERT_EQ(values.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i == 100) {
        EXPECT_EQ(entities[i].code(), Code::kNotFound);
        EXPECT_EQ(values[i].code(), Code::kNotFound);
        continue;
      }
      EXPECT_EQ(*entities[i]->GetInt32("N"), static_cast<int32_t>(i < 100 ? i : i - 1));
      EXPECT_EQ(*values[i], "value " + keys[i].row_key);
    }
  }
}

// How often the workers of all stores here have slept.
uint64_t SleepsOfWorkers() {
  uint64_t sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    bool is_worker = false;
    for (std::string word; status >> word;) {
      if (word == "Name:") is_worker = (status >> word) && word.starts_with("partita-w");
      if (word == "voluntary_ctxt_switches:" && is_worker) sleeps += (status >> word) ? std::stoull(word) : 0;
    }
  }
  return sleeps;
}

void OnThreadOfRank(int nice, const std::function<void()>& calls) {
  std::thread([&] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, 0, nice), 0);  // Of this thread.
    calls();
  }).join();
}

// DESIGN 2: no token is held by who may have no core for long: a worker wakes for each of his writes.
TEST_P(BatchCallsTest, AThreadOfLowRankHasItsWritesMadeByTheWorker) {
  constexpr int kWrites = 400;
  Table table = MakeTable();
  const auto wakes_for = [&](int nice, int first) {
    const uint64_t before = SleepsOfWorkers();
    OnThreadOfRank(nice, [&] {
      for (int i = first; i < first + kWrites; ++i)
        EXPECT_TRUE(table.Insert(Thing("p", std::to_string(i), i), {Durability::kMemory}).ok());
    });
    return SleepsOfWorkers() - before;
  };
  const int own = getpriority(PRIO_PROCESS, 0);
  EXPECT_LT(wakes_for(own, 0), uint64_t{kWrites / 2});
  EXPECT_GE(wakes_for(own + 1, kWrites), uint64_t{kWrites / 2});
  EXPECT_EQ(*table.Count({}), uint64_t{2 * kWrites});
}

// By system calls of the calling thread.
uint64_t BytesWrittenByThisThread() {
  std::ifstream io("/proc/thread-self/io");
  uint64_t bytes = 0;
  for (std::string word; io >> word;) {
    if (word == "wchar:") io >> bytes;
  }
  return bytes;
}

// The same is true of what else writers may wait for: a worker starts a thread that makes the call.
TEST_P(BatchCallsTest, AThreadOfLowRankHasItsFlushesMadeByAnother) {
  constexpr uint64_t kCalls = 40;
  MakeTable();
  const std::pair<const char*, std::function<Status()>> calls[] = {
      {"Flush", [&] { return database_->Flush(); }},
      {"CompactAll", [&] { return database_->CompactAll(); }},
  };
  for (const auto& [name, call] : calls) {
    const auto wakes_for = [&](int nice) {
      const uint64_t before = SleepsOfWorkers();
      OnThreadOfRank(nice, [&] {
        for (uint64_t i = 0; i < kCalls; ++i) EXPECT_TRUE(call().ok());
      });
      return SleepsOfWorkers() - before;
    };
    const int own = getpriority(PRIO_PROCESS, 0);
    EXPECT_LT(wakes_for(own), kCalls / 2) << name;
    EXPECT_GE(wakes_for(own + 1), kCalls) << name;
  }
}

TEST_P(BatchCallsTest, AThreadOfLowRankHasItsChangesOfTablesMadeByAnother) {
  constexpr uint64_t kCatalogBytes = 200;  // It takes more; to wake another thread takes 8.
  MakeTable();
  int made = 0;
  const std::pair<const char*, std::function<Status()>> calls[] = {
      {"CreateTable", [&] { return database_->CreateTable("Table" + std::to_string(++made)).status(); }},
      {"DeleteTable", [&] { return database_->DeleteTable("Table" + std::to_string(made--)); }},
      {"SplitRange", [&] { return database_->SplitRange("Things", std::to_string(++made)); }},
      {"MergeRanges", [&] { return database_->MergeRanges("Things", std::to_string(made--)); }},
  };
  for (const auto& [name, call] : calls) {
    const auto written_for = [&](int nice) {
      uint64_t written = 0;
      OnThreadOfRank(nice, [&] {
        const uint64_t before = BytesWrittenByThisThread();
        for (int i = 0; i < 2; ++i) {
          const Status status = call();
          EXPECT_TRUE(status.ok()) << status.ToString();
        }
        written = BytesWrittenByThisThread() - before;
      });
      return written;
    };
    const int own = getpriority(PRIO_PROCESS, 0);
    EXPECT_GT(written_for(own), kCatalogBytes) << name;
    EXPECT_LT(written_for(own + 1), kCatalogBytes) << name;
  }
}

TEST_P(BatchCallsTest, AThreadOfLowRankHasItsBackupsMadeByAnother) {
  EXPECT_TRUE(MakeTable().Insert(Thing("p", "r", 1)).ok());
  const int own = getpriority(PRIO_PROCESS, 0);
  std::optional<int> nice_of_backup;
  const auto note_nice = [&](uint64_t, uint64_t) {
    nice_of_backup = getpriority(PRIO_PROCESS, 0);
    return true;
  };
  OnThreadOfRank(own + 1, [&] {
    const Result<BackupReport> report =
        database_->Backup(directory_.path() + "/copy", {.pace = {.progress = note_nice}});
    EXPECT_TRUE(report.ok()) << report.status().ToString();
  });
  EXPECT_EQ(nice_of_backup, own);
}

TEST_P(BatchCallsTest, RawCallsAreAnsweredLaterToo) {
  RawTable raw = *database_->CreateRawTable("Raw");
  const WriteResult applied = Wait([&](WriteCallback done) {
    raw.ApplyAsync({{false, "p", "a", "first"}, {false, "p", "b", "second"}}, {}, std::move(done));
  });
  EXPECT_TRUE(applied.ok()) << applied.status.ToString();
  for (const auto& [row, value] : {std::pair("b", "second"), std::pair("c", "")}) {
    std::promise<Result<std::string>> got;
    raw.GetAsync("p", row, [&got](Result<std::string> answer) { got.set_value(std::move(answer)); });
    const Result<std::string> answer = got.get_future().get();
    if (*value == '\0') {
      EXPECT_EQ(answer.code(), Code::kNotFound);
    } else {
      EXPECT_EQ(*answer, value);
    }
  }
  std::string kept = "as it was";
  EXPECT_EQ(raw.Get("p", "c", &kept).code(), Code::kNotFound);
  EXPECT_EQ(kept, "as it was");
}

// All pages, each asked for in the callback of the one before, through a handle that is gone by then.
template <typename AnyPage, typename Options>
class PageChain {
 public:
  using Ask = std::function<void(const Options& options, std::function<void(Result<AnyPage>)> done)>;
  explicit PageChain(Ask ask) : ask_(std::move(ask)) {}

  Result<std::vector<AnyPage>> Run(Options options) {
    Continue(std::move(options));
    return all_.get_future().get();
  }

 private:
  void Continue(Options options) {
    ask_(options, [this, options](Result<AnyPage> page) mutable {
      if (!page.ok()) return all_.set_value(page.status());
      options.continuation = page->continuation;
      pages_.push_back(std::move(page).value());
      if (options.continuation.empty()) return all_.set_value(std::move(pages_));
      Continue(std::move(options));
    });
  }

  Ask ask_;
  std::vector<AnyPage> pages_;
  std::promise<Result<std::vector<AnyPage>>> all_;
};

TEST_P(BatchCallsTest, PagesAreAnsweredLaterToo) {
  constexpr int kRows = 90;
  Table table = *database_->CreateTable("Divided", {.split_partition_keys = {"p1", "p2"}});
  RawTable raw = *database_->CreateRawTable("Raw", {.split_partition_keys = {"p1", "p2"}});
  for (int i = 0; i < kRows; ++i) {
    const std::string partition = "p" + std::to_string(i / 30);
    const std::string row = std::to_string(100 + i);
    ASSERT_TRUE(table.Insert(Thing(partition, row, i)).ok());
    ASSERT_TRUE(raw.Put(partition, row, "value " + row).ok());
  }
  ASSERT_TRUE(database_->Flush().ok());
  PageChain<Page, QueryOptions> query([&table](const QueryOptions& options, auto done) {
    const Table handle = table;
    handle.QueryAsync(options, std::move(done));
  });
  PageChain<RawPage, ScanOptions> scan([&raw](const ScanOptions& options, auto done) {
    const RawTable handle = raw;
    handle.ScanAsync(options, std::move(done));
  });
  const Result<std::vector<Page>> pages =
      query.Run({.filter = "N ge 10", .order = ScanOrder::kDescending, .limit = 20});
  ASSERT_TRUE(pages.ok()) << pages.status().ToString();
  ASSERT_EQ(pages->size(), 4u);
  int n = kRows;
  for (const Page& page : *pages) {
    for (const Entity& entity : page.entities) EXPECT_EQ(*entity.GetInt32("N"), --n);
  }
  EXPECT_EQ(n, 10);
  const Result<std::vector<RawPage>> raw_pages = scan.Run({.limit = 40});
  ASSERT_TRUE(raw_pages.ok()) << raw_pages.status().ToString();
  ASSERT_EQ(raw_pages->size(), 3u);
  int row = 100;
  for (const RawPage& page : *raw_pages) {
    for (const RawRow& read : page.rows) EXPECT_EQ(read.value, "value " + std::to_string(row++));
  }
  EXPECT_EQ(row, 100 + kRows);
}

// What a server must know that stops while clients wait.
TEST_P(BatchCallsTest, ClosingWaitsForCallsUnderWayAndForThoseThatTheyBegin) {
  constexpr int kCalls = 300;
  const Table table = MakeTable();
  std::atomic<int> written{0}, read{0};
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < kCalls; ++i) {
    const std::string row = std::to_string(i);
    table.WriteAsync({.entity = Thing("p", row, i)}, {}, [&, row, held](const WriteResult& result) {
      written += result.ok();
      table.GetAsync("p", row, [&, held](const Result<Entity>& entity) { read += entity.ok(); });
    });
  }
  EXPECT_TRUE(database_->Close().ok());
  EXPECT_EQ(written, kCalls);
  EXPECT_EQ(read, kCalls);
  EXPECT_EQ(held.use_count(), 1) << "what the callbacks captured is destroyed";
  EXPECT_TRUE(database_->Close().ok());
  Reopen();
  EXPECT_EQ(*database_->OpenTable("Things")->Count({}), uint64_t{kCalls});
}

TEST_P(BatchCallsTest, APageThatCannotBeginIsRefusedOnTheCallingThread) {
  Table table = MakeTable();
  RawTable raw = *database_->CreateRawTable("Raw");
  std::vector<Status> refused;
  const auto note = [&refused](const auto& page) { refused.push_back(page.status()); };
  table.QueryAsync({.filter = "N eq"}, note);
  table.QueryAsync({.limit = 0}, note);
  raw.ScanAsync({.limit = 0}, note);
  ASSERT_EQ(refused.size(), 3u);
  for (const Status& status : refused) EXPECT_EQ(status.code(), Code::kInvalidArgument);

  // What pages may hold together is bounded; one alone may be larger. It waits behind a busy callback.
  std::promise<void> blocked;
  std::promise<void> goes_on;
  std::promise<Code> first;
  table.GetAsync("p", "r", [&](const Result<Entity>&) {
    blocked.set_value();
    goes_on.get_future().wait();
  });
  blocked.get_future().wait();
  table.QueryAsync({.limit = 100'000, .bytes_limit = UINT64_MAX},
                   [&](const Result<Page>& page) { first.set_value(page.code()); });
  table.QueryAsync({}, note);
  raw.ScanAsync({}, note);
  goes_on.set_value();
  EXPECT_EQ(first.get_future().get(), Code::kOk);
  ASSERT_EQ(refused.size(), 5u);
  EXPECT_EQ(refused[3].code(), Code::kBusy);
  EXPECT_EQ(refused[4].code(), Code::kBusy);
}

}  // namespace
}  // namespace partita
