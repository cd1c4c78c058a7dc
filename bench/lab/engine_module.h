#pragma once
#include <memory>
#include <string>

#include "bench/lab/ordered_store.h"
#include "engine/base/result.h"

namespace partita::lab {

// Opens a new store of an engine by its module, bin/partita_lab_ENGINE.so beside the running program, which
// is built where the engine is installed (bench/CMakeLists.txt). kUnsupported: there is no such module, or
// its engine cannot be loaded. kIoError: the engine refuses.
Result<std::unique_ptr<OrderedStore>> OpenEngineModule(const std::string& engine,
                                                       const OrderedStoreConfig& config);

}  // namespace partita::lab
