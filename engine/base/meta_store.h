#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

// Upper seam: small values that are replaced whole and atomically (catalog, manifests), up to some
// MiB each. Because a value is never changed in place, there is no torn end to decide about: after
// a crash a key has the value before or after the swap, each complete (F23, F34).
struct MetaValue {
  std::string bytes;
  uint64_t generation = 0;  // From 1 on, rising by one with each swap of this key.
};

// Thread-safe. Keys are [a-z0-9-]{1,64}.
class MetaStore {
 public:
  virtual ~MetaStore() = default;

  // nullopt when the key was never written or was removed. kCorruption when bytes are there but
  // fail verification: never an older value instead (F80).
  virtual Task<Result<std::optional<MetaValue>>> Get(std::string_view key) = 0;

  // Replaces the value if its generation is `expected` (0: the key must be absent) and returns the
  // new generation; when it returns ok the value is durable. kPreconditionFailed when the
  // generation differs; kUnknown when the swap may or may not have happened: read to decide.
  virtual Task<Result<uint64_t>> CompareAndSwap(std::string_view key, uint64_t expected,
                                                std::string_view bytes) = 0;

  // Does of a swap what can be done before it is decided: a CompareAndSwap with the same arguments is then
  // quicker. It need not come; until it does, the value is the old one, also for the next life. Any error may
  // be ignored.
  virtual Task<Status> PrepareSwap(std::string_view key, uint64_t expected, std::string_view bytes) = 0;

  // Removes the key durably; ok when absent.
  virtual Task<Status> Remove(std::string_view key) = 0;

  virtual Task<Result<std::vector<std::string>>> List() = 0;
};

}  // namespace partita
