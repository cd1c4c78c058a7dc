#pragma once
#include "bench/load/load_loop.h"

namespace partita::bench {

// Has a process of its own write into an empty store, half the memory's worth, and kill itself; then
// opens what it left: one operation, over when the last row was read. All rows must be there, which is
// checked afterwards. `config.engine_config.directory` must be empty.
//
// kUnsupported when this process has had an engine open: its threads would be missing in the other.
Result<std::unique_ptr<Engine>> RunRecovery(LoadConfig config, const ValueGenerator& values,
                                            Measurement* measurement);

}  // namespace partita::bench
