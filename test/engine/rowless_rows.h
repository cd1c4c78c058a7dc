#pragma once
#include <span>
#include <string>
#include <vector>

#include "engine/base/user_key.h"
#include "engine/shard.h"
#include "engine/store.h"

// What the tests of rowless stretches in a store share.
namespace partita {

class KeyTaker final : public Shard::RowSink {
 public:
  std::vector<std::string> keys;
  Verdict Add(std::string_view user_key, Version, std::string_view) override {
    keys.emplace_back(user_key);
    return Verdict::kTaken;
  }
};

struct Rows {
  TableId table;

  std::string Key(const std::string& partition, int row) const {
    const std::string digits = std::to_string(row);
    return EncodeUserKey(table, partition, std::string(6 - digits.size(), '0') + digits);
  }
};

inline Task<WriteOutcome> WriteRows(Store& store, TableId table, std::span<const std::string> keys,
                                    WriteKind kind, DurabilityLevel level = DurabilityLevel::kProcess) {
  std::vector<WriteOp> ops(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ops[i].kind = kind;
    ops[i].user_key = keys[i];
    if (kind == WriteKind::kPut) ops[i].content = "content";
  }
  WriteRequest request;
  request.table = table;
  request.ops = ops;
  request.durability = level;
  co_return co_await store.Write(request);
}

}  // namespace partita
