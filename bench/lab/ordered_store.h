#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the lab asks of an engine that knows bytes only, ordered by memcmp: the seam to engines that partita
// is not linked with. Each is a module of its own, which needs nothing of partita but this header and is
// loaded when it is asked for (engine_module.h).
namespace partita::lab {

struct OrderedStoreConfig {
  std::string directory;  // Exists, and is empty.
  uint64_t memory_bytes = 0;
  // Of each write when it returns: kPower survives a loss of power, kProcess a kill, kMemory neither.
  enum class Durability : uint8_t { kPower, kProcess, kMemory } durability = Durability::kProcess;
};

// All methods are thread-safe and give what went wrong, in the engine's words; empty: nothing.
class OrderedStore {
 public:
  virtual ~OrderedStore() = default;

  // Nothing in `value` when there is no such key.
  virtual std::string Get(std::string_view key, std::optional<std::string>* value) = 0;

  struct Change {
    std::string key;
    std::optional<std::string> value;  // None: the key goes.
  };
  // All or nothing. `relaxed`: it need not survive anything, for a load.
  virtual std::string Write(const std::vector<Change>& changes, bool relaxed) = 0;

  // Visits [lower, upper) in order; `upper` empty: to the end. False from `visit` ends it.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  virtual std::string Scan(std::string_view lower, std::string_view upper, const Visit& visit) = 0;

  // Flushes and merges all there is.
  virtual std::string Settle() = 0;
};

// What a module exports under kOrderedStoreEntry. Null: `error` says why.
using OpenOrderedStore = OrderedStore* (*)(const OrderedStoreConfig& config, std::string* error);
inline constexpr const char* kOrderedStoreEntry = "PartitaOpenOrderedStore";

}  // namespace partita::lab
