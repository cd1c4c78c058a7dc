#include <algorithm>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/io/local_object_store.h"
#include "test/support/store_workload.h"

// Reading everything back after an open, and the histories made of lives and crashes.

namespace partita {

namespace {

class PageCollector : public RowSink {
 public:
  explicit PageCollector(std::vector<std::pair<std::string, StoreModel::Row>>* rows) : rows_(rows) {}
  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    rows_->emplace_back(user_key, StoreModel::Row{version, std::string(content)});
    return Verdict::kTaken;
  }

 private:
  std::vector<std::pair<std::string, StoreModel::Row>>* rows_;
};

}  // namespace

// What exists after recovery, against what was answered. False after a violation.
bool StoreLife::SettleTables() {
  size_t before = world_.model.violations().size();
  Catalog catalog = store_->CatalogCopy();
  for (size_t i = 0; i < StoreWorld::kTables; ++i) {
    StoreWorld::Table& table = world_.tables[i];
    using Pending = StoreWorld::Table::Pending;
    Result<TableDescriptor> found = store_->FindTable(kWorkloadAccount, table.name);
    if (table.id) {
      if (found.ok() && found->id == *table.id) {
        table.pending = Pending::kNone;
      } else if (!found.ok() && table.pending == Pending::kDrop) {
        world_.DropTable(i);
      } else {
        Violation("table " + table.name + " is " + (found.ok() ? "another one" : "gone") +
                  " after recovery (F19)");
      }
    } else if (!found.ok()) {
      table.pending = Pending::kNone;
    } else if (table.pending != Pending::kCreate) {
      Violation("table " + table.name + " is there although it was dropped or never made (F19)");
    } else if (!world_.table_ids.insert(found->id.value).second) {
      Violation("table id " + std::to_string(found->id.value) + " was used twice (F19)");
    } else {
      world_.AddTable(i, found->id, catalog);
    }
  }
  return world_.model.violations().size() == before;
}

// What a read-only open shows stays so, and nothing on the disk is changed by it (F15, F64).
Task<void> StoreLife::Glimpse() {
  constexpr SimOp kChanges[] = {SimOp::kWrite, SimOp::kTruncate,        SimOp::kRemove, SimOp::kRename,
                                SimOp::kLink,  SimOp::kCreateDirectory, SimOp::kStore};
  auto changes = [&] {
    uint64_t sum = 0;
    for (const SimOp op : kChanges) sum += runtime_.disk().operation_count(op);
    return sum;
  };
  const uint64_t changes_before = changes();
  const std::vector<std::string> files_before = runtime_.disk().ListFiles();
  StoreOptions options = Options();
  options.read_only = true;
  options.create_if_missing = false;
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(runtime_, std::move(options));
  if (!opened.ok()) {
    const bool never_made = opened.code() == Code::kNotFound && world_.shards == 0;
    if (!never_made && !crashed()) {
      Violation("the store does not open for reading: " + opened.status().ToString());
    }
    co_return;
  }
  store_ = std::move(opened).value();
  StoreModel::Rows rows;
  bool whole = false;
  if (!crashed()) whole = co_await ReadAll(&rows);
  if (whole) ++world_.counts.glimpses;
  Status closed = co_await store_->Close();
  store_.reset();
  if (crashed()) co_return;
  if (!closed.ok()) Violation("close after reading failed: " + closed.ToString());
  if (changes() != changes_before || runtime_.disk().ListFiles() != files_before) {
    Violation("opening for reading only changed the disk (F64)");
  }
}

Task<void> StoreLife::ReadBack() {
  StoreModel::Rows rows;
  const bool whole = co_await ReadAll(&rows);
  if (!whole) co_return;
  if (Chance(25) && !faulty_) co_await CheckStructure();
  if (crashed()) co_return;
  world_.counts.rows_compared += rows.size();
  if (world_.move_in_doubt) AdoptOwners();
  world_.move_in_doubt = false;
  world_.model.Recovered(rows);
  AdoptShards();
  compared_ = true;
}

// Everything there is, by scans of both directions and by gets; false when it ended early.
Task<bool> StoreLife::ReadAll(StoreModel::Rows* all) {
  if (!SettleTables()) co_return false;
  StoreModel::Rows& rows = *all;
  for (const StoreWorld::Table& table : world_.tables) {
    if (!table.id) continue;
    std::optional<TableId> id = table.id;
    std::vector<std::string> keys;
    uint32_t limit = Chance(50) ? 1000 : 1 + static_cast<uint32_t>(Draw(7));
    StoreModel::Rows seen;
    bool whole =
        co_await ScanPages(TableLowerBound(*id), TableUpperBound(*id), Direction::kForward, limit, &seen);
    for (const auto& [key, row] : seen) world_.model.SeenDuringRecovery(key, row);
    if (!whole) co_return false;
    for (const std::string& key : world_.model.Keys()) {
      bool absent = key.starts_with(TableLowerBound(*id)) && !seen.contains(key);
      if (absent) world_.model.SeenDuringRecovery(key, std::nullopt);
    }
    rows.merge(seen);
    StoreModel::Rows backward;
    limit = Chance(50) ? 1000 : 1 + static_cast<uint32_t>(Draw(7));
    whole = co_await ScanPages(TableLowerBound(*id), TableUpperBound(*id), Direction::kBackward, limit,
                               &backward);
    if (!whole) co_return false;
    for (const auto& [key, row] : backward) {
      auto other = rows.find(key);
      if (other == rows.end() || other->second.version != row.version ||
          other->second.content != row.content) {
        Violation("scans of both directions differ at " + world_.model.DescribeKey(key));
      }
    }
    size_t forward_count = 0;
    for (const auto& [key, row] : rows) forward_count += key.starts_with(TableLowerBound(*id)) ? 1 : 0;
    if (forward_count != backward.size()) Violation("a backward scan finds another number of rows");
  }
  co_return co_await GetEach(rows);
}

void StoreLife::AdoptShards() {
  AdoptOwners();
  if (world_.shards != store_->shard_count()) {
    world_.model.Resharded();
    ++world_.counts.layouts;
  }
  world_.shards = store_->shard_count();
}

Task<bool> StoreLife::GetEach(const StoreModel::Rows& rows) {
  for (const std::string& key : world_.model.Keys()) {
    std::string content;
    Result<Shard::ReadAnswer> read = co_await store_->Get(key, &content);
    if (crashed() || (faulty_ && !read.ok())) co_return false;
    auto row = rows.find(key);
    bool found = read.ok() && read->state == Shard::ReadState::kFound;
    if (!read.ok() || read->state == Shard::ReadState::kInDoubt || found != (row != rows.end()) ||
        (found && (read->version != row->second.version || content != row->second.content))) {
      Violation("get and scan differ at " + world_.model.DescribeKey(key) + ": get says " +
                (!read.ok() ? read.status().ToString()
                 : found    ? std::to_string(read->version.value)
                            : "absent"));
      co_return false;
    }
  }
  co_return true;
}

// A scan by pages; while clients work each page is told to the model. False when it ended early.
Task<bool> StoreLife::ScanPages(std::string lower, std::string upper, Direction direction, uint32_t limit,
                                StoreModel::Rows* rows) {
  bool forward = direction == Direction::kForward;
  TableId table(LoadBe32(lower.data()));
  while (true) {
    ScanRequest request;
    request.lower = lower;
    request.upper = upper;
    request.direction = direction;
    request.limit = limit;
    std::vector<std::pair<std::string, StoreModel::Row>> found;
    PageCollector sink(&found);
    uint64_t begun = world_.model.Now();
    ++world_.counts.pages;
    Result<ScanAnswer> answer = co_await store_->Scan(request, &sink);
    if (crashed()) {
      if (compared_) world_.KeepScan(lower, upper, direction);
      co_return false;
    }
    if (!answer.ok()) {
      bool live = false;
      for (size_t i = 0; i < StoreWorld::kTables; ++i) live = live || Live(i, table);
      if (!faulty_ && !(answer.code() == Code::kNotFound && !live))
        Violation("scan: " + answer.status().ToString());
      if (compared_) world_.KeepScan(lower, upper, direction);
      co_return false;
    }
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string& key = found[i].first;
      bool ordered = i == 0 || (forward ? found[i - 1].first < key : key < found[i - 1].first);
      if (!ordered || key < lower || key >= upper) Violation("scan: a row out of order or bounds");
      if (!rows->emplace(key, found[i].second).second) Violation("scan: a row twice");
    }
    if (found.size() > limit) Violation("scan: more rows than asked for");
    std::string from = !answer->done && !forward ? answer->next_key : lower;
    std::string to = !answer->done && forward ? answer->next_key : upper;
    if (compared_) TellPage(from, to, found, begun);
    if (answer->done) co_return true;
    (forward ? lower : upper) = answer->next_key;
    if (found.empty() && from >= to && !faulty_) {
      Violation("scan: a page that makes no progress");
      co_return false;
    }
  }
}

void StoreLife::TellPage(const std::string& from, const std::string& to,
                         const std::vector<std::pair<std::string, StoreModel::Row>>& found, uint64_t begun) {
  StoreModel::Rows rows(found.begin(), found.end());
  world_.model.SeenPage(from, to, rows, begun);
}

Task<bool> StoreLife::ReadTable(TableId table, StoreModel::Rows* rows) {
  Direction direction = Chance(50) ? Direction::kForward : Direction::kBackward;
  uint32_t limit = Chance(50) ? 1000 : 1 + static_cast<uint32_t>(Draw(7));
  bool whole = co_await ScanPages(TableLowerBound(table), TableUpperBound(table), direction, limit, rows);
  co_return whole;
}

Task<void> StoreLife::CheckStructure() {
  Result<Store::VerifyResult> verified = co_await store_->Verify(nullptr);
  if (crashed()) co_return;
  if (!verified.ok()) {
    Violation("verify: " + verified.status().ToString());
    co_return;
  }
  for (const std::string& damage : verified->damages) Violation("verify: " + damage);
  // Until the jobs that recovery started are done.
  uint64_t before = UINT64_MAX;
  for (int i = 0; i < 120 && !crashed(); ++i) {
    uint64_t now = 0;
    for (const ShardStatistics& shard : store_->Statistics())
      now += shard.flushes + shard.compactions + shard.compactions_given_up;
    if (now == before) {
      CheckLeftovers();
      co_return;
    }
    before = now;
    co_await SleepFor(1'000'000'000);
  }
  Violation("compactions do not end although nobody writes");
}

// What nothing refers to is gone (F37), once the jobs that recovery started are done.
void StoreLife::CheckLeftovers() {
  uint64_t referenced = 0;
  for (const ShardStatistics& shard : store_->Statistics()) {
    for (const ShardStatistics::Level& level : shard.levels) referenced += level.files;
  }
  std::vector<std::string> there = runtime_.disk().ListFiles(kObjectDirectory);
  if (there.size() <= referenced) return;
  std::string names;
  for (const std::string& name : there) names += " " + name;
  Violation(std::to_string(there.size()) + " objects are there, " + std::to_string(referenced) +
            " referred to (F37), in life " + std::to_string(store_->CatalogCopy().incarnation) + ":" + names);
}

}  // namespace partita
