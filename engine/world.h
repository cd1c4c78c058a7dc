#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/io_backend.h"
#include "engine/base/result.h"
#include "engine/catalog.h"
#include "engine/io/runtime.h"
#include "engine/io/thread_setup.h"  // StartThread and RankOfThisThread, for who sees no engine/io/.

namespace partita {

// What the api layer says of the world a store runs in; the rest is derived.
struct WorldOptions {
  std::string directory;
  bool create_directory = false;
  uint32_t shards = 1;  // Workers, 1 to kShardCountMax.
  IoBackend backend = IoBackend::kUring;
};

// As many shards as there are cores for the calling thread, which the threads of a store that it opens share,
// as far as so much memory is enough for them (16 MiB each).
uint32_t ShardsByCores(uint64_t memory_bytes);

// Why the level `power` cannot be had in a directory (F5); empty: nothing speaks against it.
Result<std::string> WhyPowerIsNotGiven(const std::string& directory);

// Starts the real world: files of the directory, clocks, one worker a shard, helpers. It ends its
// threads when destroyed, after the store was closed. kUnsupported when the backend cannot be had,
// kNotFound for a missing directory, kInvalidArgument for what is none.
Result<std::unique_ptr<Runtime>> OpenWorld(const WorldOptions& options);

// Memory of this process that is in RAM, in bytes; 0 when the kernel does not say.
uint64_t ResidentSetBytes();

}  // namespace partita
