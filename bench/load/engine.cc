#include "bench/load/engine.h"

#include <array>

#include "bench/load/partita_engine.h"
#ifdef PARTITA_WITH_ROCKSDB
#include "bench/load/rocksdb_engine.h"
#endif

namespace partita::bench {

void Engine::PutAsync(const RowKeys& keys, std::string value, DurabilityLevel level,
                      std::function<void(Status)> done) {
  done(Status(Code::kUnsupported, "this engine has no asynchronous put"));
}

std::span<const std::string_view> EngineNames() {
#ifdef PARTITA_WITH_ROCKSDB
  static constexpr std::array<std::string_view, 2> kNames = {"partita", "rocksdb"};
#else
  static constexpr std::array<std::string_view, 1> kNames = {"partita"};
#endif
  return kNames;
}

Result<std::unique_ptr<Engine>> OpenEngine(std::string_view name, const EngineConfig& config) {
  if (name == "partita") return OpenPartita(config);
#ifdef PARTITA_WITH_ROCKSDB
  if (name == "rocksdb") return OpenRocksDb(config);
#endif
  std::string known;
  for (std::string_view other : EngineNames()) known.append(" ").append(other);
  return Status(Code::kUnsupported, "no engine '" + std::string(name) + "' in this program; it has:" + known);
}

}  // namespace partita::bench
