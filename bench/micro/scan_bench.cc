// Scans of cached entities beside RocksDB's iterator: 1 KiB entities with 12 properties, the same key bytes
// and stored value bytes in both, fully compacted, every block in cache; the same CompiledFilter decides.
// Ours goes the whole road of a query (RunQuery, in pages).
//
//   bench_scan [--rows=200000] [--rounds=7] [--page=1000] [--directory=DIR] [--only=TITLE] [--alone=1]
//
// --only: the scans whose title holds these letters. --alone=1: ours without RocksDB, for a profiler.
//
// A round runs every contender once, one after the other (A B C A B C), so that a slower moment of the
// machine meets all alike; printed is the median of the rounds in entities per second of CPU time of the
// whole process, and how many times ours is of each of RocksDB's. RocksDB comes with blocks of 4 KiB, as
// bench/load has it, and of 16 KiB, which is its better choice for scans.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api/compiled_filter.h"
#include "api/partita.h"
#include "api/query.h"
#include "bench/micro/or_die.h"
#include "bench/micro/wide_entity.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"
#ifdef PARTITA_WITH_ROCKSDB
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#endif

namespace partita {
namespace {

using bench::Die;

constexpr uint64_t kMemoryPerRow = 3 * 1024;

struct Settings {
  uint64_t rows = 200'000;
  int rounds = 7;
  uint32_t page = kPageEntitiesMax;
  std::string directory = std::filesystem::temp_directory_path();
  std::string only;
  bool alone = false;
};

struct Outcome {
  uint64_t scanned = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  virtual void Put(const Entity& entity) = 0;
  virtual void Settle() = 0;
  virtual Outcome Scan(const Filter& filter) = 0;
};

// ---- Ours.

class CountingSink : public QueryRowSink {
 public:
  bool Add(const QueryRow& row) override {
    ++rows;
    bytes += row.row_key.size() + row.content.size();
    return true;
  }
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

class Ours : public Contender {
 public:
  Ours(const Settings& settings, const std::string& directory) : settings_(settings) {
    Options options;
    options.directory = directory;
    options.create_if_missing = true;
    options.memory_bytes = std::max<uint64_t>(256u << 20, settings.rows * kMemoryPerRow);
    options.shards = 1;
    options.durability = Durability::kMemory;
    options.io_backend = IoBackend::kThreads;
    Result<std::unique_ptr<Database>> opened = Database::Open(options);
    if (!opened.ok()) Die(opened.status().ToString());
    database_ = std::move(opened).value();
    Result<Table> table = database_->CreateTable("Scanned");
    if (!table.ok()) Die(table.status().ToString());
    table_ = *table;
    async_table_ = *AsyncDatabase(*database_).FindTable(options.account, "Scanned");
  }
  ~Ours() override {
    table_.reset();
    async_table_.reset();
    if (!database_->Close().ok()) Die("close failed");
  }
  std::string name() const override { return "partita"; }
  void Put(const Entity& entity) override {
    const WriteResult written = table_->Insert(entity);
    if (!written.ok()) Die(written.status.ToString());
  }
  void Settle() override {
    if (!database_->Flush().ok() || !database_->CompactAll().ok()) Die("compaction failed");
  }
  Outcome Scan(const Filter& filter) override {
    Outcome outcome;
    CountingSink sink;
    Query query;
    query.filter = filter;
    query.limits.rows = settings_.page;
    query.use_zone_maps = false;  // Every entity is looked at, as the peer must.
    do {
      Result<QueryPage> page =
          AsyncDatabase(*database_).runtime().RunToEnd(RunQuery(*async_table_, query, &sink));
      if (!page.ok()) Die(page.status().ToString());
      outcome.scanned += page->scanned;
      query.from = page->next;
    } while (query.from);
    outcome.rows = sink.rows;
    outcome.bytes = sink.bytes;
    return outcome;
  }

 private:
  const Settings& settings_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  std::optional<AsyncTable> async_table_;
};

// ---- RocksDB.

#ifdef PARTITA_WITH_ROCKSDB
class Rival : public Contender {
 public:
  Rival(const Settings& settings, const std::string& directory, size_t block_size) : block_size_(block_size) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(settings.rows * kMemoryPerRow, /*num_shard_bits=*/6);
    table.block_size = block_size;
    table.format_version = 5;
    table.checksum = rocksdb::kXXH3;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.target_file_size_base = uint64_t{64} << 20;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* database = nullptr;
    Check(rocksdb::DB::Open(options, directory, &database));
    database_.reset(database);
  }
  ~Rival() override { Check(database_->Close()); }
  std::string name() const override {
    return "rocksdb, blocks of " + std::to_string(block_size_ >> 10) + " KiB";
  }
  void Put(const Entity& entity) override {
    const std::string key =
        EncodeUserKey(TableId(1), OrderedText(entity.partition_key()), OrderedText(entity.row_key()));
    const std::string value = MakeStoredValue(key, EntryKind::kPut, EncodeEntityRecord(entity.properties()));
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    Check(database_->Put(options, key, value));
  }
  void Settle() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    Check(database_->CompactRange(options, nullptr, nullptr));
  }
  Outcome Scan(const Filter& filter) override {
    Outcome outcome;
    CompiledFilter compiled(filter);
    const std::string lower = TableLowerBound(TableId(1));
    const std::string upper = TableUpperBound(TableId(1));
    const rocksdb::Slice upper_slice(upper);
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &upper_slice;
    std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(options));
    for (iterator->Seek(lower); iterator->Valid(); iterator->Next()) {
      ++outcome.scanned;
      const rocksdb::Slice value = iterator->value();
      const std::string_view content = StoredValueContent({value.data(), value.size()});
      // The keys are not asked for by these filters.
      if (!compiled.matches_all() && !compiled.Matches({}, Version(0), content)) continue;
      const rocksdb::Slice key = iterator->key();
      const std::string_view user_key(key.data(), key.size());
      ++outcome.rows;
      outcome.bytes += user_key.size() - PartitionPrefix(user_key).size() + content.size();
    }
    Check(iterator->status());
    return outcome;
  }

 private:
  static void Check(const rocksdb::Status& status) {
    if (!status.ok()) Die("rocksdb: " + status.ToString());
  }
  const size_t block_size_;
  std::unique_ptr<rocksdb::DB> database_;
};
#endif

// ---- Rounds.

void Compare(const Settings& settings, const std::string& title, const Filter& filter,
             std::vector<std::unique_ptr<Contender>>& contenders) {
  if (title.find(settings.only) == std::string::npos) return;
  std::vector<std::vector<double>> rates(contenders.size());
  Outcome expected;
  for (int round = -1; round < settings.rounds; ++round) {  // The first one warms the caches.
    for (size_t i = 0; i < contenders.size(); ++i) {
      const double before = bench::CpuSeconds();
      const Outcome outcome = contenders[i]->Scan(filter);
      const double seconds = bench::CpuSeconds() - before;
      if (round < 0 && i == 0) expected = outcome;
      if (outcome.rows != expected.rows || outcome.bytes != expected.bytes) Die("the answers differ");
      if (round >= 0) rates[i].push_back(static_cast<double>(settings.rows) / seconds);
    }
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  };
  std::printf("%s: %llu of %llu rows\n", title.c_str(), static_cast<unsigned long long>(expected.rows),
              static_cast<unsigned long long>(settings.rows));
  const double ours = median(rates[0]);
  for (size_t i = 0; i < contenders.size(); ++i) {
    const double rate = median(rates[i]);
    std::printf("  %-28s %8.3f M entities/s of CPU", contenders[i]->name().c_str(), rate / 1e6);
    if (i > 0) std::printf("   ours is %.2f times", ours / rate);
    std::printf("\n");
  }
}

Filter FilterOf(std::string_view text) {
  Result<Filter> filter = ParseFilter(text);
  if (!filter.ok()) Die("bad filter");
  return *filter;
}

Settings Parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) Die("usage: see the top of bench/micro/scan_bench.cc");
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (name == "--rows") {
      settings.rows = std::stoull(value);
    } else if (name == "--rounds") {
      settings.rounds = std::stoi(value);
    } else if (name == "--page") {
      settings.page = static_cast<uint32_t>(std::stoul(value));
    } else if (name == "--directory") {
      settings.directory = value;
    } else if (name == "--only") {
      settings.only = value;
    } else if (name == "--alone") {
      settings.alone = value == "1";
    } else {
      Die("unknown option " + name);
    }
  }
  return settings;
}

int Main(int argc, char** argv) {
  const Settings settings = Parse(argc, argv);
  const std::string directory = settings.directory + "/bench_scan." + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  {
    std::vector<std::unique_ptr<Contender>> contenders;
    contenders.push_back(std::make_unique<Ours>(settings, directory + "/partita"));
#ifdef PARTITA_WITH_ROCKSDB
    if (!settings.alone) {
      contenders.push_back(std::make_unique<Rival>(settings, directory + "/rocksdb4", 4 << 10));
      contenders.push_back(std::make_unique<Rival>(settings, directory + "/rocksdb16", 16 << 10));
    }
#endif
    for (auto& contender : contenders) {
      std::mt19937_64 random(1);
      for (uint64_t i = 0; i < settings.rows; ++i)
        contender->Put(bench::MakeWideEntity(random, "customer-00001", i));
      contender->Settle();
    }
    Compare(settings, "filter Level eq 7", FilterOf("Level eq 7"), contenders);
    Compare(settings, "filter of three properties",
            FilterOf("Level eq 7 and Price ge 0.0 and Active eq true"), contenders);
    Compare(settings, "full scan", Filter(), contenders);
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) { return partita::Main(argc, argv); }
