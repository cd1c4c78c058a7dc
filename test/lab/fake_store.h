#pragma once
#include <string>
#include <utility>
#include <vector>

#include "bench/lab/table_store.h"

namespace partita::lab {

// Holds nothing and answers as a store that has all it is asked for, at once; what derives from it waits or
// refuses.
class FakeStore : public TableStore {
 public:
  Status MakeTable(const std::string&, const std::vector<std::string>&) override { return Status(); }
  Status Load(const std::string&, std::vector<Write>, const GoesOn&) override { return Status(); }
  Status Settle(const ThroughputTargets&, const GoesOn&) override { return Status(); }
  uint32_t pieces() const override { return 1; }
  Result<Entity> Get(const std::string&, const std::string&, const std::string&) override {
    PARTITA_TRY(Serve());
    return Entity("p", "r");
  }
  Result<Entity> GetSelected(const std::string& table, const std::string& partition_key,
                             const std::string& row_key, const std::vector<std::string>& select) override {
    PARTITA_ASSIGN(const Entity whole, Get(table, partition_key, row_key));
    Entity selected(partition_key, row_key);
    for (const std::string& name : select) {
      if (const PropertyValue* value = whole.Get(name)) selected.Set(name, *value);
    }
    return selected;
  }
  Result<Answer> Query(const std::string&, const Question&) override {
    PARTITA_TRY(Serve());
    return Answer{.entities = {}, .scanned = 1, .continuation = {}};
  }
  Status Transact(const std::string&, const std::vector<Write>&) override { return Serve(); }

 protected:
  // Called once for each request, by any thread; what it gives is the answer.
  virtual Status Serve() = 0;
};

}  // namespace partita::lab
