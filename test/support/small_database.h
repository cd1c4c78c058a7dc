#pragma once
#include <memory>
#include <string>
#include <utility>

#include "api/partita.h"

namespace partita {

// Opens or makes a store for tests of the table model: little memory, nothing made durable, and the thread
// backend, which every machine has.
inline Result<std::unique_ptr<Database>> OpenSmallDatabase(std::string directory, uint32_t shards) {
  Options options;
  options.directory = std::move(directory);
  options.allow_volatile_storage = true;  // Wherever the tests run.
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = shards;
  options.durability = Durability::kMemory;
  options.io_backend = IoBackend::kThreads;
  return Database::Open(options);
}

}  // namespace partita
