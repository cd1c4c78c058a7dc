#include "test/power/load.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "engine/backup.h"
#include "engine/base/user_key.h"
#include "engine/world.h"

namespace partita {

namespace {

constexpr uint32_t kRetryMicroseconds = 2000;
constexpr int kTriesMax = 100;         // Of one operation on a disk that fails: then all is given up.
constexpr int kFullTriesMax = 30'000;  // On one that was full: a minute; F56 grants 10 s of an idle machine.
constexpr uint32_t kFullMicrosecondsMax = 400'000;
constexpr off_t kBallastPiece = 64 << 10;
// A file system that gave up its journal refuses for ever; that is not waited for as long as a store would.
constexpr uint64_t kFailingDeadlineNanos = 5'000'000'000;
constexpr uint32_t kKeeperTablesMax = 1u << 20;  // Of one process.
constexpr uint32_t kBackupsMax = 2;              // Of one process: they keep what compactions let go.

class RowMap : public RowSink {
 public:
  Verdict Add(std::string_view user_key, Version, std::string_view content) override {
    Result<UserKeyParts> parts = DecodeUserKey(user_key);
    const bool fresh = parts.ok() && rows.emplace(parts->row_key, content).second;
    twice = twice || !fresh;
    return Verdict::kTaken;
  }
  std::map<std::string, std::string> rows;
  bool twice = false;
};

DurabilityLevel LevelOfWriter(uint32_t writer) {
  return IsPowerWriter(writer) ? DurabilityLevel::kPower : DurabilityLevel::kProcess;
}

// One process at work.
class Loader {
 public:
  Loader(const LoadPlan& plan, const VirtualDisk& disk, int notes, const std::atomic<bool>* stop)
      : plan_(plan), disk_(disk), notes_(notes), stop_(stop) {}

  void Open() {
    unlink(BallastOf(plan_.directory).c_str());  // A killed process may have left it.
    WorldOptions world{plan_.directory, true, plan_.shards, plan_.backend};
    Result<std::unique_ptr<Runtime>> runtime = OpenWorld(world);
    if (!runtime.ok()) Leave(3, "runtime: " + runtime.status().ToString());
    runtime_ = std::move(runtime).value();
    Result<std::unique_ptr<Store>> store =
        runtime_->RunToEnd(Store::Open(*runtime_, LoadStoreOptions(plan_)));
    if (!store.ok()) Leave(3, "open: " + store.status().ToString());
    store_ = std::move(store).value();
  }

  void Work() {
    for (uint32_t table = 0; table <= TableOfWriter(kWriters - 1); ++table) CreateTable(LoadTableName(table));
    const std::array<uint32_t, kWriters> found = LookAtAll();
    std::vector<std::thread> threads;
    for (uint32_t writer = 0; writer < kWriters; ++writer) {
      threads.emplace_back([this, writer, first = found[writer] + 1] { Write(writer, first); });
    }
    Keep();
    for (std::thread& thread : threads) thread.join();
  }

  [[noreturn]] void Close() {
    const Status closed = runtime_->RunToEnd(store_->Close());
    if (!closed.ok() && !plan_.disk_may_fail) Leave(5, "close: " + closed.ToString());
    _exit(0);
  }

 private:
  [[noreturn]] void Leave(int code, const std::string& message) {
    std::fprintf(stderr, "power_cut load: %s\n", message.c_str());
    _exit(code);
  }

  bool stopped() const { return stop_->load() || given_up_.load(); }

  void Say(Note::Kind kind, uint32_t writer, uint32_t number) {
    const Note note{kind, writer, number, disk_.entries()};
    if (write(notes_, &note, sizeof note) != sizeof note) _exit(6);
  }

  // Repeats `operation` while the disk fails or is full, as a client would. False: given up.
  template <typename Operation>
  bool Insist(const char* what, Operation operation) {
    const int tries_max = plan_.fill_disk ? kFullTriesMax : kTriesMax;
    Status status;
    for (int i = 0; i < tries_max && !given_up_.load(); ++i) {
      status = operation();
      if (status.ok()) return true;
      if (!plan_.disk_may_fail) Leave(5, std::string(what) + ": " + status.ToString());
      Say(Note::Kind::kRefused, 0, static_cast<uint32_t>(status.code()));
      usleep(kRetryMicroseconds);
    }
    if (plan_.fill_disk) Leave(5, std::string(what) + " does not resume (F56): " + status.ToString());
    if (!given_up_.exchange(true)) Say(Note::Kind::kGivenUp, 0, 0);
    return false;
  }

  // Takes all space for a moment (F54), and gives it back (F56).
  void FillAndFree(useconds_t microseconds) {
    const std::string name = BallastOf(plan_.directory);
    const int file = open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (off_t size = 0; posix_fallocate(file, size, kBallastPiece) == 0;) size += kBallastPiece;
    usleep(microseconds);
    close(file);
    unlink(name.c_str());
  }

  // Before anything new is written, so that the notes about it come first.
  std::array<uint32_t, kWriters> LookAtAll() {
    std::array<uint32_t, kWriters> found{};
    for (uint32_t writer = 0; writer < kWriters; ++writer) {
      const PartitionState state = ReadPartition(*store_, writer);
      found[writer] = state.number;
      Say(Note::Kind::kFound, writer, state.number);
      const bool in_bounds =
          state.number >= plan_.found_min[writer] && state.number <= plan_.found_max[writer];
      if (state.error.empty() && in_bounds) continue;
      Leave(4, "writer " + std::to_string(writer) + " finds " + std::to_string(state.number) + ", but " +
                   std::to_string(plan_.found_min[writer]) + " was safe, " +
                   std::to_string(plan_.found_max[writer]) + " begun; " + state.error);
    }
    return found;
  }

  void CreateTable(const std::string& name) {
    Insist("create table", [&] {
      const Result<TableDescriptor> made = runtime_->RunToEnd(
          store_->CreateTable({.account = kLoadAccount, .name = name, .raw = true, .split_partitions = {}}));
      return made.ok() || made.code() == Code::kAlreadyExists ? Status() : made.status();
    });
  }

  void Write(uint32_t writer, uint32_t first) {
    const Result<TableDescriptor> table =
        store_->FindTable(kLoadAccount, LoadTableName(TableOfWriter(writer)));
    if (!table.ok()) return;  // Given up making it.
    for (uint32_t n = first; !stopped(); ++n) {
      Say(Note::Kind::kBegun, writer, n);
      if (!Insist("write", [&] { return Transact(table->id, writer, n); })) return;
      Say(Note::Kind::kAcknowledged, writer, n);
    }
  }

  Status Transact(TableId table, uint32_t writer, uint32_t n) {
    const std::string partition = PartitionOf(writer);
    const std::string content = RowContent(writer, n);
    std::vector<std::string> keys = {EncodeUserKey(table, partition, "copy"),
                                     EncodeUserKey(table, partition, "count"),
                                     EncodeUserKey(table, partition, RowName(n))};
    std::vector<WriteOp> ops;
    for (const std::string& key : keys) ops.push_back({.user_key = key, .content = content});
    std::string old;
    if (n > kRowsKept) {
      old = EncodeUserKey(table, partition, RowName(n - kRowsKept));
      ops.push_back({.kind = WriteKind::kDelete, .user_key = old, .content = {}});
    }
    WriteRequest request{.table = table, .ops = ops, .durability = LevelOfWriter(writer)};
    return runtime_->RunToEnd(store_->Write(request)).status;
  }

  void Keep() {
    std::mt19937_64 random(plan_.seed);
    uint32_t table = plan_.life * kKeeperTablesMax;
    uint32_t backups = 0;
    // A process has time for a few things only, and this takes the longest.
    if (!plan_.fill_disk && random() % 2 == 0) BackUp(plan_.life * kBackupsMax + ++backups);
    while (!stopped()) {
      const uint64_t what = random() % 100;
      if (plan_.fill_disk && what % 8 == 0)
        FillAndFree(static_cast<useconds_t>(random() % kFullMicrosecondsMax));
      if (what < 40) {
        Insist("flush", [&] { return runtime_->RunToEnd(store_->FlushMemtables()); });
      } else if (what < 50) {
        Insist("compact", [&] { return runtime_->RunToEnd(store_->CompactAll()); });
      } else if (what < 70) {
        Say(Note::Kind::kBarrierBegun, 0, 0);
        if (Insist("barrier", [&] { return runtime_->RunToEnd(store_->Barrier()); })) {
          Say(Note::Kind::kBarrierDone, 0, 0);
        }
      } else if (what >= 85 && backups < kBackupsMax && !plan_.fill_disk) {
        BackUp(plan_.life * kBackupsMax + ++backups);
      } else {
        MakeAndDrop(++table, random() % 3 != 0);
      }
      usleep(static_cast<useconds_t>(random() % 8000));
    }
  }

  // One that fails is not tried again: its name is free until it is complete.
  void BackUp(uint32_t number) {
    Say(Note::Kind::kBackupBegun, 0, number);
    const Result<BackupReport> made =
        BackUpStore(*runtime_, *store_, BackupOf(plan_.directory, number), BackupOptions());
    if (!made.ok() && !plan_.disk_may_fail) Leave(5, "backup: " + made.status().ToString());
    if (made.ok()) {
      Say(Note::Kind::kBackupDone, 0, number);
    } else {
      Say(Note::Kind::kRefused, 0, static_cast<uint32_t>(made.code()));
    }
  }

  void MakeAndDrop(uint32_t number, bool drop) {
    const std::string name = KeeperTableName(number);
    Say(Note::Kind::kCreateBegun, 0, number);
    CreateTable(name);
    if (given_up_.load()) return;
    Say(Note::Kind::kCreateDone, 0, number);
    if (!drop) return;
    Say(Note::Kind::kDropBegun, 0, number);
    const bool dropped = Insist("drop table", [&] {
      const Status status = runtime_->RunToEnd(store_->DeleteTable(kLoadAccount, name));
      return status.code() == Code::kNotFound ? Status() : status;
    });
    if (dropped) Say(Note::Kind::kDropDone, 0, number);
  }

  const LoadPlan& plan_;
  const VirtualDisk& disk_;
  const int notes_;
  const std::atomic<bool>* const stop_;
  std::atomic<bool> given_up_{false};
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Store> store_;
};

}  // namespace

std::string LoadTableName(uint32_t table) { return "load" + std::to_string(table); }
std::string KeeperTableName(uint32_t number) { return "kept" + std::to_string(number); }
std::string PartitionOf(uint32_t writer) { return "writer" + std::to_string(writer); }

std::string BallastOf(const std::string& directory) { return directory + ".ballast"; }

std::string BackupOf(const std::string& directory, uint32_t number) {
  return directory + ".backup-" + std::to_string(number);
}

std::string RowName(uint32_t n) {
  char name[16];
  std::snprintf(name, sizeof name, "row%08u", n);
  return name;
}

// Mostly small, at times of some pages, rarely of many.
std::string RowContent(uint32_t writer, uint32_t n) {
  std::mt19937_64 random(uint64_t{writer} << 32 | n);
  const uint64_t kind = random() % 100;
  const size_t size = 16 + random() % (kind < 70 ? 200 : kind < 97 ? 3000 : 30'000);
  std::string content = std::to_string(n) + " ";
  while (content.size() < size) content.push_back(static_cast<char>('0' + random() % 64));
  return content;
}

StoreOptions LoadStoreOptions(const LoadPlan& plan) {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = plan.shards;
  // Tiny, so that a second of load sees many of each.
  options.memtable_data_bytes = 128u << 10;
  options.table_file_bytes = 64u << 10;
  options.log_segment_bytes = 512u << 10;
  options.log_tail_bytes = 128u << 10;
  options.reserve_bytes = 4u << 20;
  options.planted_log = plan.planted;
  if (plan.disk_may_fail) options.io_deadline_ns = kFailingDeadlineNanos;
  return options;
}

void RunLoad(const LoadPlan& plan, const VirtualDisk& disk, int notes, const std::atomic<bool>* stop) {
  Loader loader(plan, disk, notes, stop);
  loader.Open();
  loader.Work();
  loader.Close();
}

PartitionState ReadPartition(Store& store, uint32_t writer) {
  const Result<TableDescriptor> table = store.FindTable(kLoadAccount, LoadTableName(TableOfWriter(writer)));
  if (!table.ok()) return {};
  RowMap found;
  ScanRequest request;
  request.lower = EncodeUserKey(table->id, PartitionOf(writer), "");
  request.upper = EncodeUserKey(table->id, PartitionOf(writer), "z");
  request.limit = 7;  // Several pages.
  for (bool done = false; !done;) {
    Result<ScanAnswer> answer = store.runtime().RunToEnd(store.Scan(request, &found));
    if (!answer.ok()) return {0, "scan: " + answer.status().ToString(), true};
    done = answer->done;
    request.lower = answer->next_key;
  }
  if (found.twice) return {0, "a scan gave a row twice", false};
  if (found.rows.empty()) return {};
  PartitionState state;
  state.number = static_cast<uint32_t>(std::strtoul(found.rows["count"].c_str(), nullptr, 10));
  std::map<std::string, std::string> wanted;
  wanted["count"] = wanted["copy"] = RowContent(writer, state.number);
  const uint32_t first = state.number > kRowsKept ? state.number - kRowsKept + 1 : 1;
  for (uint32_t n = first; n <= state.number; ++n) wanted[RowName(n)] = RowContent(writer, n);
  if (found.rows == wanted) return state;
  state.error = "its partition is not what transaction " + std::to_string(state.number) + " left (F10):";
  for (const auto& [row, content] : wanted) {
    auto there = found.rows.find(row);
    if (there == found.rows.end()) {
      state.error += " " + row + " is missing;";
    } else if (there->second != content) {
      state.error += " " + row + " has other content, '" + there->second.substr(0, 12) + "';";
    }
  }
  for (const auto& [row, content] : found.rows) {
    if (!wanted.contains(row)) state.error += " " + row + " should not be there;";
  }
  return state;
}

}  // namespace partita
