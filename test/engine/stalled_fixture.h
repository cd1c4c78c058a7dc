#pragma once
#include <string>
#include <utility>

#include "engine/store.h"

namespace partita {

inline StoreOptions OneShardStore() {
  StoreOptions options;
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 1;
  return options;
}

inline Task<Result<TableDescriptor>> MakeRawTable(Store* store, std::string name) {
  Store::TableSpec spec;
  spec.account = "acct";
  spec.name = std::move(name);
  spec.raw = true;
  return store->CreateTable(std::move(spec));
}

}  // namespace partita
