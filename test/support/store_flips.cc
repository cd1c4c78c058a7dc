#include "engine/base/user_key.h"
#include "test/support/row_collector.h"
#include "test/support/simulation.h"

// Single flipped bits in the files of a store that was closed.

namespace partita {

namespace {

StoreOptions OptionsFor(uint32_t shards, LogDefect planted) {
  StoreOptions options;
  options.memory_bytes = 64u << 20;
  options.shards = shards;
  options.log_segment_bytes = 32u << 10;
  options.log_tail_bytes = 16u << 10;
  options.reserve_bytes = 256u << 10;
  options.planted_log = planted;
  return options;
}

// What a store answers: rows that were got, and keys that answered an error.
struct Answers {
  Status opened;
  std::vector<std::string> tables;
  StoreModel::Rows rows;
  std::set<std::string> failed_keys;
  uint64_t failed_scans = 0;
};

Task<void> ReadEverything(Runtime* runtime, StoreOptions options, const StoreModel::Rows* known,
                          Answers* out) {
  Result<std::unique_ptr<Store>> opened = co_await Store::Open(*runtime, std::move(options));
  out->opened = opened.status();
  if (!opened.ok()) co_return;
  Store& store = **opened;
  for (const TablePtr& table : store.ListTables("default")) {
    out->tables.push_back(table->name);
    ScanRequest request;
    request.lower = TableLowerBound(table->id);
    request.upper = TableUpperBound(table->id);
    request.limit = 7;
    for (bool done = false; !done;) {
      RowCollector sink(&out->rows);
      Result<ScanAnswer> answer = co_await store.Scan(request, &sink);
      if (!answer.ok()) {
        ++out->failed_scans;
        break;
      }
      done = answer->done;
      request.lower = answer->next_key;
    }
  }
  for (const auto& [key, row] : *known) {
    std::string content;
    Result<Shard::ReadAnswer> read = co_await store.Get(key, &content);
    if (!read.ok()) {
      out->failed_keys.insert(key);
    } else if (read->state == Shard::ReadState::kFound) {
      auto [at, fresh] = out->rows.emplace(key, StoreModel::Row{read->version, content});
      if (!fresh && (at->second.version != read->version || at->second.content != content)) {
        at->second.content = "get and scan differ";
      }
    } else {
      out->rows.erase(key);
    }
  }
  (void)co_await store.Close();
}

class Flipper {
 public:
  Flipper(uint64_t seed, LogDefect planted) : planted_(planted), random_(seed), disk_(seed) {}

  FlipReport Run(uint32_t flips) {
    MakeStore();
    Read(*disk_.Clone(), {}, &sound_);
    Answers again;
    Read(*disk_.Clone(), sound_.rows, &again);
    if (!sound_.opened.ok() || !again.opened.ok())
      report_.violations.push_back("the sound store does not open");
    for (uint32_t i = 0; i < flips && report_.violations.empty(); ++i) Flip();
    return report_;
  }

 private:
  void MakeStore() {
    StoreWorld world;
    world.shards = 0;
    StoreLife::Plan plan;
    plan.seed = random_.Next();
    plan.shards = shards_ = 1 + static_cast<uint32_t>(random_.Below(2));
    plan.end = random_.Chance(0.5) ? StoreLife::End::kClose : StoreLife::End::kQuietCrash;
    WorkloadOptions workload;
    workload.requests = 40;
    // The keeper goes on for longer than the clients: without its last flushes the log holds something.
    const uint32_t keeps = random_.Chance(0.7) ? 4 : workload.requests;
    for (uint32_t i = keeps; i < workload.requests; ++i) plan.requests_cut.insert({0, i});
    SimRuntime runtime({.seed = plan.seed, .shards = shards_, .clients = workload.clients + 1}, disk_);
    StoreLife life(runtime, world, workload, plan);
    runtime.Run(life.Main());
    const bool made = life.compared() && world.model.violations().empty();
    if (!made) report_.violations.push_back("the store could not be made");
    disk_.CrashPower();
  }

  void Read(SimDisk& disk, const StoreModel::Rows& known, Answers* out) {
    SimRuntime runtime({.seed = 1, .shards = shards_}, disk);
    runtime.Run(ReadEverything(&runtime, OptionsFor(shards_, planted_), &known, out));
  }

  void Flip() {
    std::unique_ptr<SimDisk> disk = disk_.Clone();
    const std::vector<std::string> files = disk->ListFiles();
    const std::string& path = files[random_.Below(files.size())];
    const uint64_t size = disk->ReadFile(path)->size();
    if (size == 0) return;
    // Half of them where things begin and end.
    uint64_t offset = random_.Below(size);
    if (random_.Chance(0.25)) offset = random_.Below(std::min<uint64_t>(size, 512));
    if (random_.Chance(0.25)) offset = size - 1 - random_.Below(std::min<uint64_t>(size, 512));
    const uint32_t bit = static_cast<uint32_t>(random_.Below(8));
    disk->FlipBit(path, offset, bit);
    ++report_.flips;
    Answers answers;
    Read(*disk, sound_.rows, &answers);
    Judge(answers, "bit " + std::to_string(bit) + " of byte " + std::to_string(offset) + " of " + path +
                       " (of " + std::to_string(size) + " bytes)");
  }

  void Judge(const Answers& answers, const std::string& what) {
    if (!answers.opened.ok()) {
      ++report_.refused;
      const Code code = answers.opened.code();
      if (code != Code::kCorruption && code != Code::kUnsupported && code != Code::kInvalidArgument) {
        report_.violations.push_back(what + ": open says " + answers.opened.ToString());
      }
      return;
    }
    if (answers.tables != sound_.tables) report_.violations.push_back(what + ": other tables");
    for (const auto& [key, row] : answers.rows) {
      auto sound = sound_.rows.find(key);
      const bool same = sound != sound_.rows.end() && sound->second.version == row.version &&
                        sound->second.content == row.content;
      if (!same)
        report_.violations.push_back(what + ": a row that never was: '" + row.content.substr(0, 60) + "'");
    }
    bool missing = false;
    for (const auto& [key, row] : sound_.rows) {
      if (answers.rows.contains(key) || answers.failed_keys.contains(key)) continue;
      missing = true;
    }
    if (missing) report_.violations.push_back(what + ": a row is not there, and no error (F43)");
    if (answers.failed_scans == 0 && !answers.failed_keys.empty()) {
      report_.violations.push_back(what + ": a scan passed over what a get calls damaged (F43)");
    }
    ++(answers.failed_scans + answers.failed_keys.size() > 0 ? report_.damaged : report_.harmless);
  }

  const LogDefect planted_;
  SimRandom random_;
  SimDisk disk_;
  uint32_t shards_ = 1;
  Answers sound_;
  FlipReport report_;
};

}  // namespace

FlipReport RunFlips(uint64_t seed, uint32_t flips, LogDefect planted) {
  return Flipper(seed, planted).Run(flips);
}

}  // namespace partita
