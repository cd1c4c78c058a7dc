#include "bench/peers/lmdb_engine.h"

#include <lmdb.h>

#include "bench/peers/joined_key.h"
#include "bench/peers/per_thread.h"

namespace partita::bench {
namespace {

// Addresses, not memory: far above any data set here.
constexpr size_t kMapBytes = size_t{256} << 30;
constexpr unsigned kReadersMax = 4200;  // A thread each; workloads have at most 4,096.

Status FromLmdb(int code) {
  if (code == 0) return Status();
  if (code == MDB_NOTFOUND) return Status::NotFound("no such row");
  return Status::IoError(std::string("lmdb: ") + mdb_strerror(code));
}

MDB_val ToValue(std::string_view bytes) {
  return {.mv_size = bytes.size(), .mv_data = const_cast<char*>(bytes.data())};
}
MDB_val ToValue(const JoinedKey& key) { return ToValue(std::string_view(key.data(), key.size())); }
std::string_view ToText(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// A thread's read transaction, begun once and renewed for each read: beginning one takes a lock.
class Reader {
 public:
  static std::unique_ptr<Reader> Open(MDB_env* environment, MDB_dbi table) {
    auto reader = std::make_unique<Reader>();
    if (mdb_txn_begin(environment, nullptr, MDB_RDONLY, &reader->transaction_) != 0) return nullptr;
    if (mdb_cursor_open(reader->transaction_, table, &reader->cursor_) != 0) return nullptr;
    mdb_txn_reset(reader->transaction_);
    return reader;
  }
  ~Reader() {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  }
  MDB_txn* transaction() { return transaction_; }
  MDB_cursor* cursor() { return cursor_; }

 private:
  MDB_txn* transaction_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

// From renewal to reset: the pages it sees are not reused meanwhile.
class ReadScope {
 public:
  explicit ReadScope(Reader* reader)
      : reader_(reader), status_(FromLmdb(mdb_txn_renew(reader->transaction()))) {}
  ~ReadScope() {
    if (status_.ok()) mdb_txn_reset(reader_->transaction());
  }
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;
  const Status& status() const { return status_; }

 private:
  Reader* reader_;
  Status status_;
};

class LmdbEngine final : public Engine {
 public:
  // With `lazy` a commit does not flush by itself.
  LmdbEngine(MDB_env* environment, MDB_dbi table, bool lazy)
      : environment_(environment), table_(table), lazy_(lazy) {}
  ~LmdbEngine() override { (void)Close(); }

  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) override {
    return Write(level, [&](MDB_txn* transaction) { return PutOne(transaction, keys, value); });
  }

  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    return Write(level, [&](MDB_txn* transaction) {
      for (const Row& row : rows) {
        if (const int code = PutOne(transaction, row.keys, row.value); code != 0) return code;
      }
      return 0;
    });
  }

  Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) override {
    return Write(level, [&](MDB_txn* transaction) {
      for (const RowKeys& keys : rows) {
        const JoinedKey joined(keys);
        MDB_val key = ToValue(joined);
        const int code = mdb_del(transaction, table_, &key, nullptr);
        if (code != 0 && code != MDB_NOTFOUND) return code;
      }
      return 0;
    });
  }

  Status Drop() override {
    return Write(DurabilityLevel::kPower,
                 [this](MDB_txn* transaction) { return mdb_drop(transaction, table_, /*del=*/0); });
  }

  Status Get(const RowKeys& keys, std::string* value) override {
    Reader* reader = ThreadsReader();
    if (reader == nullptr) return NoReader();
    const ReadScope scope(reader);
    if (!scope.status().ok()) return scope.status();
    const JoinedKey joined(keys);
    MDB_val key = ToValue(joined), found{};
    const int code = mdb_get(reader->transaction(), table_, &key, &found);
    if (code == 0) value->assign(ToText(found));
    return FromLmdb(code);
  }

  Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) override {
    Reader* reader = ThreadsReader();
    if (reader == nullptr) return NoReader();
    const ReadScope scope(reader);
    if (!scope.status().ok()) return scope.status();
    PARTITA_TRY(FromLmdb(mdb_cursor_renew(reader->transaction(), reader->cursor())));
    const JoinedKey joined(from);
    MDB_val key = ToValue(joined), value{};
    int code = limit == 0 ? MDB_NOTFOUND : mdb_cursor_get(reader->cursor(), &key, &value, MDB_SET_RANGE);
    for (uint64_t visited = 1; code == 0; ++visited) {
      const std::string_view text = ToText(key);
      if (!visit(JoinedKey::RowOf(text.data(), text.size()), ToText(value)) || visited == limit) break;
      code = mdb_cursor_get(reader->cursor(), &key, &value, MDB_NEXT);
    }
    return code == MDB_NOTFOUND ? Status() : FromLmdb(code);
  }

  // There is nothing to compact; what the weaker levels left to the kernel goes to the disk.
  Status Settle() override { return FromLmdb(mdb_env_sync(environment_, /*force=*/1)); }

  Status Close() override {
    if (environment_ == nullptr) return Status();
    readers_.Clear();
    mdb_env_close(environment_);
    environment_ = nullptr;
    return Status();
  }

 private:
  template <typename Act>
  Status Write(DurabilityLevel level, const Act& act) {
    MDB_txn* transaction = nullptr;
    PARTITA_TRY(FromLmdb(mdb_txn_begin(environment_, nullptr, 0, &transaction)));
    if (const int code = act(transaction); code != 0) {
      mdb_txn_abort(transaction);
      return FromLmdb(code);
    }
    PARTITA_TRY(FromLmdb(mdb_txn_commit(transaction)));
    return lazy_ && level == DurabilityLevel::kPower ? Settle() : Status();
  }

  int PutOne(MDB_txn* transaction, const RowKeys& keys, std::string_view value) {
    const JoinedKey joined(keys);
    MDB_val key = ToValue(joined), bytes = ToValue(value);
    return mdb_put(transaction, table_, &key, &bytes, 0);
  }

  Reader* ThreadsReader() {
    return readers_.Get([this] { return Reader::Open(environment_, table_); });
  }
  static Status NoReader() { return Status::IoError("lmdb: no read transaction to be had"); }

  MDB_env* environment_;
  MDB_dbi table_;
  bool lazy_;
  PerThread<Reader> readers_;
};

int OpenTable(MDB_env* environment, MDB_dbi* table) {
  MDB_txn* transaction = nullptr;
  if (const int code = mdb_txn_begin(environment, nullptr, 0, &transaction); code != 0) return code;
  if (const int code = mdb_dbi_open(transaction, nullptr, 0, table); code != 0) {
    mdb_txn_abort(transaction);
    return code;
  }
  return mdb_txn_commit(transaction);
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenLmdb(const EngineConfig& config) {
  MDB_env* environment = nullptr;
  PARTITA_TRY(FromLmdb(mdb_env_create(&environment)));
  // A reader belongs to its handle, not to the thread (NOTLS), so that PerThread can end it.
  unsigned flags = MDB_NORDAHEAD | MDB_NOTLS;
  const bool lazy = config.durability != DurabilityLevel::kPower;
  if (lazy) flags |= MDB_WRITEMAP | MDB_NOSYNC;
  MDB_dbi table = 0;
  int code = mdb_env_set_mapsize(environment, kMapBytes);
  if (code == 0) code = mdb_env_set_maxreaders(environment, kReadersMax);
  if (code == 0) code = mdb_env_open(environment, config.directory.c_str(), flags, 0644);
  if (code == 0) code = OpenTable(environment, &table);
  if (code != 0) {
    mdb_env_close(environment);
    return FromLmdb(code);
  }
  return std::unique_ptr<Engine>(std::make_unique<LmdbEngine>(environment, table, lazy));
}

}  // namespace partita::bench
