#include "engine/base/user_key.h"
#include "test/support/store_workload.h"

namespace partita {

// What the store says of who owns what.
void StoreLife::AdoptOwners() {
  const Catalog catalog = store_->CatalogCopy();
  for (const std::string& key : world_.model.Keys()) {
    const RangeDescriptor* range = catalog.FindRange(key);
    if (range != nullptr) world_.model.SetShard(key, range->owner.value);
  }
}

Task<void> StoreLife::ChangeRanges() {
  const size_t index = Draw(StoreWorld::kTables);
  const std::string name = StoreWorld::PartitionName(1 + Draw(StoreWorld::kPartitions - 1));
  const uint64_t what = Draw(100);
  const StoreWorld::Table& table = world_.tables[index];
  if (!table.id || table.pending != StoreWorld::Table::Pending::kNone) co_return;
  const std::string key = EncodeUserKey(*table.id, name, "");
  const std::string place = table.name + "/" + name;
  if (what >= 50 || index >= StoreWorld::kTablesSplit) co_return co_await MoveRange(key, place);

  Status done;
  bool expected = false;  // Of an error.
  if (what < 30) {
    done = co_await store_->SplitRange(key);
    expected = done.code() == Code::kAlreadyExists;
    if (done.ok()) ++world_.counts.splits;
  } else {
    done = co_await store_->MergeRanges(key);
    expected = done.code() == Code::kInvalidArgument || done.code() == Code::kPreconditionFailed;
    if (done.ok()) ++world_.counts.merges;
  }
  if (options_.trace)
    Tell("keeper: " + std::string(what < 30 ? "split " : "merge ") + place + ": " + done.ToString());
  if (!done.ok() && !expected && !faulty_ && !crashed()) Violation("change of ranges: " + done.ToString());
}

Task<void> StoreLife::MoveRange(std::string key, std::string name) {
  const ShardId to(static_cast<uint32_t>(Draw(store_->shard_count())));
  if (options_.trace) Tell("keeper: move " + name + " to shard " + std::to_string(to.value));
  const Catalog catalog = store_->CatalogCopy();
  const RangeDescriptor* range = catalog.FindRange(key);
  if (range == nullptr) co_return;  // What is known of the table is in doubt.
  world_.model.SetAdrift(range->lower, range->upper);
  const bool in_doubt_before = world_.move_in_doubt;
  moving_ = world_.move_in_doubt = true;
  const Result<Store::MoveReport> moved = co_await store_->MoveRange(std::move(key), to);
  if (options_.trace) Tell("keeper: move " + name + ": " + moved.status().ToString());
  if (crashed()) co_return;
  moving_ = false;
  if (moved.code() == Code::kUnknown) co_return;
  // While an earlier one is in doubt, so are all keys that it concerned.
  world_.move_in_doubt = in_doubt_before && !moved.ok();
  if (!world_.move_in_doubt) AdoptOwners();
  if (moved.ok() && moved->from != moved->to) ++world_.counts.moves;
  // What is written meanwhile may leave no memory for what the range brings along.
  const bool no_memory =
      moved.code() == Code::kBusy && moved.status().message().find("no memtable memory") != std::string::npos;
  if (!moved.ok() && !no_memory && !faulty_) Violation("move: " + moved.status().ToString());
}

}  // namespace partita
