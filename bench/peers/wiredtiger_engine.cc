#include "bench/peers/wiredtiger_engine.h"

#include <wiredtiger.h>

#include <array>
#include <cstdio>

#include "bench/peers/joined_key.h"
#include "bench/peers/per_thread.h"

namespace partita::bench {
namespace {

constexpr const char* kTableUri = "table:bench";

Status FromWiredTiger(int code) {
  if (code == 0) return Status();
  if (code == WT_NOTFOUND) return Status::NotFound("no such row");
  return Status::IoError(std::string("wiredtiger: ") + wiredtiger_strerror(code));
}

WT_ITEM ToItem(const void* data, size_t size) {
  WT_ITEM item{};
  item.data = data;
  item.size = size;
  return item;
}

std::string_view ToText(const WT_ITEM& item) { return {static_cast<const char*>(item.data), item.size}; }

// A thread's session with its cursor.
class Session {
 public:
  static std::unique_ptr<Session> Open(WT_CONNECTION* connection) {
    auto session = std::make_unique<Session>();
    if (connection->open_session(connection, nullptr, nullptr, &session->session_) != 0) return nullptr;
    if (session->session_->open_cursor(session->session_, kTableUri, nullptr, nullptr, &session->cursor_) !=
        0) {
      return nullptr;
    }
    return session;
  }
  ~Session() {
    if (session_ != nullptr) session_->close(session_, nullptr);  // Its cursor with it.
  }

  // What was committed survives a loss of power then.
  Status FlushLog() { return FromWiredTiger(session_->log_flush(session_, "sync=on")); }

  int Put(const RowKeys& keys, std::string_view value) {
    const JoinedKey joined(keys);
    WT_ITEM key = ToItem(joined.data(), joined.size()), bytes = ToItem(value.data(), value.size());
    cursor_->set_key(cursor_, &key);
    cursor_->set_value(cursor_, &bytes);
    return cursor_->insert(cursor_);
  }

  int Delete(const RowKeys& keys) {
    const JoinedKey joined(keys);
    WT_ITEM key = ToItem(joined.data(), joined.size());
    cursor_->set_key(cursor_, &key);
    return cursor_->remove(cursor_);
  }

  // What `act` does in one transaction. What another transaction got in the way of is begun again.
  template <typename Act>
  Status Transact(const Act& act) {
    for (;;) {
      int code = session_->begin_transaction(session_, nullptr);
      if (code != 0) return FromWiredTiger(code);
      code = act(this);
      if (code == 0) return FromWiredTiger(session_->commit_transaction(session_, nullptr));
      session_->rollback_transaction(session_, nullptr);
      if (code != WT_ROLLBACK) return FromWiredTiger(code);
    }
  }

  WT_CURSOR* cursor() { return cursor_; }
  WT_SESSION* session() { return session_; }

 private:
  WT_SESSION* session_ = nullptr;
  WT_CURSOR* cursor_ = nullptr;
};

class WiredTigerEngine final : public Engine {
 public:
  WiredTigerEngine(WT_CONNECTION* connection, DurabilityLevel usual)
      : connection_(connection), usual_(usual) {}
  ~WiredTigerEngine() override { (void)Close(); }

  Status Put(const RowKeys& keys, std::string_view value, DurabilityLevel level) override {
    return Write(level, [&](Session* session) { return session->Put(keys, value); });
  }

  Status PutAtomically(std::span<const Row> rows, DurabilityLevel level) override {
    return Write(level, [&](Session* session) {
      for (const Row& row : rows) {
        if (const int code = session->Put(row.keys, row.value); code != 0) return code;
      }
      return 0;
    });
  }

  Status DeleteAtomically(std::span<const RowKeys> rows, DurabilityLevel level) override {
    return Write(level, [&](Session* session) {
      for (const RowKeys& keys : rows) {
        const int code = session->Delete(keys);
        if (code != 0 && code != WT_NOTFOUND) return code;
      }
      return 0;
    });
  }

  // Dropping needs the table to itself: no session may have a cursor on it.
  Status Drop() override {
    sessions_.Clear();
    WT_SESSION* session = nullptr;
    PARTITA_TRY(FromWiredTiger(connection_->open_session(connection_, nullptr, nullptr, &session)));
    const int code = session->drop(session, kTableUri, nullptr);
    session->close(session, nullptr);
    return FromWiredTiger(code);
  }

  Status Get(const RowKeys& keys, std::string* value) override {
    Session* session = ThreadsSession();
    if (session == nullptr) return NoSession();
    WT_CURSOR* cursor = session->cursor();
    const JoinedKey joined(keys);
    WT_ITEM key = ToItem(joined.data(), joined.size()), found{};
    cursor->set_key(cursor, &key);
    int code = cursor->search(cursor);
    if (code == 0) code = cursor->get_value(cursor, &found);
    if (code == 0) value->assign(ToText(found));
    cursor->reset(cursor);
    return FromWiredTiger(code);
  }

  Status Scan(const RowKeys& from, uint64_t limit, const RowVisitor& visit) override {
    Session* session = ThreadsSession();
    if (session == nullptr) return NoSession();
    WT_CURSOR* cursor = session->cursor();
    const JoinedKey joined(from);
    WT_ITEM key = ToItem(joined.data(), joined.size()), value{};
    cursor->set_key(cursor, &key);
    int side = 0;
    int code = limit == 0 ? WT_NOTFOUND : cursor->search_near(cursor, &side);
    if (code == 0 && side < 0) code = cursor->next(cursor);
    for (uint64_t visited = 1; code == 0; ++visited) {
      code = cursor->get_key(cursor, &key);
      if (code == 0) code = cursor->get_value(cursor, &value);
      if (code != 0) break;
      const std::string_view text = ToText(key);
      if (!visit(JoinedKey::RowOf(text.data(), text.size()), ToText(value)) || visited == limit) break;
      code = cursor->next(cursor);
    }
    cursor->reset(cursor);
    return code == WT_NOTFOUND ? Status() : FromWiredTiger(code);
  }

  Status Settle() override {
    Session* session = ThreadsSession();
    if (session == nullptr) return NoSession();
    return FromWiredTiger(session->session()->checkpoint(session->session(), nullptr));
  }

  Status Close() override {
    if (connection_ == nullptr) return Status();
    sessions_.Clear();
    const int code = connection_->close(connection_, nullptr);
    connection_ = nullptr;
    return FromWiredTiger(code);
  }

 private:
  template <typename Act>
  Status Write(DurabilityLevel level, const Act& act) {
    Session* session = ThreadsSession();
    if (session == nullptr) return NoSession();
    PARTITA_TRY(session->Transact(act));
    // The connection's own setting has the level that is usual in this run; a commit cannot ask for more.
    return level == DurabilityLevel::kPower && usual_ != level ? session->FlushLog() : Status();
  }

  Session* ThreadsSession() {
    return sessions_.Get([this] { return Session::Open(connection_); });
  }
  static Status NoSession() { return Status::IoError("wiredtiger: no session to be had"); }

  WT_CONNECTION* connection_;
  DurabilityLevel usual_;
  PerThread<Session> sessions_;
};

std::string ConnectionOptions(const EngineConfig& config) {
  const char* sync = "enabled=false";
  if (config.durability == DurabilityLevel::kPower) sync = "enabled=true,method=fsync";
  if (config.durability == DurabilityLevel::kProcess) sync = "enabled=true,method=none";
  std::array<char, 512> text;
  std::snprintf(text.data(), text.size(),
                "create,cache_size=%lluM,session_max=4200,eviction=(threads_min=1,threads_max=2),"
                "checkpoint=(wait=60),log=(enabled=true,compressor=snappy,file_max=128MB),"
                "transaction_sync=(%s),extensions=[libwiredtiger_snappy.so]%s",
                static_cast<unsigned long long>((config.memory_bytes * 3 / 4) >> 20), sync,
                config.page_cache ? "" : ",direct_io=[data]");
  return text.data();
}

}  // namespace

Result<std::unique_ptr<Engine>> OpenWiredTiger(const EngineConfig& config) {
  WT_CONNECTION* connection = nullptr;
  PARTITA_TRY(FromWiredTiger(
      wiredtiger_open(config.directory.c_str(), nullptr, ConnectionOptions(config).c_str(), &connection)));
  WT_SESSION* session = nullptr;
  int code = connection->open_session(connection, nullptr, nullptr, &session);
  if (code == 0) {
    // Made only where it is not there yet.
    code = session->create(session, kTableUri,
                           "key_format=u,value_format=u,leaf_page_max=8KB,block_compressor=snappy");
    session->close(session, nullptr);
  }
  if (code != 0) {
    connection->close(connection, nullptr);
    return FromWiredTiger(code);
  }
  return std::unique_ptr<Engine>(std::make_unique<WiredTigerEngine>(connection, config.durability));
}

}  // namespace partita::bench
