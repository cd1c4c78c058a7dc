#include "api/heat.h"

#include <algorithm>

#include "api/database_impl.h"
#include "api/names.h"
#include "engine/base/clock.h"
#include "engine/base/coding.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"

// Heat, from the engine's keys to names of tables and partitions.

namespace partita {

namespace {

constexpr uint32_t kColumnsMax = 2'048;

// What keys are called.
class KeyNames {
 public:
  explicit KeyNames(const Database::Impl& impl) : impl_(impl), catalog_(impl.store->CatalogCopy()) {}

  // Of a prefix of user keys that may end anywhere.
  HeatBucket Name(std::string_view prefix) const {
    if (prefix.empty()) return {};
    std::string padded(prefix);
    padded.resize(std::max(padded.size(), kTableIdSize));
    const TableId id(LoadBe32(padded.data()));
    const TableDescriptor* table = catalog_.FindTable(id);
    std::string key = padded.substr(kTableIdSize);
    if (!key.empty() && key.back() == '\0') key.pop_back();
    HeatBucket bucket;
    bucket.table = NameOf(table, id);
    const bool raw = table != nullptr && table->raw;
    // Cut within a character it is none.
    while (!raw && !IsValidOrderedText(key)) key.pop_back();
    bucket.partition_key = raw ? key : Utf8FromOrdered(key);
    return bucket;
  }

 private:
  std::string NameOf(const TableDescriptor* table, TableId id) const {
    return table == nullptr ? "table " + std::to_string(id.value) : NameForAny(impl_, *table);
  }

  const Database::Impl& impl_;
  const Catalog catalog_;
};

Status CheckBounds(const HeatWindow& window) {
  const auto check = [](const char* name, uint32_t value, uint32_t most) {
    if (value >= 1 && value <= most) return Status();
    return Status::InvalidArgument(std::string(name) + " must be 1 to " + std::to_string(most) + ", and is " +
                                   std::to_string(value));
  };
  PARTITA_TRY(check("seconds", window.seconds, kHeatSecondsMax));
  PARTITA_TRY(check("columns", window.columns_max, kColumnsMax));
  if (static_cast<size_t>(window.metric) >= kHeatMetrics) {
    return Status::InvalidArgument("metric is " + std::to_string(static_cast<int>(window.metric)) +
                                   ", which is none");
  }
  return check("buckets", window.buckets_max, HeatAxis::kBucketsMax);
}

}  // namespace

std::vector<HotPartition> Database::HotPartitions(HeatMetric metric, uint32_t count) const {
  if (!impl_->is_usable() || static_cast<size_t>(metric) >= kHeatMetrics) return {};
  Store& store = *impl_->store;
  store.CollectLoad();
  const KeyNames names(*impl_);
  std::vector<HotPartition> hot;
  for (const auto& found : store.hot_partitions().Top(metric, count, impl_->runtime->clock().RecentNanos())) {
    HeatBucket name = names.Name(found.prefix);
    const bool is_cut = found.prefix.empty() || found.prefix.back() != '\0';
    hot.push_back(
        {std::move(name.table), std::move(name.partition_key), is_cut, found.per_second, found.above});
  }
  return hot;
}

HeatValues Database::LoadPerSecond() const {
  if (!impl_->is_usable()) return {};
  impl_->store->CollectLoad();
  return impl_->store->hot_partitions().TotalPerSecond(impl_->runtime->clock().RecentNanos());
}

Result<HeatPicture> Database::Heat(const HeatWindow& window) const {
  PARTITA_TRY(impl_->CheckUse());
  PARTITA_TRY(CheckBounds(window));
  Store& store = *impl_->store;
  HeatHistory::Window asked{.seconds = window.seconds,
                            .columns_max = window.columns_max,
                            .buckets_max = window.buckets_max,
                            .lower = {},
                            .upper = {},
                            .even_by = window.metric};
  if (!window.table.empty()) {
    PARTITA_ASSIGN(const TableDescriptor table, FindTableOfAny(*impl_, window.table));
    asked.lower = TableLowerBound(table.id);
    asked.upper = TableUpperBound(table.id);
  }
  store.CollectLoad();
  Clock& clock = impl_->runtime->clock();
  const uint64_t now_ns = clock.RecentNanos();
  const HeatHistory::Picture found = store.heat_history().Read(asked, now_ns);
  const KeyNames names(*impl_);
  HeatPicture picture;
  picture.columns = static_cast<uint32_t>(found.columns);
  picture.column_seconds = static_cast<uint32_t>(found.column_ns / 1'000'000'000);
  picture.begin_ticks = clock.WallTicks() - (now_ns - std::min(now_ns, found.begin_ns)) / kNanosPerTick;
  for (size_t bucket = 0; bucket < found.axis.size(); ++bucket) {
    const std::string& bound = found.axis.bound(bucket);
    // The first one holds what lies below, which the window leaves out.
    picture.buckets.push_back(names.Name(bound < asked.lower ? asked.lower : bound));
  }
  picture.cells = found.cells;
  for (HeatValues& cell : picture.cells) {
    for (double& value : cell) value /= picture.column_seconds;
  }
  return picture;
}

}  // namespace partita
