#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "engine/commit_log.h"
#include "engine/io/sim_runtime.h"
#include "engine/page_scan.h"
#include "engine/rowless_stretches.h"
#include "test/sstable/table_fixture.h"

// covers: F14, F15, F43, F44 for scans, whatever lies in which level and however pages are cut: PageScan over
// views made by hand, beside a model that sorts all entries.

namespace partita {
namespace {

// The scan asks the commit log for doubt only, which nobody raises here: nothing of this is called.
class UnusedLog : public LogStore {
 public:
  Task<Result<LogRecovery>> Recover(LogPosition, LogReplaySink) override { co_return Unused(); }
  Task<Status> Append(std::span<const LogRecord>) override { co_return Unused(); }
  Task<Status> Flush() override { co_return Unused(); }
  Task<Status> AppendAndFlush(std::span<const LogRecord>) override { co_return Unused(); }
  Status AppendTail(std::span<const LogRecord>) override { return Unused(); }
  Task<Status> MoveToNewSegment(std::span<const LogRecord>) override { co_return Unused(); }
  void LeaseCeiling(Version) override {}
  Version durable_ceiling() const override { return Version(0); }
  Task<Status> Trim(LogPosition) override { co_return Unused(); }
  Task<Status> Seal(bool) override { co_return Unused(); }
  LogPosition durable_end() const override { return LogPosition(0); }
  LogPosition kernel_end() const override { return LogPosition(0); }
  uint64_t live_bytes() const override { return 0; }
  uint64_t newest_segment() const override { return 0; }
  bool needs_prepare() const override { return false; }
  Task<Status> PrepareNext() override { co_return Unused(); }
  Task<Status> Close() override { co_return Unused(); }

 private:
  static Status Unused() { return Status::Unsupported("not in this test"); }
};

class TickingClock : public Clock {
 public:
  uint64_t WallTicks() override { return 0; }
  uint64_t MonotonicNanos() override { return ++now_; }

 private:
  uint64_t now_ = 1'000'000;
};

struct ModelRow {
  std::string key;
  Version version;
  friend bool operator==(const ModelRow&, const ModelRow&) = default;
  friend std::ostream& operator<<(std::ostream& out, const ModelRow& row) {
    return out << row.key.substr(kTableIdSize) << " @" << row.version.value;
  }
};

std::string ContentOf(std::string_view key, uint64_t version) {
  std::string content = std::string(key) + " @" + std::to_string(version) + " ";
  content.resize(content.size() + version * 37 % 160, 'x');
  return content;
}

// Which rows a filter wants, by their content; the same in the model and in the sink.
struct Choice {
  uint32_t modulus = 1;
  bool Wants(std::string_view content) const { return Crc(content) % modulus == 0; }
  static uint64_t Crc(std::string_view content) { return std::hash<std::string_view>()(content) >> 7; }
};

class Sink : public RowSink {
 public:
  Sink(Choice choice, bool early, uint32_t stop_after)
      : choice_(choice), early_(early), stop_after_(stop_after) {}

  uint64_t Wanted(std::span<const KeylessRow> rows) override {
    EXPECT_LE(rows.size(), kRowsAtOnceMax);
    if (!early_) return UINT64_MAX;
    uint64_t wanted = 0;
    for (size_t i = 0; i < rows.size(); ++i) wanted |= uint64_t{choice_.Wants(rows[i].content)} << i;
    return wanted;
  }
  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    EXPECT_EQ(content, ContentOf(user_key, version.value));
    EXPECT_TRUE(!early_ || choice_.Wants(content));
    if (!choice_.Wants(content)) return Verdict::kPassed;
    if (rows.size() >= stop_after_) return Verdict::kStop;
    rows.push_back({std::string(user_key), version});
    return Verdict::kTaken;
  }
  std::vector<ModelRow> rows;

 private:
  const Choice choice_;
  const bool early_;
  const uint32_t stop_after_;
};

// A view with files on levels 0 to 2, frozen memtables and an active one, and all its entries in one map.
// Some files show a part of their table.
class OracleWorld {
 public:
  explicit OracleWorld(uint64_t seed) : OracleWorld(seed, nullptr) {
    for (size_t i = 0; i < 30 + Below(150); ++i) keys_.insert(RandomKey());
    auto levels = std::make_shared<const LevelSet>();
    const bool is_queue = Chance(40);  // On one level, and deleted in long stretches.
    for (const uint32_t level : {2u, 1u}) {
      if (is_queue ? level == 2u : Below(5) > 0) levels = AddLevel(*levels, level);
    }
    for (size_t i = is_queue ? 0 : Below(4); i > 0; --i) levels = AddFile(*levels, 0, MakeEntries(60));
    tables_max_ = Version(next_version_ - 1);
    view_.ranges[0].levels = levels;
    for (size_t i = Below(3); i > 0; --i) {
      view_.frozen.insert(view_.frozen.begin(), {.table = MakeMemtable(Below(60))});
    }
    if (is_queue) {
      memtables_.emplace_back(next_version_);
      view_.frozen.insert(view_.frozen.begin(), {.table = MemtableOf(DeleteStretch())});
    }
    view_.active = MakeMemtable(is_queue ? Below(5) : Below(3) * Below(60));
    for (size_t i = Below(4); i > 0; --i) LearnWhereNoRowsAre(Version(1 + Below(next_version_)));
  }

  // One of these alone: a file on each of levels 1 and 2, of which [lower, upper) is to be seen, and what
  // a memtable deletes of all.
  struct Given {
    std::vector<OwnedEntry> upper_level, lower_level;
    std::string lower, upper;        // Of the lower level's file.
    std::vector<OwnedEntry> beside;  // On its level, in another file.
    std::vector<OwnedEntry> deletes;
  };
  explicit OracleWorld(Given given) : OracleWorld(1, nullptr) {
    auto levels = std::make_shared<const LevelSet>();
    if (!given.upper_level.empty()) levels = AddFile(*levels, 1, std::move(given.upper_level));
    levels = AddFile(*levels, 2, std::move(given.lower_level), given.lower, given.upper);
    if (!given.beside.empty()) levels = AddFile(*levels, 2, std::move(given.beside));
    view_.ranges[0].levels = levels;
    next_version_ = 1000;
    view_.active = MemtableOf(std::move(given.deletes));
  }

  size_t Below(size_t n) { return random_() % n; }
  bool Chance(size_t percent) { return Below(100) < percent; }
  std::string RandomKey() {
    const std::string partition(1 + Below(3), static_cast<char>('a' + Below(2)));
    std::string row = std::to_string(Below(400));
    if (Chance(20)) row.append(Below(30), static_cast<char>('a' + Below(3)));
    return Key(partition, row);
  }

  // All entries of [lower, upper), newest first by key.
  using Versions = std::map<Version, EntryKind, std::greater<>>;
  const std::map<std::string, Versions>& entries() const { return entries_; }
  // How many of them a scan at `visible` walks: of a memtable's versions that it may show the newest alone.
  uint64_t WalkedOf(const Versions& versions, Version visible) const {
    uint64_t walked = 0;
    auto settled = memtables_.begin();  // None.
    for (const auto& [version, kind] : versions) {
      const auto memtable = std::upper_bound(memtables_.begin(), memtables_.end(), version);
      const bool may_settle = memtable != memtables_.begin() && version <= visible;
      if (may_settle && settled == memtable) continue;
      ++walked;
      if (may_settle) settled = memtable;
    }
    return walked;
  }
  Version last_version() const { return Version(next_version_ - 1); }
  Version tables_max() const { return tables_max_; }

  // Whether a scan at this version may leap over the key.
  bool MayBeLeaptOver(const std::string& key, Version visible) const {
    std::string bound = key;
    return rowless_.Leap(Direction::kForward, visible, &bound);
  }

  Result<ScanAnswer> Scan(const ScanRequest& request, Sink* sink, Version visible, bool doubt) {
    PageScan scan(request, sink,
                  {.view = view_,
                   .range = view_.ranges[0],
                   .log = log_,
                   .visible = visible,
                   .doubt = doubt,
                   .rowless = rowless_.size() > 0 ? &rowless_ : nullptr},
                  clock_);
    const Status status = RunBlocking(scan.Run());
    if (!status.ok()) return status;
    return scan.answer();
  }
  MemoryObjectStore& objects() { return objects_; }
  size_t file_count() const { return last_object_; }
  bool KnowsWhereNoRowsAre() const { return rowless_.size() > 0; }

 private:
  OracleWorld(uint64_t seed, std::nullptr_t)
      : random_(seed), pool_(16u << 20), runtime_({.seed = seed}, disk_) {
    view_.ranges.push_back({.lower = TableLowerBound(TableId(1)), .upper = TableUpperBound(TableId(1))});
  }

  // As a sweep that walked at `since`, and all puts that were decided later were noted.
  void LearnWhereNoRowsAre(Version since) {
    std::string lower;
    uint64_t keys = 0;
    const auto end_at = [&](std::string upper) {
      if (keys > 0 && Chance(80)) Learn({lower, std::move(upper)}, since, keys);
      keys = 0;
    };
    for (const auto& [key, versions] : entries_) {
      const auto newest = versions.lower_bound(since);
      const bool is_row = newest != versions.end() && newest->second == EntryKind::kPut;
      const bool is_put_later =
          std::any_of(versions.begin(), newest, [](const auto& v) { return v.second == EntryKind::kPut; });
      if (is_row || is_put_later) {
        end_at(key);
      } else if (++keys == 1) {
        lower = key;
      } else if (Chance(10)) {
        end_at(key + '\0');
      }
    }
    end_at(TableUpperBound(TableId(1)));
  }
  void Learn(RowlessStretches::Interval keys, Version since, uint64_t entries) {
    const auto around =
        rowless_.Watch(keys.lower, {TableLowerBound(TableId(1)), TableUpperBound(TableId(1))});
    if (!around) return;
    if (keys.upper <= around->upper) rowless_.Add(std::move(keys), since, entries);
    rowless_.EndWatch(entries);
  }

  std::vector<OwnedEntry> MakeEntries(size_t count) {
    std::vector<OwnedEntry> made;
    std::vector<std::string> keys(keys_.begin(), keys_.end());
    // Some begin or end where others have much.
    if (Chance(30)) keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(Below(keys.size())));
    if (Chance(30)) keys.resize(1 + Below(keys.size()));
    for (size_t i = 0; i < count; ++i) {
      // Runs of versions of one key, too.
      const std::string key = !made.empty() && Chance(30) ? made.back().user_key : keys[Below(keys.size())];
      const uint64_t version = next_version_++;
      made.push_back(Chance(20) ? Tombstone(key, version) : Put(key, version, ContentOf(key, version)));
      entries_[key][Version(version)] = made.back().kind;
    }
    std::sort(made.begin(), made.end(), InternalOrder);
    return made;
  }

  // Tombstones of neighbouring keys that there is something of, of all or nearly all.
  std::vector<OwnedEntry> DeleteStretch() {
    std::vector<OwnedEntry> made;
    auto at = entries_.lower_bound(RandomKey());
    const size_t left_out = Below(2) * 5;
    for (size_t left = 20 + Below(300); left > 0 && at != entries_.end(); --left, ++at) {
      if (Chance(left_out)) continue;
      const uint64_t version = next_version_++;
      made.push_back(Tombstone(at->first, version));
      at->second[Version(version)] = EntryKind::kTombstone;
    }
    return made;
  }

  // A file that may show a part of its table.
  std::shared_ptr<const LevelSet> AddClipped(const LevelSet& levels, uint32_t level,
                                             std::vector<OwnedEntry> entries) {
    if (!Chance(30)) return AddFile(levels, level, std::move(entries));
    const std::string lower = entries.front().user_key, upper = entries.back().user_key + '\0';
    for (const std::string& key : keys_) {
      const bool is_seen = key >= lower && key < upper;
      if (!is_seen && Chance(30)) entries.push_back(Put(key, 1, ContentOf(key, 1)));
    }
    std::sort(entries.begin(), entries.end(), InternalOrder);
    return AddFile(levels, level, std::move(entries), lower, upper);
  }
  std::shared_ptr<const LevelSet> AddFile(const LevelSet& levels, uint32_t level,
                                          std::vector<OwnedEntry> entries, std::string lower = "",
                                          std::string upper = "") {
    const ObjectId id(++last_object_);
    LevelEdit edit;
    edit.added.push_back({level, {}});
    FileRef& file = edit.added[0].file;
    file.lower = std::move(lower);
    file.upper = std::move(upper);
    Result<TableInfo> written = WriteTable(objects_, id, entries, {.block_size = kBlockSizeMin});
    EXPECT_TRUE(written.ok()) << written.status().ToString();
    file.info = *written;
    file.table = OpenTable(objects_, cache_, id).value();
    return levels.Apply(edit).value();
  }

  // Several files, cut between keys.
  std::shared_ptr<const LevelSet> AddLevel(const LevelSet& before, uint32_t level) {
    auto levels = std::make_shared<const LevelSet>(before);
    const std::vector<OwnedEntry> entries = MakeEntries(100 + Below(300));
    std::vector<OwnedEntry> part;
    for (const OwnedEntry& entry : entries) {
      if (part.size() > 50 && part.back().user_key != entry.user_key && Chance(10)) {
        levels = AddClipped(*levels, level, part);
        part.clear();
      }
      part.push_back(entry);
    }
    return AddClipped(*levels, level, part);
  }

  std::shared_ptr<Memtable> MakeMemtable(size_t count) {
    memtables_.emplace_back(next_version_);
    return MemtableOf(MakeEntries(count));
  }
  std::shared_ptr<Memtable> MemtableOf(std::vector<OwnedEntry> made) {
    auto memtable = std::make_shared<Memtable>(pool_);
    std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.version < b.version; });
    for (OwnedEntry& entry : made) {
      EXPECT_TRUE(memtable->Reserve(1));
      kept_.push_back(std::make_unique<OwnedEntry>(std::move(entry)));
      memtable->Insert(kept_.back()->view());
    }
    return memtable;
  }

  std::mt19937_64 random_;
  MemoryObjectStore objects_;
  BlockCache cache_{1u << 20};
  ChunkPool pool_;
  std::vector<std::unique_ptr<OwnedEntry>> kept_;
  UnusedLog store_;
  SimDisk disk_{1};
  SimRuntime runtime_;
  TickingClock clock_;
  CommitLog log_{store_, runtime_.shard_executor(ShardId(0)), clock_, kIoDeadlineNanos, 8u << 20};
  ReadView view_;
  std::set<std::string> keys_;
  std::map<std::string, Versions> entries_;
  std::vector<Version> memtables_;  // The first version that is, or would be, in each.
  uint64_t next_version_ = 1;
  uint64_t last_object_ = 0;
  Version tables_max_;
  RowlessStretches rowless_;
};

using Intervals = std::vector<ScanInterval>;

// What the scan is asked for, page after page.
struct Question {
  std::string lower, upper;
  Intervals only;  // Empty: all of [lower, upper).
  Direction direction = Direction::kForward;
  Version visible;
  bool doubt = false;
  Choice choice;

  bool Covers(const std::string& key) const {
    if (key < lower || key >= upper) return false;
    return only.empty() || std::any_of(only.begin(), only.end(),
                                       [&](const auto& i) { return key >= i.lower && key < i.upper; });
  }
};

struct Expectation {
  std::vector<ModelRow> rows;
  std::set<std::string> uncertain;  // Keys that no page may step over.
  uint64_t entries = 0;
};

Expectation ExpectationOf(const OracleWorld& world, const Question& question) {
  Expectation expected;
  for (const auto& [key, versions] : world.entries()) {
    if (!question.Covers(key)) continue;
    expected.entries += world.WalkedOf(versions, question.visible);
    if (question.doubt && versions.begin()->first > question.visible) {
      expected.uncertain.insert(key);
      continue;
    }
    const auto newest = versions.lower_bound(question.visible);
    if (newest == versions.end() || newest->second != EntryKind::kPut) continue;
    if (!question.choice.Wants(ContentOf(key, newest->first.value))) continue;
    expected.rows.push_back({key, newest->first});
  }
  if (question.direction == Direction::kBackward) std::reverse(expected.rows.begin(), expected.rows.end());
  return expected;
}

Intervals RandomIntervals(OracleWorld& world, bool with_points) {
  std::set<std::string> cuts;
  for (size_t i = 2 + world.Below(10); i > 0; --i) cuts.insert(world.RandomKey());
  Intervals intervals;
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    const auto next = std::next(cut);
    if (with_points && world.Chance(30)) {
      intervals.push_back({*cut, *cut + '\0'});
    } else if (next != cuts.end() && world.Chance(70)) {
      intervals.push_back({*cut, *next});
    }
  }
  return intervals;
}

Question RandomQuestion(OracleWorld& world) {
  Question question;
  question.lower = world.Chance(50) ? TableLowerBound(TableId(1)) : world.RandomKey();
  question.upper = world.Chance(50) ? TableUpperBound(TableId(1)) : world.RandomKey();
  if (question.upper < question.lower) std::swap(question.lower, question.upper);
  question.direction = world.Chance(50) ? Direction::kForward : Direction::kBackward;
  question.visible = Version(world.last_version().value - world.Below(world.last_version().value + 1));
  question.doubt = world.Chance(30);
  // Files hold what was visible once; only of memtables a point asks for doubt.
  if (question.doubt) question.visible = std::max(question.visible, world.tables_max());
  if (world.Chance(40)) question.only = RandomIntervals(world, /*with_points=*/true);
  if (question.only.empty()) question.only.clear();
  const uint32_t moduli[] = {1, 2, 10, 1000};
  question.choice.modulus = moduli[world.Below(4)];
  return question;
}

class Asker {
 public:
  Asker(OracleWorld& world, const Question& question)
      : world_(world), question_(question), expected_(ExpectationOf(world, question)) {
    request_.lower = question.lower;
    request_.upper = question.upper;
    request_.direction = question.direction;
    request_.only = question.only;
  }

  void Run() {
    for (int page = 0; page < 5000; ++page) {
      if (request_.lower >= request_.upper) break;
      if (!OnePage() || testing::Test::HasFailure()) break;
    }
    EXPECT_EQ(rows_, expected_.rows);
    // A tombstone in doubt where no row is may be leapt over: it changes no answer.
    for (const std::string& key : uncertain_) EXPECT_TRUE(expected_.uncertain.contains(key));
    for (const std::string& key : expected_.uncertain) {
      EXPECT_TRUE(uncertain_.contains(key) || world_.MayBeLeaptOver(key, question_.visible));
    }
  }

 private:
  bool forward() const { return question_.direction == Direction::kForward; }

  // False: that was the last one.
  bool OnePage() {
    const bool cut_anywhere = world_.Chance(60);
    const uint32_t slices[] = {1, 2, 7, kEntriesPerSlice, 1000};
    request_.entries_per_slice = slices[world_.Below(5)];
    request_.limit = cut_anywhere ? 1 + world_.Below(30) : UINT32_MAX;
    request_.bytes_limit = cut_anywhere && world_.Chance(30) ? world_.Below(5000) : UINT64_MAX;
    request_.deadline_ns = cut_anywhere && world_.Chance(30) ? 1 : 0;
    const uint32_t stop_after = cut_anywhere && world_.Chance(30) ? 1 + world_.Below(20) : UINT32_MAX;
    Sink sink(question_.choice, world_.Chance(70), stop_after);
    const bool first_and_whole = !cut_anywhere && rows_.empty() && request_.lower == question_.lower &&
                                 request_.upper == question_.upper && question_.only.empty();
    Result<ScanAnswer> answer = world_.Scan(request_, &sink, question_.visible, question_.doubt);
    if (!answer.ok()) {
      EXPECT_EQ(answer.code(), Code::kUnknown) << answer.status().ToString();
      EXPECT_TRUE(sink.rows.empty());
      return StepOverDoubt();
    }
    EXPECT_EQ(answer->rows, sink.rows.size());
    EXPECT_LE(answer->rows, request_.limit);
    if (first_and_whole && !question_.doubt) {
      EXPECT_TRUE(answer->done);
      const bool walks_all = !world_.KnowsWhereNoRowsAre() && answer->blocks.blocks_skipped == 0;
      EXPECT_TRUE(!walks_all || answer->scanned == expected_.entries)
          << answer->scanned << " entries instead of " << expected_.entries;
    }
    rows_.insert(rows_.end(), sink.rows.begin(), sink.rows.end());
    if (answer->done) return false;
    EXPECT_TRUE(forward() ? answer->next_key > request_.lower : answer->next_key < request_.upper);
    (forward() ? request_.lower : request_.upper) = answer->next_key;
    return true;
  }

  // The page had nothing to give in front of a key in doubt: it must be the next one of those.
  bool StepOverDoubt() {
    const auto next = forward() ? expected_.uncertain.lower_bound(request_.lower)
                                : expected_.uncertain.lower_bound(request_.upper);
    if (!forward() && next == expected_.uncertain.begin()) return Fail();
    if (forward() && next == expected_.uncertain.end()) return Fail();
    const std::string key = forward() ? *next : *std::prev(next);
    uncertain_.insert(key);
    if (forward()) {
      request_.lower = key + '\0';
    } else {
      request_.upper = key;
    }
    return true;
  }
  static bool Fail() {
    ADD_FAILURE() << "in doubt where nothing is";
    return false;
  }

  OracleWorld& world_;
  const Question& question_;
  const Expectation expected_;
  ScanRequest request_;
  std::vector<ModelRow> rows_;
  std::set<std::string> uncertain_;
};

TEST(ScanOracleTest, PagesJoinedAreTheRowsOfTheModelInBothDirections) {
  for (uint64_t round = 0; round < 300; ++round) {
    OracleWorld world(TestSeed() + round);
    for (int i = 0; i < 40; ++i) {
      const Question question = RandomQuestion(world);
      Asker(world, question).Run();
      ASSERT_FALSE(HasFailure()) << "world " << round << ", question " << i;
    }
  }
}

// How many rows there are in front of the damage: a page that steps over it says where it begins.
size_t RowsBeforeDamage(OracleWorld& world, ScanRequest request, const Question& question,
                        const Expectation& expected) {
  request.skip_damage = true;
  Sink around(question.choice, /*early=*/true, UINT32_MAX);
  const Result<ScanAnswer> answer = world.Scan(request, &around, question.visible, false);
  EXPECT_TRUE(answer.ok()) << answer.status().ToString();
  const bool forward = question.direction == Direction::kForward;
  const auto lies_in_front = [&](const ModelRow& row) {
    return std::all_of(answer->skipped.begin(), answer->skipped.end(), [&](const SkippedSpan& span) {
      return forward ? row.key < span.lower : row.key >= span.upper;
    });
  };
  return static_cast<size_t>(std::count_if(expected.rows.begin(), expected.rows.end(), lies_in_front));
}

TEST(ScanOracleTest, AScanGivesWhatLiesBeforeDamageAndAsksAgainAtIt) {
  int damaged = 0, failed = 0, whole_again = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    OracleWorld world(TestSeed() + 1000 + round);
    Question question;
    question.lower = TableLowerBound(TableId(1));
    question.upper = TableUpperBound(TableId(1));
    question.direction = round % 2 == 0 ? Direction::kForward : Direction::kBackward;
    question.visible = world.last_version();
    if (world.Chance(40)) question.only = RandomIntervals(world, /*with_points=*/true);
    const bool forward = question.direction == Direction::kForward;
    const Expectation expected = ExpectationOf(world, question);
    // Some place of some file cannot be read; what is in cache by then can.
    const ObjectId victim(1 + world.Below(world.file_count() + 1));
    const uint64_t place = 4096 * world.Below(8);
    world.objects().faults().on_read = [&](ObjectId id, uint64_t offset, std::span<uint8_t> bytes,
                                           ReadCaching) {
      const bool hit = id == victim && offset <= place && place < offset + bytes.size();
      return hit ? Status::IoError("the test says so") : Status();
    };
    ScanRequest request{.lower = question.lower, .upper = question.upper};
    request.direction = question.direction;
    request.only = question.only;
    request.limit = UINT32_MAX;
    std::vector<ModelRow> rows;
    Sink sink(question.choice, /*early=*/true, UINT32_MAX);
    Result<ScanAnswer> answer = world.Scan(request, &sink, question.visible, false);
    const size_t in_front = RowsBeforeDamage(world, request, question, expected);
    // It may lie where the scan leaps, and be of no concern.
    EXPECT_GE(sink.rows.size(), in_front);
    if (!answer.ok()) {
      EXPECT_EQ(answer.code(), Code::kCorruption);
      EXPECT_TRUE(sink.rows.empty());
      ++failed;
      continue;
    }
    rows = sink.rows;
    if (answer->done) {
      EXPECT_EQ(rows, expected.rows);
      continue;
    }
    ++damaged;
    ASSERT_LT(rows.size(), expected.rows.size() + 1);
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(), expected.rows.begin()));
    const auto given = [&](const ModelRow& row) {
      return forward ? row.key < answer->next_key : row.key >= answer->next_key;
    };
    EXPECT_EQ(static_cast<size_t>(std::count_if(expected.rows.begin(), expected.rows.end(), given)),
              rows.size());
    // Still damaged: never a shorter list.
    (forward ? request.lower : request.upper) = answer->next_key;
    Sink again(question.choice, true, UINT32_MAX);
    answer = world.Scan(request, &again, question.visible, false);
    if (!answer.ok()) {
      EXPECT_TRUE(again.rows.empty());
      // Whole again: the rest.
      world.objects().faults().on_read = nullptr;
      answer = world.Scan(request, &again, question.visible, false);
      ++whole_again;
    }  // Else all that is left of it is deleted, and the page began amidst that.
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(answer->done);
    rows.insert(rows.end(), again.rows.begin(), again.rows.end());
    EXPECT_EQ(rows, expected.rows);
  }
  EXPECT_GT(damaged, 3);
  EXPECT_GT(whole_again, 3);
  EXPECT_GT(failed, 1);
}

// ---- Blocks that are deleted as a whole.

std::string NumberedKey(size_t i) { return Key("a", std::to_string(100'000 + i)); }

// Each second key.
std::vector<OwnedEntry> NumberedRows(size_t begin, size_t end, uint64_t version) {
  std::vector<OwnedEntry> rows;
  for (size_t i = begin; i < end; i += 2) {
    rows.push_back(Put(NumberedKey(i), version, ContentOf(NumberedKey(i), version)));
  }
  return rows;
}
std::vector<OwnedEntry> NumberedDeletes(size_t begin, size_t end, uint64_t version) {
  std::vector<OwnedEntry> deletes;
  for (size_t i = begin; i < end; i += 2) deletes.push_back(Tombstone(NumberedKey(i), version));
  return deletes;
}

// Scans from each place of the world, in both directions, find what is on the upper level and in the file
// beside; all pages together pass over blocks.
void ExpectRowsOf(OracleWorld::Given given) {
  std::vector<std::string> rows;
  for (const OwnedEntry& entry : given.upper_level) rows.push_back(entry.user_key);
  for (const OwnedEntry& entry : given.beside) rows.push_back(entry.user_key);
  OracleWorld world(std::move(given));
  uint64_t skipped = 0;
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (size_t from = 0; from < 420; from += 3) {
      ScanRequest request{.lower = TableLowerBound(TableId(1)), .upper = TableUpperBound(TableId(1))};
      request.direction = direction;
      request.limit = UINT32_MAX;
      (direction == Direction::kForward ? request.lower : request.upper) = NumberedKey(from);
      Sink sink(Choice(), /*early=*/false, UINT32_MAX);
      Result<ScanAnswer> answer = world.Scan(request, &sink, Version(2000), /*doubt=*/false);
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      EXPECT_TRUE(answer->done);
      skipped += answer->blocks.blocks_skipped;
      std::vector<std::string> expected, found;
      for (const std::string& row : rows) {
        if (row >= request.lower && row < request.upper) expected.push_back(row);
      }
      if (direction == Direction::kBackward) std::reverse(expected.begin(), expected.end());
      for (const ModelRow& row : sink.rows) found.push_back(row.key);
      EXPECT_EQ(found, expected);
    }
  }
  EXPECT_GT(skipped, 1000u);
}

TEST(DeletedScanTest, ARowOfAnotherLevelAmidstDeletedBlocksIsFound) {
  const std::string row = NumberedKey(211);
  ExpectRowsOf({.upper_level = {Put(row, 20, ContentOf(row, 20))},
                .lower_level = NumberedRows(0, 400, 10),
                .deletes = NumberedDeletes(0, 400, 1000)});
}

// The table has more than its file shows; the last block that is shown has keys on both sides.
TEST(DeletedScanTest, RowsThatAnotherFileHasBesideDeletedBlocksAreFound) {
  ExpectRowsOf({.lower_level = NumberedRows(0, 400, 10),
                .upper = NumberedKey(201),
                .beside = NumberedRows(201, 401, 10),
                .deletes = NumberedDeletes(0, 400, 1000)});
}
// A page that ends there goes on in front of what it did not see.
TEST(DeletedScanTest, APageThatEndsAtDamageBesideDeletedBlocksGoesOnThere) {
  OracleWorld world({.lower_level = NumberedRows(0, 400, 10),
                     .upper = NumberedKey(201),
                     .beside = NumberedRows(201, 401, 10),
                     .deletes = NumberedDeletes(2, 400, 1000)});
  world.objects().faults().on_read = [](ObjectId id, uint64_t offset, std::span<uint8_t>, ReadCaching) {
    return id == ObjectId(2) && offset < 4096 ? Status::IoError("the test says so") : Status();
  };
  ScanRequest request{.lower = TableLowerBound(TableId(1)), .upper = TableUpperBound(TableId(1))};
  request.limit = UINT32_MAX;
  Sink sink(Choice(), /*early=*/false, UINT32_MAX);
  Result<ScanAnswer> answer = world.Scan(request, &sink, Version(2000), /*doubt=*/false);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  ASSERT_EQ(sink.rows.size(), 1u);
  EXPECT_FALSE(answer->done);
  EXPECT_GT(answer->blocks.blocks_skipped, 5u);
  EXPECT_GT(answer->next_key, NumberedKey(100)) << "it has seen that they are deleted";
  EXPECT_LE(answer->next_key, NumberedKey(201));
}
TEST(DeletedScanTest, RowsThatAnotherFileHasInFrontOfDeletedBlocksAreFound) {
  ExpectRowsOf({.lower_level = NumberedRows(0, 400, 10),
                .lower = NumberedKey(200),
                .beside = NumberedRows(1, 200, 10),
                .deletes = NumberedDeletes(0, 400, 1000)});
}

}  // namespace
}  // namespace partita
