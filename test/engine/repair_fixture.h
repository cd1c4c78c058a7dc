#pragma once
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/io/sim_runtime.h"
#include "engine/repair.h"
#include "engine/store.h"
#include "wal/segment_format.h"

// A store on a simulated disk to be damaged, and what must hold of it after a repair.
namespace partita {

inline constexpr uint32_t kShards = 2;

inline StoreOptions SmallStore() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = kShards;
  options.memtable_data_bytes = 32u << 10;
  options.table_file_bytes = 64u << 10;
  options.log_segment_bytes = 1u << 20;
  options.log_tail_bytes = 64u << 10;
  options.lock_wait_ns = 0;
  return options;
}

struct Row {
  Version version;
  std::optional<std::string> content;  // Nothing: deleted.
};
using RowsByKey = std::map<std::string, Row>;  // By user key, the last state of each.

inline std::map<std::string, std::string> AllFiles(const SimDisk& disk) {
  std::map<std::string, std::string> files;
  for (const std::string& path : disk.ListFiles()) files[path] = *disk.ReadFile(path);
  return files;
}

inline bool MayBeLost(const RepairReport& report, const std::string& key, Version version) {
  for (const RepairDamage& damage : report.damages) {
    for (const RepairLostRange& range : damage.lost) {
      const bool within = key >= range.lower && (range.upper.empty() || key < range.upper);
      if (within && version.value > range.after_ticks) return true;
    }
  }
  return false;
}

inline size_t LostRanges(const RepairReport& report) {
  size_t count = 0;
  for (const RepairDamage& damage : report.damages) count += damage.lost.size();
  return count;
}

class RepairTest : public testing::Test {
 protected:
  void SetUp() override { Fill(); }

  SimOptions NextLife() {
    ++life_;
    return {
        .seed = life_, .shards = kShards, .wall_ticks_start = 133'800'000'000'000'000 + life_ * 600'000'000};
  }

  // Two shards with tables on several levels, what was deleted, and a log that no table has.
  void Fill() {
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    for (const char* name : {"rows", "others"}) {
      Store::TableSpec spec;
      spec.account = "default";
      spec.name = name;
      spec.raw = true;
      if (std::string(name) == "rows") spec.split_partitions = {"p1"};
      ASSERT_TRUE(runtime.RunToEnd(store.CreateTable(std::move(spec))).ok());
    }
    for (int i = 0; i < 700; ++i) WriteRow(runtime, store, i);
    ASSERT_TRUE(runtime.RunToEnd(store.CompactAll()).ok());
    for (int i = 700; i < 1500; ++i) WriteRow(runtime, store, i);
    ASSERT_TRUE(runtime.RunToEnd(store.FlushMemtables()).ok());
    for (int i = 1500; i < 1560; ++i) WriteRow(runtime, store, i);
    runtime.AdvanceTime(5'000'000'000);
    ASSERT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }

  void WriteRow(SimRuntime& runtime, Store& store, int i,
                DurabilityLevel durability = DurabilityLevel::kPower) {
    const uint32_t table = i % 5 == 0 ? 2 : 1;
    const std::string key =
        EncodeUserKey(TableId(table), "p" + std::to_string(i % 2), "r" + std::to_string(i * 7919 % 500));
    const std::string content = std::to_string(i) + std::string(100, 'x');
    WriteOp op;
    op.kind = i % 11 == 0 ? WriteKind::kDelete : WriteKind::kPut;
    op.user_key = key;
    if (op.kind == WriteKind::kPut) op.content = content;
    WriteRequest request;
    request.table = TableId(table);
    request.ops = std::span<const WriteOp>(&op, 1);
    request.durability = durability;
    const WriteOutcome outcome = runtime.RunToEnd(store.Write(request));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    rows_[key] = {outcome.version, op.kind == WriteKind::kPut ? std::optional(content) : std::nullopt};
  }

  // Moves p1 of the second table with what its shard had not flushed, and writes to it there. What the new
  // owner flushes meanwhile is newer than some of that, and at last newer than all: then it has compacted it,
  // too.
  ShardId MoveSecondPartition(int writes_behind) {
    const std::string moved = EncodeUserKey(TableId(2), "p1", "");
    SimRuntime runtime(NextLife(), *disk_);
    auto opened = runtime.RunToEnd(Store::Open(runtime, SmallStore()));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    if (!opened.ok()) return ShardId();
    Store& store = **opened;
    if (store.CatalogCopy().FindRange(moved)->lower != moved) {
      EXPECT_TRUE(runtime.RunToEnd(store.SplitRange(moved)).ok());
    }
    const ShardId to(1 - store.CatalogCopy().FindRange(moved)->owner.value);
    int at = static_cast<int>(life_) * 10'000;
    for (int i = 5; i < 65; i += 10) WriteRow(runtime, store, at + i);
    for (int i = 1; i < 5; ++i) WriteRow(runtime, store, at + i);  // To either shard.
    EXPECT_TRUE(runtime.RunToEnd(store.MoveRange(moved, to)).ok());
    at += 500;  // The same keys.
    for (int i = 5; i < 45 && writes_behind >= 0; i += 10) WriteRow(runtime, store, at + i);
    for (int i = 0; i < writes_behind; ++i) {
      const std::string key = EncodeUserKey(TableId(1), "p" + std::to_string(i % 2), "");
      if (i % 5 != 0 && store.CatalogCopy().FindRange(key)->owner == to) WriteRow(runtime, store, at + i);
    }
    runtime.AdvanceTime(5'000'000'000);
    EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
    return to;
  }

  Result<RepairReport> Run(SimRuntime& runtime, bool apply) {
    RepairWorld world{.files = runtime.files(), .clock = runtime.clock(), .random = 7, .account = "default"};
    RepairOptions options;
    options.apply = apply;
    return runtime.RunToEnd(RepairStore(std::move(world), options));
  }

  // Lists, and sees that this changed nothing.
  RepairReport List() {
    const auto before = AllFiles(*disk_);
    SimRuntime runtime(NextLife(), *disk_);
    Result<RepairReport> report = Run(runtime, /*apply=*/false);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(AllFiles(*disk_), before);
    return report.ok() ? *report : RepairReport();
  }

  // Lists, applies, and holds the store that comes of it against what was listed.
  RepairReport Repair() {
    const RepairReport listed = List();
    const auto before = AllFiles(*disk_);
    RepairReport applied;
    {
      SimRuntime runtime(NextLife(), *disk_);
      Result<RepairReport> report = Run(runtime, /*apply=*/true);
      EXPECT_TRUE(report.ok()) << report.status().ToString();
      if (!report.ok()) return listed;
      applied = *report;
      repaired_at_ = runtime.clock().WallTicks();
    }
    EXPECT_TRUE(applied.applied);
    EXPECT_EQ(applied.damages.size(), listed.damages.size());
    EXPECT_EQ(LostRanges(applied), LostRanges(listed));
    ExpectSoundStore(listed, /*names_kept=*/true);
    ExpectOldBytesKept(before, applied);
    return listed;
  }

  // The same, where tables lose their names.
  RepairReport RepairWithoutCatalog() {
    const RepairReport listed = List();
    {
      SimRuntime runtime(NextLife(), *disk_);
      const Result<RepairReport> applied = Run(runtime, /*apply=*/true);
      EXPECT_TRUE(applied.ok()) << applied.status().ToString();
      repaired_at_ = runtime.clock().WallTicks();
    }
    ExpectSoundStore(listed, /*names_kept=*/false);
    return listed;
  }

  void ExpectSoundStore(const RepairReport& listed, bool names_kept) {
    SimOptions life = NextLife();
    life.wall_ticks_start -= 3600 * kTicksPerSecond;  // A clock that was set back meanwhile.
    SimRuntime runtime(life, *disk_);
    StoreOptions options = SmallStore();
    options.create_if_missing = false;
    auto opened = runtime.RunToEnd(Store::Open(runtime, options));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    Store& store = **opened;
    auto verified = runtime.RunToEnd(store.Verify(nullptr));
    ASSERT_TRUE(verified.ok());
    EXPECT_THAT(verified->damages, testing::IsEmpty());
    if (names_kept) EXPECT_TRUE(store.FindTable("default", "rows").ok());
    ExpectRows(runtime, store, listed);
    // Nothing that was ever given is given again, nor anything that may have been (F17, F18).
    const Catalog catalog = store.CatalogCopy();
    ASSERT_FALSE(catalog.tables.empty());
    for (const TablePtr& table : catalog.tables) {
      const std::string key = EncodeUserKey(table->id, "p0", "new");
      WriteOp op;
      op.user_key = key;
      op.content = "new";
      WriteRequest request;
      request.table = table->id;
      request.ops = std::span<const WriteOp>(&op, 1);
      const WriteOutcome outcome = runtime.RunToEnd(store.Write(request));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      for (const auto& [old_key, row] : rows_) EXPECT_GT(outcome.version, row.version);
      EXPECT_GT(outcome.version.value, repaired_at_);
    }
    EXPECT_TRUE(runtime.RunToEnd(store.CompactAll()).ok());
    ExpectRows(runtime, store, listed);
    EXPECT_TRUE(runtime.RunToEnd(store.Close()).ok());
  }

  void ExpectRows(SimRuntime& runtime, Store& store, const RepairReport& listed) {
    size_t kept = 0;
    for (const auto& [key, row] : rows_) {
      if (MayBeLost(listed, key, row.version)) continue;
      ++kept;
      std::string content;
      auto read = runtime.RunToEnd(store.Get(key, &content));
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      const bool found = read->state == Shard::ReadState::kFound;
      ASSERT_EQ(found, row.content.has_value()) << "key " << key << " of version " << row.version.value;
      if (!found) continue;
      ASSERT_EQ(content, *row.content);
      ASSERT_EQ(read->version, row.version);
    }
    kept_ = kept;
    // A scan sees the same, in order, each once.
    for (const TablePtr& table : store.CatalogCopy().tables) {
      ScanRequest request;
      request.lower = TableLowerBound(table->id);
      request.upper = TableUpperBound(table->id);
      request.limit = 100'000;
      request.bytes_limit = UINT64_MAX;
      auto scanned = runtime.RunToEnd(store.Scan(request, nullptr));
      ASSERT_TRUE(scanned.ok()) << scanned.status().ToString();
      EXPECT_TRUE(scanned->done);
    }
  }

  // Each file that was there is there, or lies in the side directory with the same bytes.
  void ExpectOldBytesKept(const std::map<std::string, std::string>& before, const RepairReport& applied) {
    ASSERT_THAT(applied.kept_in, testing::HasSubstr("damaged-"));
    const auto after = AllFiles(*disk_);
    EXPECT_TRUE(after.contains(applied.kept_in + "/FOUND.txt"));
    for (const auto& [path, bytes] : before) {
      const bool old = path.starts_with("log-") || path.starts_with("meta/") || path.starts_with("tables/");
      if (!old || path.find(".new-") != std::string::npos) continue;
      const auto moved = after.find(applied.kept_in + "/" + path);
      if (moved != after.end()) {
        EXPECT_TRUE(moved->second == bytes) << path;
        continue;
      }
      // Sound tables stay in use until a compaction lets them go: that is no act of the repair.
      EXPECT_TRUE(path.starts_with("tables/")) << path << " is gone";
      for (const RepairDamage& damage : applied.damages) EXPECT_NE(damage.file, path);
    }
  }

  // The files of a shard's log in use, by rising segment.
  std::vector<std::string> Segments(uint32_t shard) const {
    std::map<uint64_t, std::string> found;
    for (const std::string& path : disk_->ListFiles("log-1-" + std::to_string(shard) + "/")) {
      Result<std::string> content = disk_->ReadFile(path);
      if (!path.ends_with(".log") || content->size() < kSegmentHeaderSize) continue;
      auto header = DecodeSegmentHeader(std::string_view(*content).substr(0, kSegmentHeaderSize));
      if (header.ok() && header->header.in_use()) found[header->header.segment.value] = path;
    }
    std::vector<std::string> paths;
    for (const auto& [id, path] : found) paths.push_back(path);
    return paths;
  }

  // Where the last frame of a segment begins: of its present life, for those of an older one lie behind.
  uint64_t LastFrame(const std::string& path) const {
    const std::string content = *disk_->ReadFile(path);
    const std::string segment = content.substr(32, 8);
    uint64_t last = 0;
    for (uint64_t at = kSegmentHeaderSize; at < content.size(); at += kPageSize) {
      if (content.compare(at + 8, 4, "PTLF") == 0 && content.compare(at + 32, 8, segment) == 0) last = at;
    }
    return last;
  }

  std::vector<std::string> TablesBySize() const {
    std::vector<std::string> tables = disk_->ListFiles("tables/");
    std::sort(tables.begin(), tables.end(), [this](const std::string& a, const std::string& b) {
      return disk_->ReadFile(a)->size() > disk_->ReadFile(b)->size();
    });
    return tables;
  }

  uint64_t life_ = 1;
  std::unique_ptr<SimDisk> disk_ = std::make_unique<SimDisk>(11);
  RowsByKey rows_;
  size_t kept_ = 0;
  uint64_t repaired_at_ = 0;
};

}  // namespace partita
