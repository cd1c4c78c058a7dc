#include <random>

#include "engine/base/executor.h"
#include "engine/io/posix_file_system.h"
#include "engine/io/system_clock.h"
#include "engine/repair.h"

namespace partita {

Result<RepairReport> RepairStoreIn(const std::string& directory, std::string account, ZoneExtractor zones,
                                   const RepairOptions& options) {
  PARTITA_ASSIGN(std::unique_ptr<PosixFileSystem> files,
                 PosixFileSystem::Open(directory, BatchReads::kCallByCall));
  SystemClock clock;
  std::random_device device;
  RepairWorld world{.files = *files,
                    .clock = clock,
                    .random = uint64_t{device()} << 32 | device(),
                    .account = std::move(account),
                    .zones = std::move(zones)};
  return RunBlocking(RepairStore(std::move(world), options));
}

}  // namespace partita
