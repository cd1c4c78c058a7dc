#pragma once
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/object_store.h"

namespace partita {

// An ObjectStore in memory, for tests of what lies above the seam: its bytes can be changed, its reads
// and writes made to fail. Thread-safe for reading; faults are set while nothing else runs.
class MemoryObjectStore : public ObjectStore {
 public:
  struct Faults {
    // Called for each read with its bytes; may change them, or fail it.
    std::function<Status(ObjectId id, uint64_t offset, std::span<uint8_t> bytes, ReadCaching caching)>
        on_read;
    // Appends fail with this status once so many bytes were written.
    uint64_t append_fails_after = UINT64_MAX;
    Status append_failure = Status::NoSpace("the test says so");
    Status finish_failure;
  };

  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override {
    std::lock_guard lock(mutex_);
    if (objects_.contains(id)) co_return Status::AlreadyExists("object " + std::to_string(id.value));
    ++created_;
    auto bytes = std::make_shared<std::string>();
    objects_[id] = bytes;
    co_return std::unique_ptr<ObjectWriter>(new Writer(*this, id, std::move(bytes)));
  }

  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(id);
    if (found == objects_.end()) co_return Status::NotFound("object " + std::to_string(id.value));
    co_return std::shared_ptr<ObjectReader>(new Reader(*this, id, found->second));
  }

  Task<Status> Remove(ObjectId id) override {
    std::lock_guard lock(mutex_);
    objects_.erase(id);
    co_return Status();
  }

  Task<Result<std::vector<ObjectInfo>>> List() override {
    std::lock_guard lock(mutex_);
    std::vector<ObjectInfo> infos;
    for (const auto& [id, bytes] : objects_) infos.push_back({id, bytes->size()});
    co_return infos;
  }

  // The object's bytes, to look at or to damage. REQUIRES: it exists.
  std::string& bytes(ObjectId id) { return *objects_.at(id); }
  // Makes an object of these bytes, in place of one that may be there.
  void Put(ObjectId id, std::string bytes) { objects_[id] = std::make_shared<std::string>(std::move(bytes)); }

  Faults& faults() { return faults_; }
  uint64_t created() const { return created_; }
  uint64_t reads() const { return reads_.load(); }
  uint64_t read_bytes() const { return read_bytes_.load(); }

 private:
  class Writer : public ObjectWriter {
   public:
    Writer(MemoryObjectStore& store, ObjectId id, std::shared_ptr<std::string> bytes)
        : store_(store), id_(id), bytes_(std::move(bytes)) {}
    Task<Status> Append(std::string_view bytes) override {
      if (bytes_->size() + bytes.size() > store_.faults_.append_fails_after)
        co_return store_.faults_.append_failure;
      bytes_->append(bytes);
      co_return Status();
    }
    Task<Status> BeginFinish() override { co_return Status(); }
    Task<Status> Finish() override { co_return store_.faults_.finish_failure; }
    Task<void> Abandon() override {
      std::lock_guard lock(store_.mutex_);
      store_.objects_.erase(id_);
      co_return;
    }
    uint64_t size() const override { return bytes_->size(); }

   private:
    MemoryObjectStore& store_;
    ObjectId id_;
    std::shared_ptr<std::string> bytes_;
  };

  class Reader : public ObjectReader {
   public:
    Reader(MemoryObjectStore& store, ObjectId id, std::shared_ptr<const std::string> bytes)
        : store_(store),
          id_(id),
          bytes_(std::move(bytes)),
          name_("tables/" + std::to_string(id.value) + ".sst") {}
    ObjectId id() const override { return id_; }
    uint64_t size() const override { return bytes_->size(); }
    const std::string& name() const override { return name_; }
    Task<Status> Read(std::span<const ObjectRead> reads, ReadCaching caching) override {
      for (const ObjectRead& read : reads) {
        store_.reads_.fetch_add(1);
        store_.read_bytes_.fetch_add(read.buffer.size());
        if (read.offset > bytes_->size() || read.buffer.size() > bytes_->size() - read.offset) {
          co_return Status::IoError(name_ + ": read past the end");
        }
        std::memcpy(read.buffer.data(), bytes_->data() + read.offset, read.buffer.size());
        if (!store_.faults_.on_read) continue;
        Status status = store_.faults_.on_read(id_, read.offset, read.buffer, caching);
        if (!status.ok()) co_return status;
      }
      co_return Status();
    }

   private:
    MemoryObjectStore& store_;
    ObjectId id_;
    std::shared_ptr<const std::string> bytes_;
    std::string name_;
  };

  std::mutex mutex_;
  std::map<ObjectId, std::shared_ptr<std::string>> objects_;
  Faults faults_;
  uint64_t created_ = 0;  // Guarded by mutex_.
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> read_bytes_{0};
};

}  // namespace partita
