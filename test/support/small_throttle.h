#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/user_key.h"
#include "engine/catalog.h"
#include "engine/throttle.h"
#include "test/support/hand_set_clock.h"

namespace partita {

// A throttle over a catalog of tables, without a store.
class SmallThrottle : public testing::Test {
 protected:
  SmallThrottle() {
    AddTable("acme", "Orders");
    AddTable("acme", "Lines");
    AddTable("other", "Orders");
  }
  TableId AddTable(std::string account, std::string name, bool raw = false) {
    TableDescriptor table;
    table.account = std::move(account);
    table.name = std::move(name);
    table.raw = raw;
    return catalog_.AddTable(std::move(table), {});
  }
  // A write of `entities` small entities.
  Status Write(TableId table, const std::string& partition, size_t entities = 1, size_t size = 10) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < entities; ++i) keys.push_back(EncodeUserKey(table, partition, std::to_string(i)));
    const std::string content(size, 'x');
    std::vector<WriteOp> ops;
    for (const std::string& key : keys) ops.push_back({.user_key = key, .content = content});
    return throttle_.ChargeWrite({.table = table, .ops = ops});
  }
  // Entities let through while one is offered every `nanos` for `seconds`.
  uint64_t Offer(TableId table, const std::string& partition, uint64_t nanos, uint64_t seconds) {
    uint64_t admitted = 0;
    for (uint64_t passed = 0; passed < seconds * kNanosPerSecond; passed += nanos) {
      if (Write(table, partition).ok()) ++admitted;
      clock_.now_ns += nanos;
    }
    return admitted;
  }
  // Small entities that are let through at once.
  uint64_t Left(TableId table, const std::string& partition) {
    uint64_t left = 0;
    while (Write(table, partition).ok()) ++left;
    return left;
  }
  void Set(const ThroughputTargets& targets) { ASSERT_TRUE(throttle_.SetTargets(targets).ok()); }

  const TableId orders_{1}, lines_{2}, other_{3};
  HandSetClock clock_;
  Catalog catalog_;
  Throttle throttle_{clock_, nullptr, [this] { return catalog_; }};
};

}  // namespace partita
