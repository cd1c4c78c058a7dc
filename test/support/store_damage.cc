#include "engine/base/user_key.h"
#include "test/support/row_collector.h"
#include "test/support/store_workload.h"

// Reading a store whose files may be damaged: what is answered is right, and what cannot be is an error.

namespace partita {

Task<void> StoreLife::ReadDamaged() {
  if (!SettleTables()) co_return;
  StoreModel::Rows rows;
  bool done = co_await GetDamaged(&rows);
  for (size_t i = 0; done && i < StoreWorld::kTables; ++i) {
    if (world_.tables[i].id) done = co_await ScanDamaged(*world_.tables[i].id, rows);
  }
  if (!done) co_return;
  Result<ScrubReport> scrubbed = co_await store_->Scrub(ScrubOptions());
  if (!scrubbed.ok() && store_->open_report().damaged_shards.empty())
    Violation("scrub: " + scrubbed.status().ToString());
  if (scrubbed.ok()) plan_.met->scrubbed = scrubbed->damages;
  if (world_.move_in_doubt) AdoptOwners();
  StoreModel::Losses losses = plan_.losses;
  losses.unread = plan_.met->failed_keys;
  world_.model.Forgive(std::move(losses));
  world_.model.Recovered(rows);
  plan_.met->judged = true;
}

Task<bool> StoreLife::GetDamaged(StoreModel::Rows* rows) {
  for (const std::string& key : world_.model.Keys()) {
    std::string content;
    Result<Shard::ReadAnswer> read = co_await store_->Get(key, &content);
    if (!read.ok() && read.code() != Code::kCorruption) {
      Violation("get of " + world_.model.DescribeKey(key) + ": " + read.status().ToString());
      co_return false;
    }
    if (!read.ok()) plan_.met->failed_keys.insert(key);
    if (read.ok() && read->state == Shard::ReadState::kFound) (*rows)[key] = {read->version, content};
  }
  co_return true;
}

// A scan gives what gets give, and ends in front of damage, not behind it (F43, F44).
Task<bool> StoreLife::ScanDamaged(TableId table, const StoreModel::Rows& rows) {
  ScanRequest request;
  request.lower = TableLowerBound(table);
  request.upper = TableUpperBound(table);
  request.limit = 1 + static_cast<uint32_t>(Draw(30));
  StoreModel::Rows seen;
  std::string reached = request.lower;
  for (bool done = false; !done;) {
    RowCollector sink(&seen);
    Result<ScanAnswer> answer = co_await store_->Scan(request, &sink);
    if (!answer.ok() && answer.code() == Code::kCorruption) break;
    if (!answer.ok()) {
      Violation("scan: " + answer.status().ToString());
      co_return false;
    }
    done = answer->done;
    reached = request.lower = done ? request.upper : answer->next_key;
  }
  for (const std::string& key : world_.model.Keys()) {
    if (key < TableLowerBound(table) || key >= reached) continue;
    const auto row = rows.find(key);
    const auto scanned = seen.find(key);
    const bool same = row == rows.end()
                          ? scanned == seen.end()
                          : scanned != seen.end() && scanned->second.version == row->second.version &&
                                scanned->second.content == row->second.content;
    if (plan_.met->failed_keys.contains(key)) {
      Violation("a scan passed over what a get calls damaged: " + world_.model.DescribeKey(key) + " (F43)");
    } else if (!same) {
      Violation("get and scan of a damaged store differ at " + world_.model.DescribeKey(key));
    }
  }
  co_return true;
}

}  // namespace partita
