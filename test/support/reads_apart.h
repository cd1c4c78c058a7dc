#pragma once
#include <iterator>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/base/object_store.h"

namespace partita {

// An ObjectStore on another one that counts reads into memory that an earlier read may still write to. Of one
// thread.
class ReadsApart : public ObjectStore {
 public:
  explicit ReadsApart(ObjectStore& store) : store_(store) {}
  uint64_t shared() const { return shared_; }

  Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) override {
    auto opened = co_await store_.Open(id);
    if (!opened.ok()) co_return opened.status();
    co_return std::shared_ptr<ObjectReader>(new Reader(*this, std::move(opened).value()));
  }
  Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) override { return store_.Create(id); }
  Task<Status> Remove(ObjectId id) override { return store_.Remove(id); }
  Task<Result<std::vector<ObjectInfo>>> List() override { return store_.List(); }

 private:
  class Reader : public ObjectReader {
   public:
    Reader(ReadsApart& apart, std::shared_ptr<ObjectReader> reader)
        : apart_(apart), reader_(std::move(reader)) {}
    ObjectId id() const override { return reader_->id(); }
    uint64_t size() const override { return reader_->size(); }
    const std::string& name() const override { return reader_->name(); }
    Task<Status> Read(std::span<const ObjectRead> reads, ReadCaching caching) override {
      std::list<std::span<uint8_t>> mine;
      for (const ObjectRead& read : reads) {
        for (const auto& other : apart_.under_way_) {
          const bool apart = read.buffer.data() + read.buffer.size() <= other.data() ||
                             other.data() + other.size() <= read.buffer.data();
          if (!apart) ++apart_.shared_;
        }
        mine.push_back(read.buffer);
      }
      const auto first = mine.begin();
      const size_t count = mine.size();
      apart_.under_way_.splice(apart_.under_way_.end(), mine);
      Status status = co_await reader_->Read(reads, caching);
      if (count > 0) apart_.under_way_.erase(first, std::next(first, static_cast<ptrdiff_t>(count)));
      co_return status;
    }

   private:
    ReadsApart& apart_;
    std::shared_ptr<ObjectReader> reader_;
  };

  ObjectStore& store_;
  std::list<std::span<uint8_t>> under_way_;
  uint64_t shared_ = 0;
};

}  // namespace partita
